package price

import (
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
)

// planPrecision returns the types of state of a plan at a stage of ZeRO, on which they depend for some engines.
func planPrecision(p *space.Problem, plan *ir.Plan, zero int) ir.Precision {
	return p.PricedEngine().PlanState(p.Precision, plan, zero)
}

// plainPasses are the additional times of a layer of each segment if weights are cast for each pass, see
// [engines.PlainCosts]; nil if they are not.
type plainPasses []plainPass

type plainPass struct{ forward, backward costmodel.Seconds }

// plainPasses returns the times of a plan's layers.
func (s *tablePricer) plainPasses(plan *ir.Plan, b *baseProfile) plainPasses {
	prec := planPrecision(s.problem, plan, plan.Zero)
	costs := s.problem.PricedEngine().PlainCosts(&prec, plan, plan.Zero)
	if costs.Forward+costs.Backward == 0 {
		return nil
	}
	out := make(plainPasses, len(b.elems))
	for i, n := range b.elems {
		out[i].forward, out[i].backward = costs.Times(&s.device, n)
	}
	return out
}

// addTo adds the times of a segment to a run of its layers. The second forward pass of recomputed layers casts again.
func (p plainPasses) addTo(l *costmodel.Layers, segment int) {
	if p == nil {
		return
	}
	l.Forward.Compute += p[segment].forward
	l.Backward.Compute += p[segment].backward
	if l.Recomputed > 0 { // groups run the whole forward pass again
		l.Backward.Compute += p[segment].forward
		l.Recomputed += p[segment].forward
	}
}
