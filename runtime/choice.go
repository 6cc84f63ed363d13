package runtime

import "github.com/planc-dev/planc/runtime/cpu"

// Choice is a token's choice of experts in a layer, by what is the same on every plan.
type Choice struct {
	Step           int // of the optimizer; of an evaluation, minus the number of steps before it, less 1
	Segment, Layer int
	Sample         int // of the step's global batch, or of the validation
	Position       int
	Experts        []int32 // from the best on
}

// OnChoice calls f with each choice of experts that routers make for a training step or an evaluation, from all ranks
// at once, before anything follows from it; what f leaves in Experts is what counts. For tests: rounding may turn a
// choice between two experts that are nearly as good, and so f makes plans alike in all but rounding. What a backward
// pass makes again is chosen again; ranks that have the same tokens each tell of them.
func OnChoice(f func(*Choice)) Option { return func(o *options) { o.onChoice = f } }

// Chosen is the shape with which a block's router chooses for the tokens of a micro-batch: rows of positions, so many a
// row, which are at a place in the whole row. Generated code calls it.
func Chosen(r *Rank, b *Block, at cpu.Where, positions int, shape cpu.RouteShape) cpu.RouteShape {
	if r.onChoice == nil || !r.Training && r.first == 0 {
		return shape
	}
	c := Choice{Step: r.StepID, Segment: r.experts.at.segment, Layer: b.Layer}
	row := Row(r, b.Micro)
	if !r.Training {
		c.Step, row = -1-r.StepID, Row(r, 0)+r.first-1
	}
	shape.Chosen = func(i int, experts []int32) {
		c.Sample, c.Position, c.Experts = row+i/positions, at.Of(i%positions), experts
		r.onChoice(&c)
	}
	return shape
}
