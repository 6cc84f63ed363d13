package cpu

import (
	"github.com/planc-dev/planc/runtime/rng"
)

// Keep reports whether dropout with probability p keeps the element with an index. It is a pure function,
// so that every plan drops the same elements, and gradients recompute the mask.
func Keep(key, index uint64, p float64) bool { return rng.Keep(key, index, p) }

// GlobalView places a rank's part of a tensor in the whole. In each of the N dims, 1 to 4, element i of the
// part is element i + Offset of the whole; if Half is not 0, from Half on it is element i + Then - Half.
// Half of the last dim is 0. Local and Global are the sizes. Both tensors are row-major.
type GlobalView struct {
	Local, Global, Offset [4]int
	Half, Then            [4]int
	N                     int
}

func dropout[F Float](y, x []F, p float64, key uint64, view GlobalView) {
	last := view.N - 1
	cols := view.Local[last]
	rows := 1
	for d := range last {
		rows *= view.Local[d]
	}
	scale := F(1 / (1 - p))
	for i := range rows {
		yi, xi := y[i*cols:][:cols], x[i*cols:][:cols]
		at := view.row(i)
		for j, v := range xi {
			if Keep(key, at+uint64(j), p) {
				yi[j] = v * scale
			} else {
				yi[j] = 0
			}
		}
	}
}

// row returns the global index of the first element of local row i. A row is the extent of the last dim.
func (g *GlobalView) row(i int) uint64 {
	last := g.N - 1
	at, step := g.Offset[last], g.Global[last]
	for d := last - 1; d >= 0; d-- {
		at += Where{At: g.Offset[d], Half: g.Half[d], Then: g.Then[d]}.Of(i%g.Local[d]) * step
		i /= g.Local[d]
		step *= g.Global[d]
	}
	return uint64(at)
}
