package costmodel

import "math"

// GEMM is a matrix product of M × K by K × N, Batch times in one launch.
type GEMM struct{ M, N, K, Batch float64 }

// tile is what one multiprocessor makes of the result at a time, and the part of the best rate that it reaches with
// work for all: smaller tiles read their operands more often. The parts are those of cuBLAS's kernels by order of
// magnitude (assumed; the fit of docs/validation.md moves no single one).
type tile struct{ m, n, part float64 }

var tiles = []tile{{256, 128, 1}, {128, 256, 1}, {128, 128, 0.94}, {128, 64, 0.80}, {64, 64, 0.62}}

// gemmDepth is the part of a product's depth that fills and drains a tile's pipeline, in elements of k: a product of
// depth k runs at k/(k + gemmDepth) of its rate. Fitted (docs/validation.md).
const gemmDepth = 160

// splitK is the largest number of parts that a product's depth is cut into where its tiles leave multiprocessors idle.
const splitK = 8

// matrixTime is the time of a product: the best of the tilings, in whole waves over the multiprocessors.
func (d *Device) matrixTime(o *Op) Seconds {
	full := float64(d.rate[Matrix])
	if o.FP8 == 0 && d.wide > 0 {
		full = float64(d.wide)
	}
	if d.processors == 0 || o.Flops == 0 {
		return Seconds(o.Flops / full)
	}
	g, best, aligned := o.Shape, 0.0, o.Shape.aligned()
	for _, t := range tiles {
		const more = 1 + 1e-9 // than what rounding adds: no tiling does more for the result than all that it does
		if t.part*aligned*g.K/(g.K+gemmDepth)*more < best {
			continue
		}
		rate := t.part * occupied(g, t, d.processors) * aligned * g.K / (g.K + gemmDepth)
		best = max(best, rate)
	}
	return Seconds(o.Flops / (full * best))
}

// occupied is the part of the arithmetic that a tiling does for the result: of tiles that overhang, and of waves that
// leave multiprocessors idle, less where the depth is cut so that more of them work.
func occupied(g GEMM, t tile, processors float64) float64 {
	rows, columns := math.Ceil(g.M/t.m), math.Ceil(g.N/t.n)
	inside := g.M * g.N / (rows * t.m * columns * t.n)
	n := rows * columns * max(1, g.Batch)
	busy := waves(n, processors)
	for s := 2.0; s <= splitK && g.K/s >= 512 && n*(s-1) < processors; s++ {
		busy = max(busy, 0.9*waves(n*s, processors)) // sums of parts cost a pass
	}
	return inside * busy
}

// waves is the part of the multiprocessors that n tiles keep busy: the last wave is as long as the others.
func waves(n, processors float64) float64 { return n / (math.Ceil(n/processors) * processors) }

// aligned is what is left of the rate where a dimension is no multiple of 8 elements, which tensor cores load at a
// time: operands are copied or padded first. (BLOOM's own trials show it: heads of 108 and 150 against 96 and 112.)
func (g GEMM) aligned() float64 {
	for _, n := range []float64{g.M, g.N, g.K} {
		if n != 8*math.Trunc(n/8) {
			return unaligned
		}
	}
	return 1
}

// unaligned is what products of odd sizes keep of their rate; fitted.
const unaligned = 0.4
