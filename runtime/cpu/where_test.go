package cpu

import (
	"testing"
)

// Parts of queries and keys in zigzag order, one after the other, give the result of the whole, and their
// gradients add up.
func TestAttentionInZigzagParts(t *testing.T) {
	const n, seq = 3, 24
	for _, c := range []AttentionShape{
		{Mask: causal}, {Mask: window(7)}, {}, {Mask: causal, Softcap: 2, Alibi: true, HeadsAll: 2,
			GroupAll: 2},
		{Mask: causal, Dropout: 0.3, Key: 5, HeadsAll: 2, GroupAll: 2, SeqAll: seq, KSeqAll: seq, Batch0: 1},
	} {
		c.Batch, c.Seq, c.KSeq, c.Heads, c.Group, c.Dim, c.VDim, c.Scale = 2, seq, seq, 2, 2, 3, 4, 0.7
		x, k := drawTensors[float64](c), Table[float64]()
		k.Attention(x.o, x.lse, x.q, x.k, x.v, c)
		k.AttentionGrad(x.dq, x.dk, x.dv, x.do, x.q, x.k, x.v, x.o, x.lse, c)
		qs, ks := cut(n, c.Group), cut(n, 1)
		dk, dv := make([][]float64, n), make([][]float64, n)
		for j := range n {
			dk[j], dv[j] = make([]float64, len(x.dk)/n), make([]float64, len(x.dv)/n)
		}
		for i := range n {
			q, do := qs(x.q, c.Dim, i), qs(x.do, c.VDim, i)
			o, lse, dq := make([]float64, len(x.o)/n), make([]float64, len(x.lse)/n), make([]float64, len(q))
			part := c
			part.Seq, part.KSeq = seq/n, seq/n
			place := func(j int) AttentionShape {
				part.Pos0, part.Half, part.Pos1 = i*seq/n/2, seq/n/2, (2*n-1-i)*seq/n/2
				part.KPos0, part.KHalf, part.KPos1 = j*seq/n/2, seq/n/2, (2*n-1-j)*seq/n/2
				return part
			}
			for step := range n {
				part.More = step > 0
				j := (i + step) % n
				k.Attention(o, lse, q, ks(x.k, c.Dim, j), ks(x.v, c.VDim, j), place(j))
			}
			near(t, "o", o, qs(x.o, c.VDim, i), 1e-13)
			near(t, "lse", lse, qs(x.lse, 1, i), 1e-13)
			part.More = true
			for j := range n {
				dkPart, dvPart := make([]float64, len(dk[j])), make([]float64, len(dv[j]))
				k.AttentionGrad(dq, dkPart, dvPart, do, q, ks(x.k, c.Dim, j), ks(x.v, c.VDim, j), o, lse, place(j))
				k.Add(dk[j], dkPart)
				k.Add(dv[j], dvPart)
			}
			near(t, "dq", dq, qs(x.dq, c.Dim, i), 1e-13)
		}
		for j := range n {
			near(t, "dk", dk[j], ks(x.dk, c.Dim, j), 1e-13)
			near(t, "dv", dv[j], ks(x.dv, c.VDim, j), 1e-13)
		}
	}
}

// cut returns part i of n in zigzag order of x [2, seq, heads 2 × group, dim].
func cut(n, group int) func(x []float64, dim, i int) []float64 {
	return func(x []float64, dim, i int) (out []float64) {
		row := 2 * group * dim
		seq := len(x) / 2 / row
		chunk := seq / (2 * n) * row
		for b := range 2 {
			for _, c := range []int{i, 2*n - 1 - i} {
				out = append(out, x[b*seq*row+c*chunk:][:chunk]...)
			}
		}
		return out
	}
}

func TestWhere(t *testing.T) {
	w := Where{At: 4, Half: 3, Then: 10} // 4 5 6 10 11
	for p, want := range []int{0, 0, 0, 0, 0, 1, 2, 3, 3, 3, 3, 4, 5, 5} {
		if got := w.Below(p, 5); got != want {
			t.Errorf("%d of %+v are below %d, want %d", got, w, p, want)
		}
	}
	if w.Of(2) != 6 || w.Of(3) != 10 || w.Consecutive(1, 9) != 2 || w.Consecutive(3, 2) != 2 {
		t.Errorf("%+v is misplaced", w)
	}
}
