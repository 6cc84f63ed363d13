package driver

import (
	"math"

	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
)

// squares are the sums of squares of a rank's parts of all parameters, and of their gradients, as bits: JSON has no
// infinities.
type squares struct{ Weights, Grads []uint64 }

// paramNorms returns the norms of all parameters after the last step, and of their gradients before clipping.
func (r *recorder) paramNorms() ([]report.ParamNorm, error) {
	if err := r.pull(func(a *program.Arena) program.Region { return a.Grads }); err != nil {
		return nil, err
	}
	all := make([]squares, len(r.crew.ranks))
	err := r.crew.do(func(k *rank.Rank) { all[k.ID] = squares{bitsOf(k.Squares(false)), bitsOf(k.Squares(true))} })
	if err != nil {
		return nil, err
	}
	if err := exchangeOfRanks(r.team, all); err != nil {
		return nil, err
	}
	names := r.crew.ranks[0].ParamNames()
	norms := make([]report.ParamNorm, len(names))
	for i, name := range names {
		var weight, grad float64
		for _, s := range all {
			weight += math.Float64frombits(s.Weights[i])
			grad += math.Float64frombits(s.Grads[i])
		}
		norms[i] = report.ParamNorm{Name: name, Weight: math.Sqrt(weight),
			Grad: math.Sqrt(grad) / r.crew.ranks[0].Scale}
	}
	return norms, nil
}

// bitsOf returns numbers as bits.
func bitsOf(x []float64) []uint64 {
	out := make([]uint64, len(x))
	for i := range x {
		out[i] = math.Float64bits(x[i])
	}
	return out
}
