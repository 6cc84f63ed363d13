package costmodel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A GEMM takes what the best of all tilings takes, though those are not tried that cannot be it.
func TestMatrixTimeOfAllTilings(t *testing.T) {
	d, r := Device{processors: 132}, rand.New(rand.NewPCG(11, 13))
	d.rate[Matrix] = 1e15
	size := func(limit float64) float64 { return math.Ceil(math.Exp(r.Float64() * math.Log(limit))) }
	for range 20000 {
		g := GEMM{M: size(1 << 16), N: size(1 << 16), K: size(1 << 14), Batch: size(64)}
		best := 0.0
		for _, tl := range largeTiles {
			best = max(best, tl.part*occupied(g, tl, d.processors)*g.aligned()*g.K/(g.K+gemmDepth))
		}
		o := Op{Kind: Matrix, Flops: 2 * g.M * g.N * g.K * g.Batch, Shape: g}
		if got, want := d.matrixTime(&o), Seconds(o.Flops/(float64(d.rate[Matrix])*best)); got != want {
			t.Fatalf("%v takes %v s, want %v", g, got, want)
		}
	}
}
