package rank

import (
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/timeline"
)

// tracks are the times of a rank's goroutines. On a device they are those of the host, which only enqueues work.
type tracks struct {
	compute, communication *timeline.Track
}

// Compute returns the track of the rank's own goroutine.
func (t *tracks) Compute() *timeline.Track { return t.compute }

// Communication returns the track of the rank's communication goroutine.
func (t *tracks) Communication() *timeline.Track { return t.communication }

// beginPart switches the rank's own goroutine to a part of a step, for work of a kind on something with a number (-1:
// none).
func beginPart(r *Rank, p timeline.Part, kind, object string, at int) timeline.Mark {
	m := r.compute.Begin(p)
	if s := r.compute.Span(); s != nil {
		s.Kind, s.Object, s.At = kind, object, at
		if p.IsPass() {
			s.Micro = r.exec.block.Micro
		}
	}
	return m
}

// beginLayer is beginPart of a layer's work.
func beginLayer(r *Rank, p timeline.Part, kind string, l *layer) timeline.Mark {
	return beginPart(r, p, kind, l.seg.Name, l.index)
}

// beginPass is beginPart of a pass of a chunk.
func beginPass(r *Rank, kind program.ActionKind, c *chunk) timeline.Mark {
	m := r.compute.Begin(timeline.Compute)
	if s := r.compute.Span(); s != nil {
		s.Kind = map[program.ActionKind]string{program.Forward: "forward pass", program.Backward: "backward pass",
			program.WeightGrad: "weight gradients"}[kind]
		s.Object, s.At, s.Micro = "of chunk", c.Index, c.done[kind]
	}
	return m
}
