//go:build cuda && linux

package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
)

// trial is a kernel of the table at a size. Its arguments are in the order of the kernel's parameters, one word each:
//
//	in:SIZE out:SIZE inout:SIZE   numbers in memory, random at first, or NaN; SIZE multiplies the letters below
//	                              and numbers
//	ids:r             r indices below v
//	buckets:N         result of kernels.Buckets for ids:r: 0 the number of buckets, 1 rows, 2 starts, 3 order
//	d:1,2,3           doubles
//	w:1,2,3           integers of 64 bits
//	-                 nothing
//	LETTER or number  a value
//
// r and c are rows and columns, n all numbers, q words of as many FP8 codes, v the rows of a table, p the parts of sums
// over rows, b the parts of flat sums, h heads and e the width of a head.
type trial struct {
	kernel, types string
	exact         string // types of the same kernel in f64; "" compares nothing
	rows, cols    int
	bound         float64
	args          string
}

// vocab, heads and width are the values of v, h and e.
const vocab, heads, width = 50257, 12, 64

// trials are the kernels of a step of GPT-2 124M and of a Llama on 16384 tokens, and updates of a hundred million
// parameters.
var trials = []trial{
	{"layer_norm", "bf16", "f64", 16384, 768, 6e-3, "out:rc - in:rc - in:c in:c r c 1e-5"},
	{"layer_norm_dx", "bf16", "f64", 16384, 768, 6e-3, "out:rc in:rc - in:rc in:c r c 1e-5"},
	{"layer_norm_stats", "bf16", "f64", 16384, 768, 1e-5, "out:2r in:rc r c 1e-5"},
	{"rms_norm", "bf16", "f64", 16384, 2048, 6e-3, "out:rc - in:rc - in:c r c 1e-5 0"},
	{"rms_norm_dx", "bf16", "f64", 16384, 2048, 6e-3, "out:rc in:rc - in:rc in:c r c 1e-5 0"},
	{"norm_dgain", "bf16", "f64", 16384, 768, 1e-5, "out:pc in:rc in:rc in:2r r c 0"},
	{"sum_rows", "bf16", "f64", 16384, 3072, 1e-5, "out:pc in:rc r c 0"},
	{"sum_squares", "f32", "f64", 1, 100_000_000, 1e-5, "out:b in:n n"},
	{"logsumexp_pick", "bf16", "f64", 8192, vocab, 1e-5, "out:r out:r in:rc ids:r r c c 0 c"},
	{"logsumexp_pick_grad", "bf16", "f64", 8192, vocab, 6e-3, "out:rc in:r in:r in:rc in:r ids:r r c c 0 c"},
	{"cross_entropy", "bf16", "f64", 8192, vocab, 6e-3, "out:r out:rc in:r in:rc ids:r r c"},
	{"rope", "bf16", "f64", 16384, heads * width, 6e-3, "out:rc in:rc in:32r in:32r r r h e 0 e 0 0"},
	{"embed", "bf16_bf16", "f64_f64", 16384, 768, 0, "out:rc in:vc ids:r r c 0 v"},
	{"embed_grad", "f32_bf16", "f64_f64", 16384, 768, 1e-5, "inout:vc in:rc buckets:0 buckets:1 buckets:2 buckets:3 c"},
	{"accumulate", "f32_bf16", "f64_f64", 1, 100_000_000, 1e-6, "inout:n in:n n"},
	{"cast", "f32_bf16", "", 1, 100_000_000, 0, "out:n in:n n"},
	{"adam", "bf16_f32_f32", "f64_f64_f64", 1, 100_000_000, 6e-3,
		"inout:n inout:n in:n inout:n inout:n d:0,1,0 d:1e-3,1,0.9999,0,0.9,0.1,0.95,0.05,1e-8 - - n"},
	// These round operands of FP8 GEMMs; the FP8 check compares the rounded numbers.
	{"fp8_absmax", "bf16", "", 1, 16384 * 3072, 0, "out:b in:n n"},
	{"fp8_quantize", "bf16", "", 16384, 3072, 0, "out:q in:n in:b out:1 b 1 r c c 0 0"},
	{"fp8_quantize", "bf16", "", 3072, 16384, 0, "out:q in:n in:b out:1 b 1 r c c 1 1"},
	{"fp8_round", "bf16", "", 1, 16384 * 3072, 0, "out:n in:n in:b b n 0"},
	// Weights use stochastic rounding, and half of each row belongs to another rank, so they may differ by the
	// distance of two adjacent numbers.
	{"adam", "bf16_f32_f32", "f64_f64_f64", 1, 96_000_000, 8e-3,
		"inout:n inout:n in:n inout:n inout:n d:0,1,0 d:1e-3,1,0.9999,0,0.9,0.1,0.95,0.05,1e-8 w:7 " +
			"w:0,0,2,1000,1,1000000,2000 n"},
}

// eachKernel tries all kernels.
func eachKernel(l *lab, r *Result) error {
	var all []Measured
	for _, t := range trials {
		if l.tiny {
			t.rows, t.cols = min(t.rows, 40), min(t.cols, 70)
			switch t.kernel {
			case "rope":
				t.cols = heads * width
			case "fp8_quantize":
				t.cols = 64 // whole packs of codes
			}
		}
		m, err := l.try(t)
		if err != nil {
			m.Why = err.Error()
		}
		l.release()
		all = append(all, m)
	}
	tabulateKernels(r, all)
	return nil
}

// operand is an argument in memory.
type operand struct {
	memory  cuda.Memory
	types   string
	n       int
	written bool
}

// loaded is a kernel that can be launched.
type loaded struct {
	run      func() error
	operands []operand
	bytes    float64 // each operand once; what is read and written counts twice
}

// try measures a kernel, and compares its results with f64 on fewer rows.
func (l *lab) try(t trial) (m Measured, err error) {
	m = Measured{Name: t.kernel, Types: t.types, Size: fmt.Sprintf("%d × %d", t.rows, t.cols), Error: -1,
		Bound: t.bound}
	x, err := l.load(t, t.types)
	if err != nil {
		return m, err
	}
	m.Bytes = x.bytes
	m.Seconds, err = l.time(x.run)
	if err != nil || t.exact == "" {
		return m, err
	}
	l.release()
	t.rows, t.cols = min(t.rows, 64), min(t.cols, 1<<20)
	var results [2][][]float64
	for i, types := range []string{t.types, t.exact} {
		x, err = l.load(t, types)
		if err == nil {
			err = x.run()
		}
		if err != nil {
			return m, err
		}
		for _, o := range x.operands {
			if o.written {
				b, err := l.get(o.memory, o.n*elemBytes(o.types))
				if err != nil {
					return m, err
				}
				results[i] = append(results[i], read(o.types, b))
			}
		}
	}
	m.Error = 0
	for i := range results[0] {
		m.Error = max(m.Error, off(results[0][i], results[1][i]))
	}
	return m, nil
}

// load copies a trial's arguments into memory.
func (l *lab) load(t trial, types string) (*loaded, error) {
	f, k, err := l.kernel(t.kernel, types)
	if err != nil {
		return nil, err
	}
	x, args := &loaded{}, &cuda.Args{}
	args.Reset()
	each := strings.Split(types, "_")
	words := strings.Fields(t.args)
	params := strings.Fields(k.Params)
	if len(words) != len(params) {
		return nil, fmt.Errorf("%d arguments for %q", len(words), k.Params)
	}
	ids := t.ids()
	next := argumentWriter{lab: l, trial: t, args: args, types: each, ids: ids}
	for i, p := range params {
		name, kind, _ := strings.Cut(p, ":")
		o, err := next.add(words[i], strings.TrimSuffix(kind, "?"), i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if o != nil {
			x.operands = append(x.operands, *o)
			x.bytes += float64(o.n * elemBytes(o.types))
			if strings.HasPrefix(words[i], "inout:") {
				x.bytes += float64(o.n * elemBytes(o.types))
			}
		}
	}
	rows, starts, _ := kernels.Buckets(ids, 0, vocab)
	unmet := float64((vocab - len(rows)) * t.cols) // rows of the table without an id
	switch t.kernel {
	case "embed":
		x.bytes -= unmet * float64(elemBytes(each[0]))
	case "embed_grad":
		x.bytes -= 2 * unmet * float64(elemBytes(each[0]))
	}
	shape := k.Launch(t.rows, t.cols)
	if t.kernel == "embed_grad" {
		shape = k.Launch(len(starts)-1, t.cols)
	}
	x.run = func() error { return l.stream.Launch(f, cuda.Shape{Grid: shape.Grid, Block: shape.Block}, args) }
	return x, nil
}

// argumentWriter appends the arguments of a trial's kernel.
type argumentWriter struct {
	lab   *lab
	trial trial
	args  *cuda.Args
	types []string // of the next pointers of type T, one after the other; the last one remains
	ids   []int32
}

// add appends an argument and returns its memory.
func (w *argumentWriter) add(word, kind string, seed int) (*operand, error) {
	t, args := w.trial, w.args
	role, size, memory := strings.Cut(word, ":")
	switch {
	case word == "-":
		args.Pointer(0)
		return nil, nil
	case memory:
		o, data, err := t.operand(role, size, kind, &w.types, seed, w.ids)
		if err != nil {
			return nil, err
		}
		o.memory, err = w.lab.put(data)
		args.Pointer(o.memory.Pointer)
		return o, err
	case kind == "d":
		v, err := strconv.ParseFloat(word, 64)
		args.Float64(v)
		return nil, err
	}
	n := t.size(word)
	if kind == "i" {
		args.Int32(int32(n))
	} else {
		args.Uint64(uint64(n))
	}
	return nil, nil
}

// operand returns the operand of an argument in memory.
func (t trial) operand(role, size, kind string, types *[]string, seed int, ids []int32) (*operand, []byte, error) {
	switch role {
	case "ids":
		return &operand{types: "i32", n: len(ids)}, integers(ids), nil
	case "buckets":
		rows, starts, order := kernels.Buckets(ids, 0, vocab)
		list := [][]int32{{int32(len(rows))}, rows, starts, order}[t.size(size)]
		return &operand{types: "i32", n: len(list)}, integers(list), nil
	case "d":
		var v []float64
		for _, word := range strings.Split(size, ",") {
			x, err := strconv.ParseFloat(word, 64)
			if err != nil {
				return nil, nil, err
			}
			v = append(v, x)
		}
		return &operand{types: "f64", n: len(v)}, stored("f64", v), nil
	}
	if role == "w" {
		return words(size)
	}
	o := &operand{n: t.size(size), written: role != "in"}
	switch kind {
	case "T":
		o.types = (*types)[0]
		if len(*types) > 1 {
			*types = (*types)[1:]
		}
	case "A":
		o.types = "f32"
		if strings.Contains(strings.Join(*types, ""), "f64") {
			o.types = "f64"
		}
	case "D":
		o.types = "f64"
	case "P":
		o.types = "i32"
		return o, make([]byte, o.n*elemBytes(o.types)), nil
	default:
		return nil, nil, fmt.Errorf("%s of kind %s", role, kind)
	}
	if role == "out" {
		nan := stored(o.types, []float64{math.NaN()})
		return o, []byte(strings.Repeat(string(nan), o.n)), nil
	}
	return o, t.positive(o, random(o.types, o.n, seed), seed), nil
}

// words returns integers of 64 bits in memory.
func words(list string) (*operand, []byte, error) {
	var b []byte
	for _, word := range strings.Split(list, ",") {
		x, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, nil, err
		}
		b = binary.NativeEndian.AppendUint64(b, uint64(x))
	}
	return &operand{types: "f64", n: len(b) / 8}, b, nil
}

// positive makes second moments of Adam positive, because their square root is taken.
func (t trial) positive(o *operand, data []byte, seed int) []byte {
	if t.kernel != "adam" || seed != 4 {
		return data
	}
	v := read(o.types, data)
	for i := range v {
		v[i] = math.Abs(v[i])
	}
	return stored(o.types, v)
}

// size multiplies the values of a word's letters and its number.
func (t trial) size(word string) int {
	n, rest := 1, strings.TrimLeft(word, "0123456789")
	if digits := word[:len(word)-len(rest)]; digits != "" {
		n, _ = strconv.Atoi(digits)
	}
	values := map[rune]int{'r': t.rows, 'c': t.cols, 'n': t.rows * t.cols, 'q': t.rows * t.cols / 4, 'v': vocab,
		'p': kernels.Parts(t.rows), 'b': kernels.Blocks(t.rows * t.cols), 'h': heads, 'e': width}
	for _, letter := range rest {
		n *= values[letter]
	}
	return n
}

// ids returns token ids with the frequencies of words.
func (t trial) ids() []int32 {
	below := vocab
	if strings.HasPrefix(t.kernel, "logsumexp") || t.kernel == "cross_entropy" {
		below = t.cols
	}
	ids := make([]int32, t.rows)
	for i, x := range numbers(t.rows, 3) {
		ids[i] = int32(min(int(math.Pow(float64(below), (x+1)/2))-1, below-1))
	}
	return ids
}

func integers(v []int32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}
