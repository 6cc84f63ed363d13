package codegen

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/planc-dev/planc/codegen/cu"
	"github.com/planc-dev/planc/cuda/kernels"
	"github.com/planc-dev/planc/cuda/kernels/emulate"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
)

// What package cpu has under the names of a chain.
var (
	cpuAt = map[string]cpu.At{"Whole": cpu.Whole, "PerCol": cpu.PerCol, "PerRow": cpu.PerRow, "One": cpu.One,
		"Temp": cpu.Temp}
	cpuElem = map[string]num.Elem{"": num.Native, "BF16": num.ElemBF16, "F16": num.ElemF16}
	cpuDo   = map[string]cpu.Do{
		"Copy": cpu.DoCopy, "Add": cpu.DoAdd, "Sub": cpu.DoSub, "Mul": cpu.DoMul, "Scale": cpu.DoScale,
		"Gelu": cpu.DoGelu, "GeluErf": cpu.DoGeluErf,
		"Silu": cpu.DoSilu, "Sigmoid": cpu.DoSigmoid, "Relu": cpu.DoRelu, "Softcap": cpu.DoSoftcap,
		"GeluGrad": cpu.DoGeluGrad, "GeluErfGrad": cpu.DoGeluErfGrad,
		"SiluGrad": cpu.DoSiluGrad, "SigmoidGrad": cpu.DoSigmoidGrad, "ReluGrad": cpu.DoReluGrad,
		"SoftcapGrad": cpu.DoSoftcapGrad,
		"LayerNorm":   cpu.DoLayerNorm, "RMSNorm": cpu.DoRMSNorm, "LayerNormDX": cpu.DoLayerNormDX,
		"RMSNormDX": cpu.DoRMSNormDX,
		"ExpGrad":   cpu.DoExpGrad, "PickGrad": cpu.DoPickGrad, "AddPick": cpu.DoAddPick,
	}
)

// cpuChain is the chain as the CPU runs it.
func cpuChain(t *testing.T, c *cu.Chain) *cpu.Chain {
	out := &cpu.Chain{}
	for _, o := range c.Operands {
		out.Operands = append(out.Operands, cpu.Operand{At: cpuAt[o.At], Elem: cpuElem[o.Elem]})
	}
	for _, l := range c.Links {
		do, ok := cpuDo[l.Do]
		if !ok {
			t.Fatalf("package cpu does no %s", l.Do)
		}
		out.Links = append(out.Links, cpu.Link{Do: do, To: l.To, A: l.A, B: l.B, More: l.More, C: l.C, Base: l.Base,
			Round: cpuElem[l.Round]})
	}
	return out
}

type float interface{ float32 | float64 }

// chainCase is a chain's operands for both machines.
type chainCase[F float] struct {
	c          *cu.Chain
	rows, cols int
	spans      []cpu.Span[F]
	args       []any
	check      []func(t *testing.T, what string)
}

// runChain runs a chain with rows × cols elements on the CPU and in the machine, and compares results.
func runChain[F float](t *testing.T, m *emulate.Machine, c *cu.Chain, rows, cols int) {
	t.Helper()
	k := chainCase[F]{c: c, rows: rows, cols: cols}
	for i := range c.Operands {
		k.operand(i)
	}
	cpu.Table[F]().ChainOf(cpuChain(t, c), rows, cols, k.spans...)
	geometry := kernels.Wide
	if c.Reduces() {
		geometry = kernels.Rowwise
	}
	what := fmt.Sprintf("%s of %d × %d: %v %v", c.Name, rows, cols, c.Operands, c.Links)
	if err := m.Launch(c.Name, emulate.Launch(geometry(rows, cols)), append(k.args, rows, cols)...); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for _, check := range k.check {
		check(t, what)
	}
}

// operand makes operand i.
func (k *chainCase[F]) operand(i int) {
	o := k.c.Operands[i]
	for _, l := range k.c.Links {
		switch {
		case (l.Do == "PickGrad" || l.Do == "AddPick") && l.More[0] == i:
			k.ids()
			return
		case l.Do == "ExpGrad" && l.More[1] == i:
			n := max(k.cols-3, 1)
			k.spans, k.args = append(k.spans, cpu.Limit[F](n)), append(k.args, n)
			return
		}
	}
	if o.At == "Temp" {
		k.spans = append(k.spans, cpu.Span[F]{})
		return
	}
	n := map[string]int{"Whole": k.rows * k.cols, "PerCol": k.cols, "PerRow": k.rows, "One": 1}[o.At]
	v := make([]F, n)
	r := rand.New(rand.NewPCG(uint64(i), uint64(n)))
	for j := range v {
		v[j] = F(r.Float64()*4 - 2)
	}
	k.infinite(i, v)
	switch o.Elem {
	case "BF16":
		stored(k, i, v, func(x num.BF16) float64 { return float64(x.Wide()) }, 0x1p-8)
	case "F16":
		stored(k, i, v, func(x num.F16) float64 { return float64(x.Wide()) }, 0x1p-11)
	default:
		stored(k, i, v, func(x F) float64 { return float64(x) }, unitOf[F]())
	}
}

// infinite makes the last row's log-sum-exp that of a row with nothing in it.
func (k *chainCase[F]) infinite(i int, v []F) {
	for _, l := range k.c.Links {
		if l.Do == "ExpGrad" && l.More[0] == i && k.rows > 1 {
			v[len(v)-1] = F(math.Inf(-1))
		}
	}
}

// ids has one number a row, in the part and outside it.
func (k *chainCase[F]) ids() {
	const lo = 100
	ids := make([]int32, k.rows)
	b := &emulate.Buffer{}
	for i := range ids {
		ids[i] = int32([]int{lo, lo + k.cols - 1, lo - 1, lo + k.cols, lo + k.cols/2}[i%5])
		b.Bytes = binary.LittleEndian.AppendUint32(b.Bytes, uint32(ids[i]))
	}
	k.spans, k.args = append(k.spans, cpu.IDs[F](ids, lo, k.cols)), append(k.args, b, lo, k.cols)
}

// stored adds an operand that is stored as type S, whose roundings are of unit.
func stored[S num.Stored, F float](k *chainCase[F], i int, v []F, wide func(S) float64, unit float64) {
	x := make([]S, len(v))
	num.Store(x, v)
	var z S
	size := int(unsafe.Sizeof(z))
	isResult := slices.ContainsFunc(k.c.Links, func(l cu.Link) bool { return l.To == i })
	sides := max(1, k.c.Operands[i].Sides)
	b := &emulate.Buffer{Bytes: bytes.Repeat([]byte{0xff}, len(x)*size*sides)}
	row := len(x) * size
	if sides > 1 {
		row = k.cols * size
	}
	for at := 0; at < len(x)*size && !isResult; at += row {
		copy(b.Bytes[at*sides:], bytesOf(x)[at:][:row])
	}
	if isResult {
		k.check = append(k.check, func(t *testing.T, what string) {
			var all []byte
			for at := 0; at < len(b.Bytes); at += row * sides {
				all = append(all, b.Bytes[at:][:row]...)
				for _, x := range b.Bytes[at+row:][:row*(sides-1)] {
					if x != 0xff {
						t.Fatalf("%s: operand %d: another side was written", what, i)
					}
				}
			}
			got := unsafe.Slice((*S)(unsafe.Pointer(&all[0])), len(all)/size)
			compare(t, fmt.Sprintf("%s: operand %d", what, i), got, x, wide, unit, unitOf[F]())
		})
	}
	k.spans, k.args = append(k.spans, spanOf[F](x)), append(k.args, b)
}

func spanOf[F float, S num.Stored](x []S) cpu.Span[F] {
	switch x := any(x).(type) {
	case []F:
		return cpu.Wide(x)
	case []num.BF16:
		return any(cpu.Half(x)).(cpu.Span[F])
	case []num.F16:
		return any(cpu.Half(x)).(cpu.Span[F])
	}
	panic("no such span")
}

func bytesOf[S any](x []S) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
}

func unitOf[F float]() float64 {
	var z F
	if unsafe.Sizeof(z) == 8 {
		return 0x1p-53
	}
	return 0x1p-24
}

// compare wants results within the rounding of the arithmetic or, where a chain rounds on the way to fewer bits, within
// a few of these for a number in fifty: a value next to a border may fall on either side of it.
func compare[S num.Stored](t *testing.T, what string, got, want []S, wide func(S) float64, unit, computed float64) {
	t.Helper()
	scale, off := 1.0, 0
	for _, w := range want {
		if a := math.Abs(wide(w)); !math.IsInf(a, 1) {
			scale = max(scale, a)
		}
	}
	for i := range want {
		g, w := wide(got[i]), wide(want[i])
		if g == w || g != g && w != w {
			continue
		}
		d := math.Abs(g - w)
		if d <= 80*computed*scale { // of one column, a norm multiplies a difference that ought to be 0 by 316
			continue
		}
		off++
		if !(d <= 2.5*unit*scale) || unit == computed || off > 1+len(want)/50 {
			t.Fatalf("%s: element %d is %v, want %v; %d are off", what, i, g, w, off)
		}
	}
}
