package search

import (
	"fmt"

	"github.com/planc-dev/planc/ir"
)

// The last choices of a plan do not depend on each other: how state is sharded, what is recomputed, in which order the
// axes lie. A family is the plans that agree in all the others.

// sharding is a choice of zero and zero_group.
type sharding struct {
	zero, group int
	index, all  int  // its number among those of a problem's plans with so many replicas, and how many these are
	still       bool // of bounds: as if nothing had to be moved
}

// shardings are those of a plan's replicas: none, and from ZeRO 1 on over each divisor of them that has all of cp.
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

// shardingsKey is whose and of how many replicas shardings are.
type shardingsKey struct {
	problem *Problem
	dp, cp  int
	apart   bool
	staged  bool // there is a pipeline, of which some engines shard less
}

// shardings are a problem's, listed once.
func (s *searcher) shardings(p *Problem, plan *ir.Plan) []sharding {
	k := shardingsKey{p, plan.DP, plan.CP, hasOwnReplicas(plan), plan.PP > 1}
	out, known := s.shardingCache[k]
	if !known {
		out = p.shardings(plan)
		s.shardingCache[k] = out
	}
	return out
}

// recompute is a choice of what is recomputed. How many blocks, or of how many blocks only one input is kept, is solved:
// least to most are the values that may be.
type recomputeChoice struct {
	kind       string
	grouped    bool // recompute_every above 1, which is solved
	layers     int  // of groups: recompute_layers, which is not
	split      bool
	minN, maxN int
}

// apply is the choice with its number in a plan.
func (a *recomputeChoice) apply(p *ir.Plan, n int) {
	p.Recompute, p.RecomputeEvery, p.RecomputeSplit = a.kind, 1, a.split
	p.RecomputeLayers = n
	if a.grouped {
		p.RecomputeLayers, p.RecomputeEvery = a.layers, n
	}
}

// recomputeChoices are the choices of a plan whose largest chunk has so many blocks.
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
		if _, asked := p.Pins["recompute_split"]; asked { // on request
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

// splittable reports whether ranks of tp hold whole inputs of blocks that can be split evenly over them.
func splittable(plan *ir.Plan, seq int) bool {
	return plan.TP > 1 && !plan.SP && (seq/max(1, plan.CP))%plan.TP == 0
}

// grouped are the choices of groups of blocks: of all blocks of the largest chunk or, on request, of fewer.
func (p *Problem) grouped(largest int) []recomputeChoice {
	var out []recomputeChoice
	for _, layers := range p.ints("recompute_layers", []int{largest}) {
		if layers >= 2 && layers <= largest {
			out = append(out, recomputeChoice{kind: "full", grouped: true, layers: layers, minN: 2, maxN: layers})
		}
	}
	return out
}

// recomputesKey is whose choices of what is recomputed, and what they depend on.
type recomputesKey struct {
	problem *Problem
	largest int
	whole   bool // ranks keep inputs of blocks whole, so that there is something to split
}

// recomputeChoices are the choices of a problem's plans that [Problem.recomputeChoices] lists, listed once.
func (s *searcher) recomputeChoices(p *Problem, plan *ir.Plan, largest int) []recomputeChoice {
	k := recomputesKey{p, largest, splittable(plan, s.dims.Seq)}
	out, known := s.recomputeCache[k]
	if !known {
		out = p.recomputeChoices(plan, largest)
		s.recomputeCache[k] = out
	}
	return out
}

// pinnedRecomputes leaves what the pins of the numbers allow.
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

// exactly is a choice for each pinned value of its number, or the choice as it is where that is free.
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

// ordersKey is whose orders, and of which of the axes there are.
type ordersKey struct {
	problem        *Problem
	tp, dp, cp, pp bool
}

// orders are a problem's, listed once.
func (s *searcher) orders(p *Problem, plan *ir.Plan) []string {
	k := ordersKey{p, plan.TP > 1, plan.DP > 1, plan.CP > 1, plan.PP > 1}
	out, known := s.orderCache[k]
	if !known {
		out = p.orders(plan)
		s.orderCache[k] = out
	}
	return out
}

// orders are the orders of a plan's axes that pins allow.
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
