// Package trial has launches of single kernels at the sizes of training steps, with their arguments in memory. The GPU
// checks and the kernel laboratory run them, each through its own layer over the CUDA driver.
package trial

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/cuda/kernels"
)

// Trial is a kernel of the table at a size. Its arguments are in the order of the kernel's parameters, one word each:
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
// over rows, b the parts of flat sums, h heads and e the width of a head. o is the number of columns that are not
// padding.
type Trial struct {
	Kernel, Types string
	Exact         string // types of the same kernel in f64; "" compares nothing
	Rows, Cols    int
	Bound         float64 // of the error relative to f64
	Args          string
}

// vocab, heads and width are the values of v, h and e. padded is the vocabulary as programs for GPUs pad it.
const vocab, heads, width, padded = 50257, 12, 64, 50304

// All are the kernels of a step of GPT-2 124M and of a Llama on 16384 tokens, and updates of a hundred million
// parameters.
var All = []Trial{
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
	{"cross_entropy", "bf16", "f64", 8192, padded, 6e-3, "out:r out:rc in:r in:rc ids:r r c o"},
	{"rope", "bf16", "f64", 16384, heads * width, 6e-3, "out:rc in:rc in:32r in:32r r r c h e 0 e 0 0"},
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

// Argument is an argument of a kernel: a value, or memory.
type Argument struct {
	Value []byte // of 4 or 8 bytes, little-endian; nil if the argument is memory
	Types string // of the numbers in memory, "" for a null pointer
	Data  []byte // the memory's contents before the launch; nil for a null pointer
	Role  string // in, out, inout, or the name of a kind of integers
}

// Written reports whether the kernel writes the memory.
func (a *Argument) Written() bool { return a.Role == "out" || a.Role == "inout" }

// Launch is a kernel with its arguments and geometry.
type Launch struct {
	File, Function string // the function's name includes the types
	Args           []Argument
	kernels.Launch
	Bytes float64 // read and written: each argument once, or twice if it is read and written
}

// Launch returns the launch of a trial in some of the kernel's types.
func (t Trial) Launch(types string) (Launch, error) {
	i := slices.IndexFunc(kernels.Table, func(k kernels.Kernel) bool { return k.Name == t.Kernel })
	if i < 0 {
		return Launch{}, fmt.Errorf("unknown kernel %s", t.Kernel)
	}
	k := &kernels.Table[i]
	out := Launch{File: k.File, Function: t.Kernel + "_" + types, Launch: k.Launch(t.Rows, t.Cols)}
	words, params := strings.Fields(t.Args), strings.Fields(k.Params)
	if len(words) != len(params) {
		return out, fmt.Errorf("%d arguments for %q", len(words), k.Params)
	}
	next := arguments{trial: t, types: strings.Split(types, "_"), ids: t.IDs()}
	for i, p := range params {
		name, kind, _ := strings.Cut(p, ":")
		a, err := next.argument(words[i], strings.TrimSuffix(kind, "?"), i)
		if err != nil {
			return out, fmt.Errorf("%s: %w", name, err)
		}
		out.Args = append(out.Args, a)
		out.Bytes += float64(len(a.Data))
		if a.Role == "inout" {
			out.Bytes += float64(len(a.Data))
		}
	}
	rows, starts, _ := kernels.Buckets(next.ids, 0, vocab)
	unmet := float64((vocab - len(rows)) * t.Cols) // elements of the rows of the table without an id
	elem := float64(ElemBytes(strings.Split(types, "_")[0]))
	switch t.Kernel {
	case "embed":
		out.Bytes -= unmet * elem
	case "embed_grad":
		out.Bytes -= 2 * unmet * elem
		out.Launch = k.Launch(len(starts)-1, t.Cols)
	}
	return out, nil
}

// Small returns the trial with fewer rows, which are enough to compare its results.
func (t Trial) Small() Trial {
	t.Rows, t.Cols = min(t.Rows, 64), min(t.Cols, 1<<20)
	return t
}

// Tiny returns the trial at a size for emulated GPUs.
func (t Trial) Tiny() Trial {
	t.Rows, t.Cols = min(t.Rows, 40), min(t.Cols, 70)
	switch t.Kernel {
	case "rope":
		t.Cols = heads * width
	case "fp8_quantize":
		t.Cols = 64 // whole packs of codes
	}
	return t
}

// arguments returns the arguments of a trial's kernel one after the other.
type arguments struct {
	trial Trial
	types []string // of the next pointers of type T, one after the other; the last one remains
	ids   []int32
}

// argument returns the argument of a word. Argument number seed has the random numbers of that seed.
func (w *arguments) argument(word, kind string, seed int) (Argument, error) {
	role, size, memory := strings.Cut(word, ":")
	switch {
	case word == "-":
		return Argument{}, nil
	case memory:
		a, err := w.memory(role, size, kind, seed)
		a.Role = role
		return a, err
	case kind == "d":
		v, err := strconv.ParseFloat(word, 64)
		return Argument{Value: binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))}, err
	case kind == "i":
		return Argument{Value: binary.LittleEndian.AppendUint32(nil, uint32(w.trial.size(word)))}, nil
	}
	return Argument{Value: binary.LittleEndian.AppendUint64(nil, uint64(w.trial.size(word)))}, nil
}

// memory returns an argument in memory.
func (w *arguments) memory(role, size, kind string, seed int) (Argument, error) {
	t := w.trial
	switch role {
	case "ids":
		return Argument{Types: "i32", Data: Integers(w.ids)}, nil
	case "buckets":
		rows, starts, order := kernels.Buckets(w.ids, 0, vocab)
		list := [][]int32{{int32(len(rows))}, rows, starts, order}[t.size(size)]
		return Argument{Types: "i32", Data: Integers(list)}, nil
	case "d":
		var v []float64
		for _, word := range strings.Split(size, ",") {
			x, err := strconv.ParseFloat(word, 64)
			if err != nil {
				return Argument{}, err
			}
			v = append(v, x)
		}
		return Argument{Types: "f64", Data: Stored("f64", v)}, nil
	case "w":
		return words(size)
	}
	types, err := w.typesOf(kind)
	n := t.size(size)
	switch {
	case err != nil:
		return Argument{}, fmt.Errorf("%s of kind %s", role, kind)
	case types == "i32":
		return Argument{Types: types, Data: make([]byte, 4*n)}, nil
	case role == "out":
		return Argument{Types: types, Data: Repeated(Stored(types, []float64{math.NaN()}), n*ElemBytes(types))}, nil
	}
	return Argument{Types: types, Data: t.positive(types, Random(types, n, seed), seed)}, nil
}

// typesOf returns the type of the numbers of the next pointer, which has a kind of [kernels.Kernel].
func (w *arguments) typesOf(kind string) (string, error) {
	switch kind {
	case "T":
		first := w.types[0]
		if len(w.types) > 1 {
			w.types = w.types[1:]
		}
		return first, nil
	case "A":
		if strings.Contains(strings.Join(w.types, ""), "f64") {
			return "f64", nil
		}
		return "f32", nil
	case "D":
		return "f64", nil
	case "P":
		return "i32", nil
	}
	return "", fmt.Errorf("no numbers of kind %s", kind)
}

// words returns integers of 64 bits in memory.
func words(list string) (Argument, error) {
	var b []byte
	for _, word := range strings.Split(list, ",") {
		x, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return Argument{}, err
		}
		b = binary.NativeEndian.AppendUint64(b, uint64(x))
	}
	return Argument{Types: "f64", Data: b}, nil
}

// positive makes second moments of Adam positive, because their square root is taken.
func (t Trial) positive(types string, data []byte, seed int) []byte {
	if t.Kernel != "adam" || seed != 4 {
		return data
	}
	v := Read(types, data)
	for i := range v {
		v[i] = math.Abs(v[i])
	}
	return Stored(types, v)
}

// size multiplies the values of a word's letters and its number.
func (t Trial) size(word string) int {
	n, rest := 1, strings.TrimLeft(word, "0123456789")
	if digits := word[:len(word)-len(rest)]; digits != "" {
		n, _ = strconv.Atoi(digits)
	}
	values := map[rune]int{'r': t.Rows, 'c': t.Cols, 'n': t.Rows * t.Cols, 'q': t.Rows * t.Cols / 4, 'v': vocab,
		'p': kernels.Parts(t.Rows), 'b': kernels.Blocks(t.Rows * t.Cols), 'h': heads, 'e': width,
		'o': min(t.Cols, vocab)}
	for _, letter := range rest {
		n *= values[letter]
	}
	return n
}

// IDs returns token ids with the frequencies of words.
func (t Trial) IDs() []int32 {
	below := vocab
	if strings.HasPrefix(t.Kernel, "logsumexp") || t.Kernel == "cross_entropy" {
		below = min(t.Cols, vocab)
	}
	ids := make([]int32, t.Rows)
	for i, x := range Numbers(t.Rows, 3) {
		ids[i] = int32(min(int(math.Pow(float64(below), (x+1)/2))-1, below-1))
	}
	return ids
}
