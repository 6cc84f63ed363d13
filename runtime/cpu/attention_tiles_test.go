package cpu

import (
	"math"
	"slices"
	"testing"

	"github.com/planc-dev/planc/runtime/num"
)

// narrowTensors are tensors with bfloat16 operands.
type narrowTensors struct {
	q, k, v, do, o   []num.BF16
	out, lse         []float32
	dq, dk, dv, wide []float32
}

func drawNarrow(s AttentionShape) narrowTensors {
	x := drawTensors[float32](s)
	return narrowTensors{
		q: narrowOf(x.q), k: narrowOf(x.k), v: narrowOf(x.v), do: narrowOf(x.do), o: narrowOf(x.o),
		out: x.o, lse: x.lse, dq: x.dq, dk: x.dk, dv: x.dv,
		wide: make([]float32, 2*(len(x.q)+len(x.o))+len(x.k)+len(x.v)),
	}
}

// narrowOf returns x rounded, at an address that is a multiple of two only, between NaNs that must not
// affect results.
func narrowOf(x []float32) []num.BF16 {
	const guard = 33
	all := make([]num.BF16, len(x)+2*guard)
	nan := make([]float32, len(all))
	for i := range nan {
		nan[i] = float32(math.NaN())
	}
	num.Store(all, nan)
	num.Store(all[guard:], x)
	return all[guard : guard+len(x) : guard+len(x)]
}

func widenedOf64(x []num.BF16) []float64 {
	out := make([]float64, len(x))
	num.Load(out, x)
	return out
}

// forward and backward call the kernels in use. For backward, o is rounded.
func (x *narrowTensors) forward(s AttentionShape) {
	Table[float32]().AttentionBF16(x.out, x.lse, x.q, x.k, x.v, x.wide, s)
	num.Store(x.o, x.out)
}

func (x *narrowTensors) backward(s AttentionShape) {
	Table[float32]().AttentionGradBF16(x.dq, x.dk, x.dv, x.do, x.q, x.k, x.v, x.o, x.lse, x.wide, s)
}

// summed is a dot product in float64, and the sum of their magnitudes.
type summed struct{ sum, size []float64 }

func newSummed(n int) summed { return summed{make([]float64, n), make([]float64, n)} }

func (s summed) add(at int, by float64, x []float64) {
	for d, v := range x {
		s.sum[at+d] += by * v
		s.size[at+d] += math.Abs(by * v)
	}
}

// attentionSums computes the sums of Attention and of its gradient query by query, with the given o and
// lse.
func attentionSums(x *narrowTensors, s AttentionShape) (o, dq, dk, dv summed) {
	q, k, v, do, at := widenedOf64(x.q), widenedOf64(x.k), widenedOf64(x.v), widenedOf64(x.do), widenedOf64(x.o)
	o, dq, dk, dv = newSummed(len(at)), newSummed(len(q)), newSummed(len(k)), newSummed(len(v))
	var hd struct{ b, h, g int }
	for r := range x.lse {
		hd.g, hd.h, hd.b = r%s.Group, r/s.Group%s.Heads, r/s.Group/s.Heads/s.Seq
		i, lo, hi := r/s.Group/s.Heads%s.Seq, 0, 0
		lo, hi = s.Keys(hd.b, i)
		for j := lo; j < hi; j++ {
			key := (hd.b*s.KSeq+j)*s.Heads + hd.h
			qr, kr, vr, dor := q[r*s.Dim:][:s.Dim], k[key*s.Dim:][:s.Dim], v[key*s.VDim:][:s.VDim],
				do[r*s.VDim:][:s.VDim]
			score, slope, z := s.Scale*along(qr, kr), 1.0, 1/(1-s.Dropout)
			if s.Softcap > 0 {
				t := math.Tanh(score / s.Softcap)
				score, slope = s.Softcap*t, 1-t*t
			}
			score += s.Slope(hd.h, hd.g) * float64(s.Values().Of(j)-s.Queries().Of(i))
			if !Keep(s.Key, s.Weight(hd.b, hd.h, hd.g, i, j), s.Dropout) {
				z = 0
			}
			p := math.Exp(score - float64(x.lse[r]))
			ds := p * (z*along(dor, vr) - along(dor, at[r*s.VDim:][:s.VDim])) * s.Scale * slope
			o.add(r*s.VDim, p*z, vr)
			dv.add(key*s.VDim, p*z, dor)
			dq.add(r*s.Dim, ds, kr)
			dk.add(key*s.Dim, ds, qr)
		}
	}
	return o, dq, dk, dv
}

// narrowShapes returns the cases with even heads, which tiles support, and unchanged; heads smaller and
// larger than a tile; and numbers of keys and queries that end a block at odd positions.
func narrowShapes() (out []AttentionShape) {
	for _, c := range attentionCases {
		even := c.s
		even.Dim, even.VDim = (even.Dim+1)&^1, (even.VDim+1)&^1
		out = append(out, c.s, even)
	}
	return append(out,
		AttentionShape{Batch: 1, Seq: 150, KSeq: 150, Heads: 2, Group: 2, Dim: 34, VDim: 66, Scale: 0.2, Mask: causal},
		AttentionShape{Batch: 2, Seq: 65, KSeq: 65, Heads: 3, Group: 1, Dim: 64, VDim: 64, Scale: 0.125, Mask: causal},
		AttentionShape{Batch: 1, Seq: 290, KSeq: 331, Heads: 1, Group: 1, Dim: 32, VDim: 6, Scale: 0.3,
			Mask: window(75), Pos0: 60, KPos0: 10},
		AttentionShape{Batch: 9, Seq: 97, KSeq: 301, Heads: 1, Group: 1, Dim: 4, VDim: 2, Scale: 0.5},
		AttentionShape{Batch: 28, Seq: 300, KSeq: 300, Heads: 1, Group: 1, Dim: 18, VDim: 30, Scale: 0.5,
			Mask: window(20)},
		AttentionShape{Batch: 1, Seq: 90, KSeq: 90, Heads: 1, Group: 2, Dim: 64, VDim: 32, Scale: 0.2, Softcap: 2,
			Mask: causal, Dropout: 0.3, Key: 5,
			HeadsAll: 1, GroupAll: 2, SeqAll: 90, KSeqAll: 90},
		AttentionShape{Batch: 1, Seq: 80, KSeq: 80, Heads: 1, Group: 1, Dim: 16, VDim: 16, Scale: 0.2, Mask: causal,
			Zigzag: Zigzag{Half: 40, Pos1: 120, KHalf: 40, KPos1: 120}},
	)
}

// withinRounding compares sums with sums of terms of which one factor was rounded to bfloat16, by at most
// 2^-8 of itself, plus float32's tolerance.
func withinRounding(t *testing.T, what string, got []float32, want summed, tol float64) {
	t.Helper()
	for i, w := range want.sum {
		if g := float64(got[i]); !(math.Abs(g-w) <= want.size[i]/256+tol*(1+math.Abs(w))) {
			t.Fatalf("%s: element %d is %v, want %v, of magnitudes %v", what, i, g, w, want.size[i])
		}
	}
}

func TestAttentionBF16(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, s := range narrowShapes() {
			x := drawNarrow(s)
			x.forward(s)
			_, lse := naiveAttention(widenedOf64(x.q), widenedOf64(x.k), widenedOf64(x.v), s)
			if s.Half == 0 {
				near(t, name("lse of ", s), x.lse, lse, 2e-5)
			}
			x.backward(s)
			o, dq, dk, dv := attentionSums(&x, s)
			withinRounding(t, name("o of ", s), x.out, o, 2e-5)
			withinRounding(t, name("dq of ", s), x.dq, dq, 1e-4)
			withinRounding(t, name("dk of ", s), x.dk, dk, 1e-4)
			withinRounding(t, name("dv of ", s), x.dv, dv, 1e-4)
		}
	})
}

// Without tiles, the bits are those of the float32 kernels on widened operands.
func TestAttentionBF16IsWidened(t *testing.T) {
	each(t, func(t *testing.T) {
		for _, s := range narrowShapes() {
			if InUse() == AMX && s.OnTiles() {
				continue
			}
			x, y, k := drawNarrow(s), drawTensors[float32](s), Table[float32]()
			x.forward(s)
			x.backward(s)
			load := func(x []num.BF16) []float32 { y := make([]float32, len(x)); num.Load(y, x); return y }
			q, key, v := load(x.q), load(x.k), load(x.v)
			k.Attention(y.o, y.lse, q, key, v, s)
			k.AttentionGrad(y.dq, y.dk, y.dv, load(x.do), q, key, v, load(x.o), y.lse, s)
			if !slices.Equal(x.out, y.o) || !slices.Equal(x.lse, y.lse) || !slices.Equal(x.dq, y.dq) ||
				!slices.Equal(x.dk, y.dk) || !slices.Equal(x.dv, y.dv) {
				t.Errorf("%+v: other bits than those of widened operands", s)
			}
		}
	})
}

// Parts of the keys, each added to the previous result, give the result of all keys.
func TestAttentionBF16OfParts(t *testing.T) {
	each(t, func(t *testing.T) {
		s := AttentionShape{Batch: 1, Seq: 70, KSeq: 100, Heads: 1, Group: 2, Dim: 34, VDim: 64, Scale: 0.2,
			Mask: causal, Pos0: 30}
		x := drawNarrow(s)
		whole, q, k, v := x, x.q, x.k, x.v
		for i, cut := range [][2]int{{0, 41}, {41, 100}} {
			part := s
			part.KPos0, part.KSeq, part.More = cut[0], cut[1]-cut[0], i > 0
			Table[float32]().AttentionBF16(x.out, x.lse, q, k[cut[0]*s.Dim:cut[1]*s.Dim],
				v[cut[0]*s.VDim:cut[1]*s.VDim], x.wide, part)
		}
		num.Store(x.o, x.out)
		for i, cut := range [][2]int{{0, 41}, {41, 100}} {
			part, lo, hi := s, cut[0], cut[1]
			part.KPos0, part.KSeq, part.More = lo, hi-lo, i > 0
			Table[float32]().AttentionGradBF16(x.dq, x.dk[lo*s.Dim:hi*s.Dim], x.dv[lo*s.VDim:hi*s.VDim], x.do, q,
				k[lo*s.Dim:hi*s.Dim], v[lo*s.VDim:hi*s.VDim], x.o, x.lse, x.wide, part)
		}
		o, dq, dk, dv := attentionSums(&whole, s)
		withinRounding(t, "o", x.out, o, 2e-5)
		withinRounding(t, "dq", x.dq, dq, 1e-4)
		withinRounding(t, "dk", x.dk, dk, 1e-4)
		withinRounding(t, "dv", x.dv, dv, 1e-4)
	})
}

// A NaN in a query reaches only that query's results, and so does an infinity.
func TestAttentionBF16PassesNaN(t *testing.T) {
	each(t, func(t *testing.T) {
		s := AttentionShape{Batch: 1, Seq: 40, KSeq: 40, Heads: 1, Group: 1, Dim: 32, VDim: 32, Scale: 0.2,
			Mask: causal}
		for _, bad := range []float64{math.NaN(), math.Inf(1)} {
			x := drawNarrow(s)
			num.Store(x.q[7*s.Dim:][:1], []float32{float32(bad)})
			x.forward(s)
			for i := range s.Seq {
				for _, o := range append(x.out[i*s.VDim:][:s.VDim:s.VDim], x.lse[i]) {
					if nan := o != o; nan != (i == 7) && (math.IsNaN(bad) || i != 7) {
						t.Fatalf("with %v in query 7, query %d has %v", bad, i, o)
					}
				}
			}
		}
	})
}

// Kernels write only their results, and do not use what surrounds their operands, which is NaN.
func TestAttentionBF16Guards(t *testing.T) {
	each(t, func(t *testing.T) {
		s := AttentionShape{Batch: 1, Seq: 67, KSeq: 67, Heads: 1, Group: 1, Dim: 34, VDim: 6, Scale: 0.2, Mask: causal}
		x := drawNarrow(s)
		const mark = 12345
		var guarded [][]float32
		guard := func(p *[]float32) {
			all := slices.Repeat([]float32{mark}, len(*p)+40)
			guarded, *p = append(guarded, all[:19], all[19+len(*p):]), all[19:19+len(*p):19+len(*p)]
		}
		for _, p := range []*[]float32{&x.out, &x.lse, &x.dq, &x.dk, &x.dv} {
			guard(p)
		}
		x.forward(s)
		x.backward(s)
		for i, g := range guarded {
			if slices.ContainsFunc(g, func(v float32) bool { return v != mark }) {
				t.Errorf("guard %d is written", i)
			}
		}
		for _, y := range [][]float32{x.out, x.lse, x.dq, x.dk, x.dv} {
			if slices.ContainsFunc(y, func(v float32) bool { return v != v }) {
				t.Error("a guard was read")
			}
		}
	})
}

func TestAttentionBF16AllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool forget")
	}
	each(t, func(t *testing.T) {
		s := AttentionShape{Batch: 1, Seq: 70, KSeq: 70, Heads: 2, Group: 1, Dim: 32, VDim: 32, Scale: 0.2,
			Mask: causal}
		x := drawNarrow(s)
		x.forward(s)
		x.backward(s)
		if n := testing.AllocsPerRun(20, func() { x.forward(s); x.backward(s) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// The bits do not depend on the number of threads, nor on the other samples.
func TestAttentionBF16OnThreads(t *testing.T) {
	each(t, func(t *testing.T) {
		s := AttentionShape{Batch: 2, Seq: 150, KSeq: 290, Heads: 2, Group: 2, Dim: 24, VDim: 16, Scale: 0.2,
			Mask: window(190), Pos0: 140}
		want := drawNarrow(s)
		want.forward(s)
		want.backward(s)
		withThreads(t, 3, func(t *testing.T) {
			for range 5 {
				x := drawNarrow(s)
				x.forward(s)
				x.backward(s)
				if !slices.Equal(x.out, want.out) || !slices.Equal(x.lse, want.lse) || !slices.Equal(x.dq, want.dq) ||
					!slices.Equal(x.dk, want.dk) || !slices.Equal(x.dv, want.dv) {
					t.Fatal("other bits on three threads than on one")
				}
			}
		})
		last := s
		last.Batch = 1
		y, half := drawNarrow(s), func(x []num.BF16) []num.BF16 { return x[len(x)/2:] }
		Table[float32]().AttentionBF16(y.out[:len(y.out)/2], y.lse[:len(y.lse)/2], half(y.q), half(y.k), half(y.v),
			y.wide, last)
		if !slices.Equal(y.out[:len(y.out)/2], want.out[len(want.out)/2:]) {
			t.Error("a sample's bits depend on the other samples of the batch")
		}
	})
}
