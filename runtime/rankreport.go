package runtime

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

// report returns what other processes receive about a rank.
func (r *Rank) report() Report {
	x := Report{math.Float64bits(r.LossSum), math.Float64bits(r.Norm), math.Float64bits(r.Tokens),
		math.Float64bits(r.experts.aux), r.Skip, r.reduced, nil}
	for id, l := range r.experts.layers {
		x.Layers = append(x.Layers, layerReport{id.segment, id.layer, l.choices, l.dropped, l.passes, l.rounds})
	}
	slices.SortFunc(x.Layers, func(a, b layerReport) int { return (a.Segment-b.Segment)<<20 + a.Layer - b.Layer })
	return x
}

// applyReport stores what another process has sent about a rank.
func (r *Rank) applyReport(x *Report) {
	r.LossSum, r.Norm, r.Tokens = math.Float64frombits(x.Loss), math.Float64frombits(x.Norm),
		math.Float64frombits(x.Tokens)
	r.experts.aux, r.Skip, r.reduced = math.Float64frombits(x.Aux), x.Skip, x.Reduced
	r.experts.layers = map[layerID]*layerLoad{}
	for _, l := range x.Layers {
		r.experts.layers[layerID{l.Segment, l.Layer}] = &layerLoad{l.Choices, l.Dropped, l.Passes, l.Rounds}
	}
}
