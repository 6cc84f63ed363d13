package costmodel

import "math"

// GEMM is a matrix multiplication of M × K by K × N, Batch times in one launch.
type GEMM struct{ M, N, K, Batch float64 }

// tile is the part of the result that one multiprocessor computes at a time, with the fraction of the best rate that it
// reaches under full load.
type tile struct{ m, n, part float64 }

// largeTiles are those of kernels whose blocks each compute one tile. Smaller tiles read their operands more often. The
// fractions are orders of magnitude of cuBLAS's kernels (assumed; the fit of docs/validation.md does not change them
// individually).
var largeTiles = []tile{{256, 128, 1}, {128, 256, 1}, {128, 128, 0.94}, {128, 64, 0.80}, {64, 64, 0.62}}

// fineTiles are those since Hopper, whose kernels stay on their multiprocessors and divide large tiles where others
// would be idle. GEMMs measured on Hopper fit this size best; Blackwell is assumed to be alike (docs/validation.md).
var fineTiles = []tile{{64, 64, 1}}

// tilesOf returns the tiles of a GPU's generation.
func tilesOf(fine bool) []tile {
	if fine {
		return fineTiles
	}
	return largeTiles
}

// gemmDepth is the part of a GEMM's depth that fills and drains a tile's pipeline, in elements of k: a GEMM of depth k
// runs at k/(k + gemmDepth) of its rate. Fitted (docs/validation.md).
const gemmDepth = 160

// splitK is the largest number of parts into which a GEMM's depth is split if its tiles leave multiprocessors idle.
const splitK = 8

// matrixTime returns the time of a GEMM: the best of the tilings, in whole waves over the multiprocessors.
func (d *Device) matrixTime(o *Op) Seconds {
	full := float64(d.rate[Matrix])
	if o.FP8 == 0 && d.wide > 0 {
		full = float64(d.wide)
	}
	if d.processors == 0 || o.Flops == 0 {
		return Seconds(o.Flops / full)
	}
	g, best, aligned := o.Shape, 0.0, o.Shape.aligned()
	for _, t := range tilesOf(d.fine) {
		const more = 1 + 1e-9 // tolerance for rounding: no tiling exceeds the useful fraction of its own rate
		if t.part*aligned*g.K/(g.K+gemmDepth)*more < best {
			continue
		}
		rate := t.part * occupied(g, t, d.processors) * aligned * g.K / (g.K + gemmDepth)
		best = max(best, rate)
	}
	return Seconds(o.Flops / (full * best))
}

// occupied returns the useful fraction of a tiling's arithmetic. Tiles that overhang and waves that leave
// multiprocessors idle are wasted; splitting the depth keeps more multiprocessors busy.
func occupied(g GEMM, t tile, processors float64) float64 {
	rows, columns := math.Ceil(g.M/t.m), math.Ceil(g.N/t.n)
	inside := g.M * g.N / (rows * t.m * columns * t.n)
	n := rows * columns * max(1, g.Batch)
	busy := waves(n, processors)
	for s := 2.0; s <= splitK && g.K/s >= 512 && n*(s-1) < processors; s++ {
		busy = max(busy, 0.9*waves(n*s, processors)) // adding the partial sums takes a pass
	}
	return inside * busy
}

// waves returns the fraction of the multiprocessors that n tiles keep busy: the last wave takes as long as the others.
func waves(n, processors float64) float64 { return n / (math.Ceil(n/processors) * processors) }

// aligned returns the fraction of the rate that remains if a dimension is not a multiple of 8 elements, which tensor
// cores load at a time: operands are copied or padded first. (Seen in BLOOM's trials: heads of 108 and 150 against 96
// and 112.)
func (g GEMM) aligned() float64 {
	for _, n := range []float64{g.M, g.N, g.K} {
		if n != 8*math.Trunc(n/8) {
			return unaligned
		}
	}
	return 1
}

// unaligned is that fraction; fitted.
const unaligned = 0.4
