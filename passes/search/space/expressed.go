package space

import (
	"strconv"

	"github.com/planc-dev/planc/ir"
)

// A problem may ask for plans that something else can express (Problem.Expresses), such as the file of a trainer. Each
// open choice is then limited to what can be expressed. Shardings are tested without recomputation, and recomputation
// with each possible value of zero.

// canExpress reports whether a plan can be expressed.
func (p *Problem) canExpress(plan *ir.Plan) bool { return p.Expresses == nil || p.Expresses(plan) }

// expressedFamily is what the condition of a problem may depend on in addition to the open choices, the batch and the
// split of the layers. It is zero for problems without a condition.
type expressedFamily struct {
	dp, tp, pp, vpp, cp, ep, etp int
	cpKind, schedule             string
	sp                           bool
}

func (p *Problem) expressedFamily(plan *ir.Plan) expressedFamily {
	if p.Expresses == nil {
		return expressedFamily{}
	}
	return expressedFamily{plan.DP, plan.TP, plan.PP, plan.VPP, plan.CP, plan.EP, plan.ETP, plan.CPKind, plan.Schedule,
		plan.SP}
}

// expressedRecomputes returns choices with only those counts that can be expressed with some sharding.
func (p *Problem) expressedRecomputes(plan *ir.Plan, largest int, all []RecomputeChoice) []RecomputeChoice {
	if p.Expresses == nil {
		return all
	}
	var out []RecomputeChoice
	plans := plansByZero(p, plan, largest)
	for _, a := range all {
		isOpen := false // the last choice can take the next count too
		for n := a.MinN; n <= a.MaxN; n++ {
			switch is := expressesAny(p, plans, &a, n); {
			case is && isOpen:
				out[len(out)-1].MaxN = n
			case is:
				one := a
				one.MinN, one.MaxN = n, n
				out = append(out, one)
				isOpen = true
			default:
				isOpen = false
			}
		}
	}
	return out
}

// plansByZero returns a plan with each value of zero that is possible, sharded as widely as possible.
func plansByZero(p *Problem, plan *ir.Plan, largest int) (out []ir.Plan) {
	for _, shard := range p.Shardings(plan) {
		if n := len(out); n > 0 && out[n-1].Zero == shard.Zero {
			continue
		}
		sharded := *plan
		sharded.Zero, sharded.ZeroGroup, sharded.StageLayers = shard.Zero, shard.Group, strconv.Itoa(largest)
		out = append(out, sharded)
	}
	return out
}

// expressesAny reports whether one of some plans can be expressed with a recompute choice.
func expressesAny(p *Problem, plans []ir.Plan, a *RecomputeChoice, n int) bool {
	for _, plan := range plans {
		a.Apply(&plan, n)
		if p.Expresses(&plan) {
			return true
		}
	}
	return false
}
