package rank

import (
	"math"
	"slices"
)

// Report is what other processes receive about a rank.
type Report struct {
	Loss, Norm, Tokens, Aux uint64
	Skip, Reduced           bool
	Layers                  []layerReport `json:",omitempty"`
}

type layerReport struct {
	Segment, Layer int
	Choices        []int64
	Dropped        int64
	Passes, Rounds int
}

// Report returns what other processes receive about a rank.
func (r *Rank) Report() Report {
	x := Report{math.Float64bits(r.LossSum), math.Float64bits(r.Norm), math.Float64bits(r.Tokens),
		math.Float64bits(r.Experts.Aux), r.Skip, r.reduced, nil}
	for id, l := range r.Experts.layers {
		x.Layers = append(x.Layers, layerReport{id.Segment, id.Layer, l.Choices, l.Dropped, l.Passes, l.Rounds})
	}
	slices.SortFunc(x.Layers, func(a, b layerReport) int { return (a.Segment-b.Segment)<<20 + a.Layer - b.Layer })
	return x
}

// ApplyReport stores what another process has sent about a rank.
func (r *Rank) ApplyReport(x *Report) {
	r.LossSum, r.Norm, r.Tokens = math.Float64frombits(x.Loss), math.Float64frombits(x.Norm),
		math.Float64frombits(x.Tokens)
	r.Experts.Aux, r.Skip, r.reduced = math.Float64frombits(x.Aux), x.Skip, x.Reduced
	r.Experts.layers = map[LayerID]*layerLoad{}
	for _, l := range x.Layers {
		r.Experts.layers[LayerID{l.Segment, l.Layer}] = &layerLoad{l.Choices, l.Dropped, l.Passes, l.Rounds}
	}
}
