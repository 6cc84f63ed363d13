package search

import "github.com/planc-dev/planc/ir"

// Composition is what one rank of a stage does in a step of a plan, composed from the profiles of single blocks. It
// equals what [Compiled] returns for the plan's program, and its arena.
type Composition struct {
	Traffic []Traffic
	Flops   float64
	Regions map[string]int // sizes of the arena's regions by name
}

// composition composes a stage of a plan: the work of functions comes from their profiles, and how often they run
// from the tables.
func (s *tablePricer) composition(t *tables, stage int) Composition {
	w := walker{l: newLedger(t.Mesh), p: t.Program, st: &t.Stages[stage], stage: stage}
	w.run = func(v *ir.Segment, kind ir.ActionKind) {
		f := t.prof.segment(v).function(kind)
		w.l.flops += f.flops
		for _, c := range f.comms {
			c.collective.Axes = c.group.axesOn(t.Mesh, c.collective.Axes)
			w.l.add(c.collective, 1)
		}
	}
	w.walk()
	return Composition{Traffic: w.l.list(), Flops: w.l.flops, Regions: s.regions(t, stage)}
}
