package passes

import "github.com/planc-dev/planc/ir"

// schedule orders a step: each micro-batch forward and backward, then the update. A bucket's reduction starts in
// the last backward pass, as soon as the last of its gradients is there, and runs beside what is left of it.
func schedule(p *ir.Program) error {
	last := p.Plan.MicroBatches - 1
	for m := range p.Plan.MicroBatches {
		p.Schedule = append(p.Schedule, ir.Action{Kind: ir.Forward, Micro: m}, ir.Action{Kind: ir.Backward, Micro: m})
	}
	for i, b := range p.Buckets {
		c := b.Chunks[len(b.Chunks)-1]
		p.Schedule = append(p.Schedule, ir.Action{Kind: ir.Reduce, Micro: last, Bucket: i, Segment: c.Segment, Layer: c.Layer})
	}
	p.Schedule = append(p.Schedule, ir.Action{Kind: ir.Finish})
	return nil
}
