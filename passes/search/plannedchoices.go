package search

import (
	"fmt"
	"maps"

	"github.com/planc-dev/planc/ir"
)

// The last choices of a plan are independent of each other: ZeRO sharding, recomputation, and the order of the axes.
// A family is the plans that agree in all other choices.

// planOptions caches the open choices of plans: shardings, axis orders and recompute choices.
type planOptions struct {
	seq            int // positions of a sequence
	shardingCache  map[shardingsKey][]sharding
	orderCache     map[ordersKey][]string
	recomputeCache map[recomputesKey][]recomputeChoice
}

// newPlanOptions returns empty options.
func newPlanOptions(seq int) planOptions {
	return planOptions{seq, map[shardingsKey][]sharding{}, map[ordersKey][]string{},
		map[recomputesKey][]recomputeChoice{}}
}

// clone returns options that start with the same contents and can change independently.
func (s *planOptions) clone() planOptions {
	return planOptions{s.seq, maps.Clone(s.shardingCache), maps.Clone(s.orderCache), maps.Clone(s.recomputeCache)}
}

// sharding is a choice of zero and zero_group.
type sharding struct {
	zero, group int
	// its index among those of a problem's plans with the same replicas, and the number of these
	index, all int
	still      bool // for bounds: as if nothing had to be communicated
}

// shardings returns the shardings of a plan's replicas: none, and from ZeRO 1 on over each divisor that includes all
// of cp.
func (p *Problem) shardings(plan *ir.Plan) []sharding {
	var out []sharding
	if plan.Replicas() == 1 {
		if p.Pins.allows("zero", "0") && p.Pins.allows("zero_group", "1") {
			out = append(out, sharding{zero: 0, group: 1})
		}
		return out
	}
	for _, zero := range p.ints("zero", []int{0, 1, 2, 3}) {
		if zero < 0 || zero > 3 {
			continue
		}
		groups := []int{1}
		if zero > 0 {
			groups = zeroGroups(plan)
		}
		sharded := *plan
		for i := len(groups) - 1; i >= 0; i-- {
			sharded.Zero, sharded.ZeroGroup = zero, groups[i]
			if p.Pins.allows("zero_group", fmt.Sprint(groups[i])) && p.runs(&sharded, "zero", "zero_group") {
				out = append(out, sharding{zero: zero, group: groups[i], index: len(out)})
			}
		}
	}
	for i := range out {
		out[i].all = len(out)
	}
	return out
}

// shardingsKey is what the shardings of a problem depend on.
type shardingsKey struct {
	problem *Problem
	dp, cp  int
	apart   bool
	staged  bool // the plan has a pipeline; some engines then shard less
}

// shardings returns the cached shardings of a problem's plans.
func (s *planOptions) shardings(p *Problem, plan *ir.Plan) []sharding {
	k := shardingsKey{p, plan.DP, plan.CP, hasOwnReplicas(plan), plan.PP > 1}
	out, known := s.shardingCache[k]
	if !known {
		out = p.shardings(plan)
		s.shardingCache[k] = out
	}
	return out
}

// recomputeChoice is a choice of recomputation. The recompute count is solved, between minN and maxN:
// recompute_layers, or recompute_every for groups of blocks.
type recomputeChoice struct {
	kind       string
	grouped    bool // recompute_every is above 1 and solved
	layers     int  // recompute_layers of groups, which is not solved
	split      bool
	minN, maxN int
}

// apply sets the choice with a recompute count in a plan.
func (a *recomputeChoice) apply(p *ir.Plan, n int) {
	p.Recompute, p.RecomputeEvery, p.RecomputeSplit = a.kind, 1, a.split
	p.RecomputeLayers = n
	if a.grouped {
		p.RecomputeLayers, p.RecomputeEvery = a.layers, n
	}
}

// recomputeChoices returns the choices of a plan whose largest chunk has a number of blocks.
func (p *Problem) recomputeChoices(plan *ir.Plan, largest int) []recomputeChoice {
	var out []recomputeChoice
	for _, kind := range []string{"none", "selective", "full"} {
		if !p.Pins.allows("recompute", kind) {
			continue
		}
		if kind == "none" {
			out = append(out, recomputeChoice{kind: kind})
			continue
		}
		splits := []bool{false}
		if _, asked := p.Pins["recompute_split"]; asked { // only on request
			splits = p.bools("recompute_split")
		}
		for _, split := range splits {
			if split && !splittable(plan, DimsOf(p.Model).Seq) {
				continue
			}
			least := min(1, largest)
			if kind == "selective" && p.recomputesAllOrNone(plan) {
				least = largest
			}
			out = append(out, recomputeChoice{kind: kind, split: split, minN: least, maxN: largest})
		}
		if kind == "full" && largest > 1 {
			out = append(out, p.grouped(largest)...)
		}
	}
	return p.pinnedRecomputes(out)
}

// splittable reports whether the ranks of tp hold whole block inputs that can be split evenly over them.
func splittable(plan *ir.Plan, seq int) bool {
	return plan.TP > 1 && !plan.SP && (seq/max(1, plan.CP))%plan.TP == 0
}

// grouped returns the choices of groups of blocks: of all blocks of the largest chunk or, on request, of fewer.
func (p *Problem) grouped(largest int) []recomputeChoice {
	var out []recomputeChoice
	for _, layers := range p.ints("recompute_layers", []int{largest}) {
		if layers >= 2 && layers <= largest {
			out = append(out, recomputeChoice{kind: "full", grouped: true, layers: layers, minN: 2, maxN: layers})
		}
	}
	return out
}

// recomputesKey is what the recompute choices of a problem depend on.
type recomputesKey struct {
	problem *Problem
	largest int
	whole   bool // ranks hold whole block inputs that can be split
}

// recomputeChoices returns the cached [Problem.recomputeChoices].
func (s *planOptions) recomputeChoices(p *Problem, plan *ir.Plan, largest int) []recomputeChoice {
	k := recomputesKey{p, largest, splittable(plan, s.seq)}
	out, known := s.recomputeCache[k]
	if !known {
		out = p.recomputeChoices(plan, largest)
		s.recomputeCache[k] = out
	}
	return out
}

// pinnedRecomputes returns the choices that the pins of the counts allow.
func (p *Problem) pinnedRecomputes(all []recomputeChoice) []recomputeChoice {
	_, layers := p.Pins["recompute_layers"]
	_, every := p.Pins["recompute_every"]
	_, split := p.Pins["recompute_split"]
	if !layers && !every && !split {
		return all
	}
	var out []recomputeChoice
	for _, a := range all {
		if split && !p.Pins.allows("recompute_split", fmt.Sprint(a.split)) {
			continue
		}
		if a.kind == "none" || !a.grouped {
			if p.Pins.allows("recompute_every", "1") {
				out = append(out, p.exactly(a, "recompute_layers")...)
			}
			continue
		}
		out = append(out, p.exactly(a, "recompute_every")...)
	}
	return out
}

// exactly returns a choice for each pinned count, or the choice itself if the count is free.
func (p *Problem) exactly(a recomputeChoice, key string) []recomputeChoice {
	if _, pinned := p.Pins[key]; !pinned {
		return []recomputeChoice{a}
	}
	var out []recomputeChoice
	for _, n := range p.ints(key, nil) {
		if n >= a.minN && n <= a.maxN {
			one := a
			one.minN, one.maxN = n, n
			out = append(out, one)
		}
	}
	return out
}

// ordersKey is what the axis orders of a problem depend on: which axes have several ranks.
type ordersKey struct {
	problem        *Problem
	tp, dp, cp, pp bool
}

// orders returns the cached axis orders of a problem.
func (s *planOptions) orders(p *Problem, plan *ir.Plan) []string {
	k := ordersKey{p, plan.TP > 1, plan.DP > 1, plan.CP > 1, plan.PP > 1}
	out, known := s.orderCache[k]
	if !known {
		out = p.orders(plan)
		s.orderCache[k] = out
	}
	return out
}

// orders returns the axis orders of a plan that the pins and the engine allow.
func (p *Problem) orders(plan *ir.Plan) []string {
	var out []string
	ordered := *plan
	for _, o := range axisOrders(plan, p.Cluster.Nodes) {
		ordered.AxisOrder = o
		if p.Pins.allows("axis_order", o) && p.runs(&ordered, "axis_order") {
			out = append(out, o)
		}
	}
	return out
}
