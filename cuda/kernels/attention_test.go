package kernels

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/cuda/kernels/emulate"
	"github.com/planc-dev/planc/runtime/cpu"
)

// causal is the mask of autoregressive models.
var causal = cpu.AttentionMask{Causal: true}

// window is a causal mask of the last n keys.
func window(n int) cpu.AttentionMask { return cpu.AttentionMask{Causal: true, Window: n} }

// attentionShapes covers what the kernels distinguish: full, partial and missing tiles, head dims of
// several chunks, and everything that affects visibility.
var attentionShapes = map[string]cpu.AttentionShape{
	"one":       {Batch: 1, Seq: 1, KSeq: 1, Heads: 1, Group: 1, Dim: 1, VDim: 1, Scale: 1},
	"no sample": {Batch: 0, Seq: 3, KSeq: 3, Heads: 1, Group: 1, Dim: 2, VDim: 2, Scale: 1},
	"no keys":   {Batch: 1, Seq: 3, KSeq: 0, Heads: 1, Group: 1, Dim: 2, VDim: 2, Scale: 1},
	"full":      {Batch: 2, Seq: 35, KSeq: 70, Heads: 2, Group: 1, Dim: 4, VDim: 6, Scale: 0.5},
	"causal":    {Batch: 1, Seq: 67, KSeq: 67, Heads: 2, Group: 1, Dim: 72, VDim: 72, Scale: 0.125, Mask: causal},
	"grouped":   {Batch: 2, Seq: 33, KSeq: 33, Heads: 2, Group: 3, Dim: 16, VDim: 16, Scale: 0.25, Mask: causal},
	"wide":      {Batch: 1, Seq: 34, KSeq: 34, Heads: 1, Group: 2, Dim: 192, VDim: 130, Scale: 0.07, Mask: causal},
	"offset": {Batch: 1, Seq: 20, KSeq: 60, Heads: 1, Group: 2, Dim: 4, VDim: 4, Scale: 0.5, Mask: causal,
		Pos0: 45, KPos0: 2},
	"blind": {Batch: 1, Seq: 40, KSeq: 40, Heads: 1, Group: 1, Dim: 3, VDim: 2, Scale: 0.5,
		Mask: causal, KPos0: 35},
	"window": {Batch: 1, Seq: 100, KSeq: 100, Heads: 1, Group: 2, Dim: 5, VDim: 4, Scale: 0.4, Mask: window(37)},
	"past window": {Batch: 1, Seq: 8, KSeq: 5, Heads: 1, Group: 1, Dim: 3, VDim: 3, Scale: 0.4, Mask: window(4),
		Pos0: 4},
	"dropout": {Batch: 2, Seq: 34, KSeq: 35, Heads: 2, Group: 2, Dim: 3, VDim: 3, Scale: 0.5, Mask: causal,
		Pos0: 3, KPos0: 1, Dropout: 0.4, Key: 9, Batch0: 2, Head0: 1, Group0: 2, HeadsAll: 4, GroupAll: 5, SeqAll: 50,
		KSeqAll: 51},
	"capped": {Batch: 1, Seq: 39, KSeq: 39, Heads: 2, Group: 2, Dim: 5, VDim: 3, Scale: 1.7, Softcap: 2.5,
		Mask: window(35)},
	"alibi": {Batch: 1, Seq: 37, KSeq: 39, Heads: 2, Group: 1, Dim: 3, VDim: 4, Scale: 0.6, Mask: causal, Alibi: true,
		Pos0: 4, KPos0: 2, Head0: 1, HeadsAll: 3, GroupAll: 1},
	"zigzag": {Batch: 1, Seq: 48, KSeq: 48, Heads: 1, Group: 2, Dim: 4, VDim: 4, Scale: 0.5, Mask: causal,
		Pos0: 24, Zigzag: cpu.Zigzag{Half: 24, Pos1: 144, KHalf: 24, KPos1: 168}},
	"zigzag keys of later": {Batch: 1, Seq: 48, KSeq: 48, Heads: 1, Group: 1, Dim: 4, VDim: 4, Scale: 0.5,
		Mask:  window(30),
		KPos0: 24, Zigzag: cpu.Zigzag{Half: 24, Pos1: 168, KHalf: 24, KPos1: 144}},
	"more": {Batch: 2, Seq: 35, KSeq: 33, Heads: 1, Group: 2, Dim: 6, VDim: 5, Scale: 0.5, Mask: causal,
		More: true, Pos0: 20},
	"more, wide": {Batch: 1, Seq: 33, KSeq: 40, Heads: 1, Group: 1, Dim: 200, VDim: 140, Scale: 0.1,
		Mask: causal, More: true,
		Pos0: 7, KPos0: 20},
	"all at once": {Batch: 1, Seq: 35, KSeq: 90, Heads: 1, Group: 2, Dim: 64, VDim: 80, Scale: 0.3, Mask: window(60),
		Softcap: 4, Alibi: true,
		Pos0: 55, Dropout: 0.2, Key: 3, HeadsAll: 1, GroupAll: 2, SeqAll: 90, KSeqAll: 90, More: true},
}

// attended holds the operands of attention, as the type stores them, and the results of the loops in
// float64.
type attended struct {
	shape                    cpu.AttentionShape
	q, k, v, do, o0, l0, dq0 []float64
	o, lse, dq, dk, dv       []float64
	oStored, lseStored       []float64
}

// attend computes all results.
func (b bench) attend(s cpu.AttentionShape) attended {
	rows, keys := s.Batch*s.Seq*s.Heads*s.Group, s.Batch*s.KSeq*s.Heads
	a, k := b.computed(), cpu.Table[float64]()
	x := attended{shape: s, q: b.draw(rows*s.Dim, "q"), k: b.draw(keys*s.Dim, "k"), v: b.draw(keys*s.VDim, "v"),
		do: b.draw(rows*s.VDim, "do"),
		o0: b.draw(rows*s.VDim, "o"), l0: a.draw(rows, "lse"), dq0: b.draw(rows*s.Dim, "dq")}
	for i := range x.l0 { // the result for other keys; some queries see none of them
		if i%5 == 0 {
			x.l0[i] = math.Inf(-1)
			clear(x.o0[i*s.VDim:][:s.VDim])
		}
	}
	x.o, x.lse = slices.Clone(x.o0), slices.Clone(x.l0)
	k.Attention(x.o, x.lse, x.q, x.k, x.v, s)
	x.oStored, x.lseStored = b.values(b.buffer(x.o)), a.values(a.buffer(x.lse))
	x.dq, x.dk, x.dv = slices.Clone(x.dq0), make([]float64, keys*s.Dim), make([]float64, keys*s.VDim)
	k.AttentionGrad(x.dq, x.dk, x.dv, x.do, x.q, x.k, x.v, x.oStored, x.lseStored, s)
	return x
}

// first is what a result buffer holds before: the result for other keys, or NaN.
func (x *attended) first(e elem, v []float64) *emulate.Buffer {
	if x.shape.More {
		return e.buffer(v)
	}
	return e.buffer(nans(len(v)))
}

// step runs one launch of attention.
func (b bench) step(s Step, args ...any) {
	b.Helper()
	k := kernelOf(s.Kernel)
	if why := mismatch(k, args); why != "" {
		b.Fatalf("%s: %s", s.Kernel, why)
	}
	if err := machineOf(b.T, k.File).Launch(s.Kernel+"_"+b.name, emulate.Launch(s.Launch), args...); err != nil {
		b.Fatalf("%s: %v", s.Kernel, err)
	}
}

// size returns the largest magnitude of the numbers.
func size(v []float64) (top float64) {
	for _, x := range v {
		if !math.IsInf(x, 0) {
			top = max(top, math.Abs(x))
		}
	}
	return top
}

func TestAttention(t *testing.T) {
	inEachType(t, "attention", func(b bench) {
		for name, s := range attentionShapes {
			x, a := b.attend(s), b.computed()
			o, lse := x.first(b.elem, x.o0), x.first(a, x.l0)
			b.step(Attention(&s, b.name), o, lse, b.buffer(x.q), b.buffer(x.k), b.buffer(x.v), AttentionShape(&s))
			b.near(t, name+": o", b.values(o), x.o, 64, size(x.o))
			a.near(t, name+": lse", a.values(lse), x.lse, 64, 1)
		}
	})
}

func TestAttentionGrad(t *testing.T) {
	inEachType(t, "attention", func(b bench) {
		for name, s := range attentionShapes {
			b.testGrad(name, s, AttentionGrad(&s, b.name))
		}
	})
}

// testGrad runs the launches of a gradient.
func (b bench) testGrad(name string, s cpu.AttentionShape, steps [3]Step) {
	x, a := b.attend(s), b.computed()
	shape, rows := AttentionShape(&s), s.Batch*s.Seq*s.Heads*s.Group
	dq, dk, dv := x.first(b.elem, x.dq0), b.buffer(nans(len(x.dk))), b.buffer(nans(len(x.dv)))
	dot, lse := a.buffer(nans(rows)), a.buffer(x.lseStored)
	q, k, v, do := b.buffer(x.q), b.buffer(x.k), b.buffer(x.v), b.buffer(x.do)
	b.step(steps[0], dot, do, b.buffer(x.oStored), int64(rows), s.VDim)
	b.step(steps[1], dq, do, q, k, v, lse, dot, shape)
	b.step(steps[2], dk, dv, do, q, k, v, lse, dot, shape)
	roundings := 256.
	// weights and gradients of scores are rounded before they are multiplied
	if steps[1].Kernel != "attention_grad_q" {
		roundings = b.unit / b.sums * 2
	}
	b.near(b.T, name+": dq", b.values(dq), x.dq, roundings, size(x.dq)+1)
	b.near(b.T, name+": dk", b.values(dk), x.dk, roundings, size(x.dk)+1)
	b.near(b.T, name+": dv", b.values(dv), x.dv, roundings, size(x.dv)+1)
}

// A NaN in a query reaches only its own row.
func TestAttentionPassesNaN(t *testing.T) {
	inEachType(t, "attention", func(b bench) {
		s := cpu.AttentionShape{Batch: 1, Seq: 40, KSeq: 40, Heads: 1, Group: 1, Dim: 8, VDim: 8, Scale: 0.3,
			Mask: causal}
		q, k, v, a := b.draw(40*8, "q"), b.draw(40*8, "k"), b.draw(40*8, "v"), b.computed()
		q[33*8+2] = math.NaN()
		o, lse := b.buffer(nans(40*8)), a.buffer(nans(40))
		b.step(Attention(&s, b.name), o, lse, b.buffer(q), b.buffer(k), b.buffer(v), AttentionShape(&s))
		for i, x := range b.values(o) {
			if (x != x) != (i/8 == 33) {
				t.Fatalf("o[%d] is %v", i, x)
			}
		}
		if l := a.values(lse); l[33] == l[33] || l[32] != l[32] {
			t.Error(fmt.Sprint("lse ", l[32:34]))
		}
	})
}

// mmaShapes covers what the tensor-core kernels distinguish for a head dim.
func mmaShapes(dim int) map[string]cpu.AttentionShape {
	s := cpu.AttentionShape{Batch: 1, Seq: 100, KSeq: 100, Heads: 1, Group: 1, Dim: dim, VDim: dim, Scale: 0.11,
		Mask: causal}
	shaped := func(f func(s *cpu.AttentionShape)) cpu.AttentionShape {
		s := s
		f(&s)
		return s
	}
	shapes := map[string]cpu.AttentionShape{
		"causal": s,
		"full":   shaped(func(s *cpu.AttentionShape) { s.Causal, s.Seq, s.KSeq, s.Batch = false, 33, 130, 2 }),
	}
	if dim != 64 && dim != 128 {
		return shapes
	}
	shapes["grouped, more"] = shaped(func(s *cpu.AttentionShape) {
		s.Heads, s.Group, s.More, s.Pos0, s.Seq = 2, 2, true, 30, 65
	})
	shapes["zigzag window"] = shaped(func(s *cpu.AttentionShape) {
		s.Window, s.Pos0, s.Half, s.Pos1, s.KHalf, s.KPos1 = 90, 50, 50, 200, 50, 250
	})
	for _, extras := range Extras[1:] {
		shapes[extras] = shaped(func(s *cpu.AttentionShape) {
			if strings.Contains(extras, "capped") {
				s.Softcap = 2
			}
			s.Alibi = strings.Contains(extras, "alibi")
			if strings.Contains(extras, "drop") {
				s.Dropout = 0.2
			}
			s.Seq, s.KSeq, s.Pos0, s.Group, s.Key, s.HeadsAll, s.GroupAll, s.SeqAll, s.KSeqAll = 70, 90, 20, 2, 3, 1, 2,
				100, 100
		})
	}
	shapes["blind"] = shaped(func(s *cpu.AttentionShape) { s.KPos0, s.KSeq = 60, 70 })
	shapes["no keys"] = shaped(func(s *cpu.AttentionShape) { s.KSeq = 0 })
	return shapes
}

// On tensor cores, weights are rounded before they are multiplied. A result may be off by that rounding of
// its largest terms.
func TestAttentionOnTensorCores(t *testing.T) {
	onEachDim(t, func(b bench, name string, s cpu.AttentionShape) {
		if step := Attention(&s, b.name); step.Kernel != fmt.Sprint("attention", s.Dim)+extras(&s) {
			b.Fatalf("head dim %d: %s", s.Dim, step.Kernel)
		}
		x, a := b.attend(s), b.computed()
		o, lse := x.first(b.elem, x.o0), x.first(a, x.l0)
		b.step(Attention(&s, b.name), o, lse, b.buffer(x.q), b.buffer(x.k), b.buffer(x.v), AttentionShape(&s))
		b.near(b.T, name+": o", b.values(o), x.o, b.unit/b.sums, size(x.v)/(1-s.Dropout))
		a.near(b.T, name+": lse", a.values(lse), x.lse, 256, 1)
		skewed := b.buffer(x.q)
		skewed.Skew = b.size
		second := x.first(b.elem, x.o0)
		b.step(Attention(&s, b.name), second, x.first(a, x.l0), skewed, b.buffer(x.k), b.buffer(x.v),
			AttentionShape(&s))
		b.near(b.T, name+": o of queries that are not aligned", b.values(second), b.values(o), 0, 0)
	})
}

func TestAttentionGradOnTensorCores(t *testing.T) {
	onEachDim(t, func(b bench, name string, s cpu.AttentionShape) {
		b.testGrad(name, s, AttentionGrad(&s, b.name))
	})
}

// onEachDim runs a test with the shapes of each head dim.
func onEachDim(t *testing.T, test func(b bench, name string, s cpu.AttentionShape)) {
	for _, dim := range mmaDims {
		if t.Failed() && os.Getenv("PLANC_MUTATION") != "" {
			return
		}
		inEachType(t, fmt.Sprint("attention", dim), func(b bench) {
			for name, s := range mmaShapes(dim) {
				test(b, fmt.Sprint(dim, ", ", name), s)
			}
		})
	}
}

// spread returns rows of cols elements that begin every pitch elements, with NaN between them.
func spread(v []float64, cols, pitch int) []float64 {
	rows := len(v) / cols
	out := nans((rows-1)*pitch + cols)
	for i := range rows {
		copy(out[i*pitch:], v[i*cols:][:cols])
	}
	return out
}

// sideBySide covers plain and tensor-core kernels whose operands lie side by side.
var sideBySide = []cpu.AttentionShape{
	{Batch: 2, Seq: 35, KSeq: 40, Heads: 2, Group: 1, Dim: 5, VDim: 5, Scale: 0.5, Mask: causal},
	{Batch: 2, Seq: 65, KSeq: 65, Heads: 2, Group: 1, Dim: 64, VDim: 64, Scale: 0.11, Mask: causal},
	{Batch: 1, Seq: 70, KSeq: 50, Heads: 2, Group: 2, Dim: 96, VDim: 96, Scale: 0.11, Mask: causal, More: true,
		Pos0: 9},
}

// Where queries, keys and values lie does not change a bit of the results, and nothing between them is written.
func TestAttentionSideBySide(t *testing.T) {
	inEachType(t, "attention", func(b bench) {
		for _, s := range sideBySide {
			x, a, n := b.attend(s), b.computed(), s.Heads*s.Group
			run := func(pitch int) (results []*emulate.Buffer) {
				s := s
				s.Pitch = pitch
				ldq, ldk, ldv := s.LD()
				at := func(v []float64, cols, ld int) *emulate.Buffer { return b.buffer(spread(v, cols, ld)) }
				q, k, v := at(x.q, n*s.Dim, ldq), at(x.k, s.Heads*s.Dim, ldk), at(x.v, s.Heads*s.VDim, ldv)
				o, lse, do := x.first(b.elem, x.o0), x.first(a, x.l0), b.buffer(x.do)
				b.step(Attention(&s, b.name), o, lse, q, k, v, AttentionShape(&s))
				dq := x.first(b.elem, spread(x.dq0, n*s.Dim, ldq))
				dk, dv := at(nans(len(x.dk)), s.Heads*s.Dim, ldk), at(nans(len(x.dv)), s.Heads*s.VDim, ldv)
				steps, dot := AttentionGrad(&s, b.name), a.buffer(nans(len(x.lse)))
				stored := a.buffer(x.lseStored)
				b.step(steps[0], dot, do, b.buffer(x.oStored), int64(len(x.lse)), s.VDim)
				b.step(steps[1], dq, do, q, k, v, stored, dot, AttentionShape(&s))
				b.step(steps[2], dk, dv, do, q, k, v, stored, dot, AttentionShape(&s))
				return []*emulate.Buffer{o, dq, dk, dv}
			}
			pitch := 3 * n * s.Dim
			apart, own := run(pitch), run(0)
			for i, cols := range []int{n * s.VDim, n * s.Dim, s.Heads * s.Dim, s.Heads * s.VDim} {
				want := b.values(own[i])
				if i > 0 {
					want = spread(want, cols, pitch)
				}
				b.same(t, fmt.Sprintf("head dim %d: result %d", s.Dim, i), b.values(apart[i]), want)
			}
		}
	})
}
