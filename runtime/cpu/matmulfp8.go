package cpu

import (
	"math"

	"github.com/planc-dev/planc/runtime/num"
)

func matMul8[F Float](c, a, b []F, groups, m, n, k int, ta, tb, acc bool, as, bs num.FP8Format) {
	t := Table[F]()
	roundFP8(a, as)
	roundFP8(b, bs)
	if groups == 0 {
		t.MatMul(c, a, b, m, n, k, ta, tb, acc)
	} else {
		t.MatMulEach(c, a, b, groups, m, n, k, ta, tb, acc)
	}
}

// roundFP8 computes
//
//	for i := range x { x[i] = e.Round(x[i]*s) / s }, s = e.Scale(max |x|)
//
// Dividing by a power of two is exact, so x is not rounded a second time.
func roundFP8[F Float](x []F, e num.FP8Format) {
	var largest float64
	for _, v := range x {
		largest = max(largest, math.Abs(float64(v))) // NaN if there is one
	}
	s := e.Scale(largest)
	back := 1 / s
	for i, v := range x {
		x[i] = F(e.Round(float64(v)*s) * back)
	}
}
