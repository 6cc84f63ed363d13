package runtime

import "github.com/planc-dev/planc/runtime/cpu"

// Choice is one token's choice of experts in a layer, identified by numbers that are the same on every plan.
type Choice struct {
	Step           int // optimizer step; for an evaluation after n steps it is -1-n
	Segment, Layer int
	Sample         int // index in the step's global batch, or in the validation data
	Position       int
	Experts        []int32 // best first
}

// OnChoice calls f with each choice of experts in training steps and evaluations, concurrently from all ranks. The run
// uses the experts that f leaves in Experts. It is for tests: rounding can change the choice between two nearly equal
// experts, and f can give two plans the same choices. A recomputed pass calls f again, and ranks with the same tokens
// each call it.
func OnChoice(f func(*Choice)) Option { return func(o *options) { o.onChoice = f } }

// WithChoiceObserver returns the shape with which a block's router chooses experts for a micro-batch, and adds to it
// the function of [OnChoice]. A row has positions tokens on this rank, and at maps them to positions in the whole row.
func WithChoiceObserver(r *Rank, b *Block, at cpu.Where, positions int, shape cpu.RouteShape) cpu.RouteShape {
	if r.onChoice == nil || !r.Training && r.evalFirst == 0 {
		return shape
	}
	c := Choice{Step: r.StepID, Segment: r.experts.at.segment, Layer: b.Layer}
	row := FirstRow(r, b.Micro)
	if !r.Training {
		c.Step, row = -1-r.StepID, FirstRow(r, 0)+r.evalFirst-1
	}
	shape.Chosen = func(i int, experts []int32) {
		c.Sample, c.Position, c.Experts = row+i/positions, at.Of(i%positions), experts
		r.onChoice(&c)
	}
	return shape
}
