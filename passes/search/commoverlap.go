package search

import (
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// opSpan is where a collective stands among a function's ops. It begins before op number from, and op number until
// waits for it. Blocking collectives begin and end at the same op. A ring's messages overlap compute until their
// result is needed.
type opSpan struct{ from, until int }

// overlapSpan returns the span of node i of a function, which stands before op number at.
func overlapSpan(f *ir.Func, m ir.Mesh, i, at int) opSpan {
	if f.Nodes[i].Op != ir.OpShift {
		return opSpan{at, at}
	}
	out, until := f.Nodes[i].Outs[0], at
	for _, n := range f.Nodes[i+1:] {
		if n.Op != ir.OpShift && slices.Contains(n.Args, out) {
			break
		}
		if _, moves := n.Collective(m); !moves && !n.Op.View() {
			until++
		}
	}
	return opSpan{at, until}
}

// overlappedCost returns the cost of a function whose messages overlap its compute, one after another. On a CPU,
// ranks copy messages themselves, so messages block.
func (s *layerTimer) overlappedCost(p *funcProfile, own *computeTime, k int, rounds float64,
	ways []commRoute) costmodel.Cost {
	c := costmodel.Cost{Compute: own.time, Recomputed: own.recomputed, PaddedSlots: own.padding}
	now, free, kernels := costmodel.Seconds(0), costmodel.Seconds(0), own.kernels
	ends := make([]costmodel.Seconds, len(p.comms))
	next := 0
	for i := range len(p.ops) + 1 {
		for ; next < len(p.comms) && p.comms[next].from == i; next++ {
			l := &p.comms[next]
			t, more := s.collectiveTime(l, &ways[l.kind], k, rounds)
			kernels += more
			if l.until > l.from && !s.problem.Cluster.IsCPU() {
				free = max(free, now) + t
				ends[next] = free
				continue
			}
			now += t
			l.addTo(&c, t)
		}
		for j := range p.comms[:next] { // collectives that this op waits for
			if l := &p.comms[j]; l.until == i && ends[j] > now {
				wait := ends[j] - now
				now, c.Context = ends[j], c.Context+wait
			}
		}
		if i < len(p.ops) {
			now += own.perOp[i]
		}
	}
	return s.withHostTime(c, kernels)
}
