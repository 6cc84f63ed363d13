package kernels

import (
	"fmt"
	"math"
	"testing"

	"github.com/planc-dev/planc/runtime/cpu"
)

func TestRope(t *testing.T) {
	inEachType(t, "rope", func(b bench) {
		a := b.computed()
		for _, r := range []cpu.RopeRows{
			{Batch: 2, Seq: 5, Heads: 3, Dim: 64, Turn: 64},
			{Batch: 1, Seq: 3, Heads: 2, Dim: 40, Turn: 16},
			{Batch: 2, Seq: 2, Heads: 1, Dim: 22, From: 3, Turn: 18},
			{Batch: 1, Seq: 2, Heads: 5, Dim: 48, From: 16, Turn: 32, Pairs: true},
			{Batch: 2, Seq: 3, Heads: 3, Dim: 32, Turn: 32, Row: 4 * 32},
			{Batch: 1, Seq: 3, Heads: 2, Dim: 12, Turn: 8, Row: 31},
		} {
			for _, inverse := range []bool{false, true} {
				const theta, first = 10000.0, 70
				rows, half := r.Batch*r.Seq, r.Turn/2
				n := rows * r.Size()
				x, want := b.draw(n, "x"), make([]float64, n)
				cpu.Table[float64]().RoPEPart(want, x, r, cpu.Where{At: first}, theta, cpu.RopeScale{}, inverse)
				cos, sin := make([]float64, r.Seq*half), make([]float64, r.Seq*half)
				for s := range r.Seq {
					for j := range half {
						sin[s*half+j], cos[s*half+j] = math.Sincos(float64(first+s) * math.Pow(theta,
							-2*float64(j)/float64(r.Turn)))
					}
				}
				for _, inPlace := range []bool{false, true} {
					in, y := b.buffer(x), b.buffer(nans(n))
					if inPlace {
						y = in
					}
					b.run("rope", rows, r.Heads*r.Dim, y, in, a.buffer(cos), a.buffer(sin), rows, r.Seq, r.Size(),
						r.Heads, r.Dim, r.From, r.Turn, flag(r.Pairs), flag(inverse))
					b.near(b.T, fmt.Sprint("rope", r, inverse, inPlace), b.values(y), want, 6, 4)
				}
			}
		}
	})
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
