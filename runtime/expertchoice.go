package runtime

import (
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/rank"
)

// WithChoiceObserver returns the shape with which a block's router chooses experts for a micro-batch, and adds to it
// the function of [OnChoice]. A row has positions tokens on this rank, and at maps them to positions in the whole row.
func WithChoiceObserver(r *rank.Rank, b *rank.Block, at cpu.Where, positions int, shape cpu.RouteShape) cpu.RouteShape {
	if r.OnChoice == nil || !r.Training && r.EvalFirst == 0 {
		return shape
	}
	c := rank.Choice{Step: r.StepID, Segment: r.Experts.At.Segment, Layer: b.Layer}
	row := FirstRow(r, b.Micro)
	if !r.Training {
		c.Step, row = -1-r.StepID, FirstRow(r, 0)+r.EvalFirst-1
	}
	shape.Chosen = func(i int, experts []int32) {
		c.Sample, c.Position, c.Experts = row+i/positions, at.Of(i%positions), experts
		r.OnChoice(&c)
	}
	return shape
}
