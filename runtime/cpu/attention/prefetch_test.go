package attention

import (
	"slices"
	"testing"

	"github.com/planc-dev/planc/runtime/cpu/gemm"
)

// Prefetches never exceed a call's tensors, nor the limits of a list and of the second-level cache.
func TestAskedRows(t *testing.T) {
	defer func(was bool) { prefetchesHeads = was }(prefetchesHeads)
	prefetchesHeads = true
	s := Shape{Batch: 2, Seq: 70, KSeq: 300, Heads: 2, Group: 3, Dim: 16, VDim: 512, Pos0: 230,
		Mask: Mask{Causal: true}}
	x := drawTensors(s)
	all := func(d []float32) gemm.Mat[float32] { return gemm.Mat[float32]{D: d} }
	a := &attending[float32]{s: s, rows: qBlock, operands: operands[float32]{
		o: all(x.o), lse: x.lse, q: all(x.q), k: all(x.k), v: all(x.v),
		dq: all(x.dq), dk: all(x.dk), dv: all(x.dv), do: all(x.do),
	}}
	w := borrow[float32]()
	defer w.giveBack()
	for _, c := range []struct {
		units, lists int
		ask          func(*attending[float32], int)
	}{{2 * 6 * 2, 3, w.prefetch.askUnit}, {2 * 2, 8, w.prefetch.askGrad}} {
		a.units = c.units
		for u := range c.units + 3 {
			c.ask(a, u)
			if want := c.lists; u < c.units != (w.prefetch.n == want) {
				t.Fatalf("unit %d of %d: %d lists, want %d", u, c.units, w.prefetch.n, want)
			}
			for i, l := range w.prefetch.lists[:w.prefetch.n] {
				if (l.rows-1)*l.LD+l.cols > len(l.D) || l.rows*l.cols*4 > askMost {
					t.Errorf("unit %d asks for %d rows of %d, list %d, of %d elements", u, l.rows, l.cols, i, len(l.D))
				}
			}
			for n := 0; w.prefetch.n > 0; n++ {
				w.prefetch.ask()
				if n > 1000 {
					t.Fatal("asking does not end")
				}
			}
		}
	}
}

// If values have no elements, nothing is prefetched, and lse is the same as with values.
func TestAttentionWithoutValues(t *testing.T) {
	each(t, func(t *testing.T) {
		s := Shape{Batch: 1, Seq: 3, KSeq: 3, Heads: 70, Group: 1, Dim: 2, VDim: 2, Scale: 1}
		x := drawTensors(s)
		Forward(x.o, x.lse, x.q, x.k, x.v, s)
		s.VDim = 0
		y := drawTensors(s)
		Forward(y.o, y.lse, y.q, y.k, y.v, s)
		if !slices.Equal(x.lse, y.lse) {
			t.Error("logarithms depend on values")
		}
	})
}
