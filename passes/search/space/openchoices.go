package space

import (
	"fmt"
	"maps"

	"github.com/planc-dev/planc/ir"
)

// The last choices of a plan are independent of each other: ZeRO sharding, recomputation, and the order of the axes.
// A family of plans agrees in all other choices.

// Options caches the open choices of plans: shardings, axis orders and recompute choices.
type Options struct {
	seq            int // positions of a sequence
	shardingCache  map[shardingsKey][]Sharding
	orderCache     map[ordersKey][]string
	recomputeCache map[recomputesKey][]RecomputeChoice
}

// NewOptions returns empty options.
func NewOptions(seq int) Options {
	return Options{seq, map[shardingsKey][]Sharding{}, map[ordersKey][]string{},
		map[recomputesKey][]RecomputeChoice{}}
}

// Clone returns options that start with the same contents and can change independently.
func (s *Options) Clone() Options {
	return Options{s.seq, maps.Clone(s.shardingCache), maps.Clone(s.orderCache), maps.Clone(s.recomputeCache)}
}

// Sharding is a choice of zero and zero_group.
type Sharding struct {
	Zero, Group int
	// its index among those of a problem's plans with the same replicas, and the number of these
	Index, Count   int
	WithoutTraffic bool // for bounds: as if nothing had to be communicated
}

// Shardings returns the shardings of a plan's replicas: none, and from ZeRO 1 on over each divisor that includes all
// of cp.
func (p *Problem) Shardings(plan *ir.Plan) []Sharding {
	var out []Sharding
	if plan.Replicas() == 1 {
		if p.Pins.Allows("zero", "0") && p.Pins.Allows("zero_group", "1") && p.canExpress(plan) {
			out = append(out, Sharding{Zero: 0, Group: 1})
		}
		return out
	}
	for _, zero := range p.Ints("zero", []int{0, 1, 2, 3}) {
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
			if p.Pins.Allows("zero_group", fmt.Sprint(groups[i])) && p.Runs(&sharded, "zero", "zero_group") &&
				p.canExpress(&sharded) {
				out = append(out, Sharding{Zero: zero, Group: groups[i], Index: len(out)})
			}
		}
	}
	for i := range out {
		out[i].Count = len(out)
	}
	return out
}

// shardingsKey is what the shardings of a problem depend on.
type shardingsKey struct {
	problem *Problem
	dp, cp  int
	apart   bool
	staged  bool // the plan has a pipeline; some engines then shard less
	family  expressedFamily
}

// Shardings returns the cached shardings of a problem's plans.
func (s *Options) Shardings(p *Problem, plan *ir.Plan) []Sharding {
	k := shardingsKey{p, plan.DP, plan.CP, ExpertsHaveOwnReplicas(plan), plan.PP > 1, p.expressedFamily(plan)}
	out, known := s.shardingCache[k]
	if !known {
		out = p.Shardings(plan)
		s.shardingCache[k] = out
	}
	return out
}

// RecomputeChoice is a choice of recomputation. The recompute count is solved, between MinN and MaxN:
// recompute_layers, or recompute_every for groups of blocks.
type RecomputeChoice struct {
	Kind       string
	Grouped    bool // recompute_every is above 1 and solved
	Layers     int  // recompute_layers of groups, which is not solved
	Split      bool
	MinN, MaxN int
}

// Apply sets the choice with a recompute count in a plan.
func (a *RecomputeChoice) Apply(p *ir.Plan, n int) {
	p.Recompute, p.RecomputeEvery, p.RecomputeSplit = a.Kind, 1, a.Split
	p.RecomputeLayers = n
	if a.Grouped {
		p.RecomputeLayers, p.RecomputeEvery = a.Layers, n
	}
}

// RecomputeChoices returns the choices of a plan whose largest chunk has a number of blocks.
func (p *Problem) RecomputeChoices(plan *ir.Plan, largest int) []RecomputeChoice {
	var out []RecomputeChoice
	for _, kind := range []string{"none", "selective", "full"} {
		if !p.Pins.Allows("recompute", kind) {
			continue
		}
		if kind == "none" {
			out = append(out, RecomputeChoice{Kind: kind})
			continue
		}
		splits := []bool{false}
		if _, asked := p.Pins["recompute_split"]; asked { // only on request
			splits = p.Bools("recompute_split")
		}
		for _, split := range splits {
			if split && !splittable(plan, DimsOf(p.Model).Seq) {
				continue
			}
			least := min(1, largest)
			if kind == "selective" && p.recomputesAllOrNone(plan) {
				least = largest
			}
			out = append(out, RecomputeChoice{Kind: kind, Split: split, MinN: least, MaxN: largest})
		}
		if kind == "full" && largest > 1 {
			out = append(out, p.grouped(largest)...)
		}
	}
	return p.expressedRecomputes(plan, largest, p.pinnedRecomputes(out))
}

// splittable reports whether the ranks of tp hold whole block inputs that can be split evenly over them.
func splittable(plan *ir.Plan, seq int) bool {
	return plan.TP > 1 && !plan.SP && (seq/max(1, plan.CP))%plan.TP == 0
}

// grouped returns the choices of groups of blocks: of all blocks of the largest chunk or, on request, of fewer.
func (p *Problem) grouped(largest int) []RecomputeChoice {
	var out []RecomputeChoice
	for _, layers := range p.Ints("recompute_layers", []int{largest}) {
		if layers >= 2 && layers <= largest {
			out = append(out, RecomputeChoice{Kind: "full", Grouped: true, Layers: layers, MinN: 2, MaxN: layers})
		}
	}
	return out
}

// recomputesKey is what the recompute choices of a problem depend on.
type recomputesKey struct {
	problem *Problem
	largest int
	whole   bool // ranks hold whole block inputs that can be split
	family  expressedFamily
}

// RecomputeChoices returns the cached [Problem.RecomputeChoices].
func (s *Options) RecomputeChoices(p *Problem, plan *ir.Plan, largest int) []RecomputeChoice {
	k := recomputesKey{p, largest, splittable(plan, s.seq), p.expressedFamily(plan)}
	out, known := s.recomputeCache[k]
	if !known {
		out = p.RecomputeChoices(plan, largest)
		s.recomputeCache[k] = out
	}
	return out
}

// pinnedRecomputes returns the choices that the pins of the counts allow.
func (p *Problem) pinnedRecomputes(all []RecomputeChoice) []RecomputeChoice {
	_, layers := p.Pins["recompute_layers"]
	_, every := p.Pins["recompute_every"]
	_, split := p.Pins["recompute_split"]
	if !layers && !every && !split {
		return all
	}
	var out []RecomputeChoice
	for _, a := range all {
		if split && !p.Pins.Allows("recompute_split", fmt.Sprint(a.Split)) {
			continue
		}
		if a.Kind == "none" || !a.Grouped {
			if p.Pins.Allows("recompute_every", "1") {
				out = append(out, p.exactly(a, "recompute_layers")...)
			}
			continue
		}
		out = append(out, p.exactly(a, "recompute_every")...)
	}
	return out
}

// exactly returns a choice for each pinned count, or the choice itself if the count is free.
func (p *Problem) exactly(a RecomputeChoice, key string) []RecomputeChoice {
	if _, pinned := p.Pins[key]; !pinned {
		return []RecomputeChoice{a}
	}
	var out []RecomputeChoice
	for _, n := range p.Ints(key, nil) {
		if n >= a.MinN && n <= a.MaxN {
			one := a
			one.MinN, one.MaxN = n, n
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

// Orders returns the cached axis orders of a problem.
func (s *Options) Orders(p *Problem, plan *ir.Plan) []string {
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
	for _, o := range AxisOrders(plan, p.Cluster.Nodes) {
		ordered.AxisOrder = o
		if p.Pins.Allows("axis_order", o) && p.Runs(&ordered, "axis_order") {
			out = append(out, o)
		}
	}
	return out
}
