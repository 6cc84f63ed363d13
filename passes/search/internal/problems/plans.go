package problems

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
)

// Plans draws plans of a problem, without regard to its pins.
type Plans struct {
	MaxCP int // largest cp of legal plans; 0 means no limit. Rings of many ranks take long to compile.

	problem *space.Problem
	set     *space.RuleContext

	// results that are reused, because most plans that are drawn are illegal
	divisors map[int][]int
	orders   map[[4]bool][]string // axis orders, by which axes have several ranks
}

// PlansOf returns the plans of a problem.
func PlansOf(p *space.Problem) *Plans {
	return &Plans{problem: p, set: space.NewRuleContext(p, space.DimsOf(p.Model)), divisors: map[int][]int{},
		orders: map[[4]bool][]string{}}
}

// divisor draws a divisor of a number.
func (d *Plans) divisor(r *rand.Rand, n int) int {
	if d.divisors[n] == nil {
		d.divisors[n] = space.Divisors(n)
	}
	all := d.divisors[n]
	return all[r.IntN(len(all))]
}

// axisOrder draws an axis order of a plan.
func (d *Plans) axisOrder(r *rand.Rand, p *ir.Plan) string {
	k := [4]bool{p.DP > 1, p.TP > 1, p.PP > 1, p.CP > 1}
	if d.orders[k] == nil {
		d.orders[k] = space.AxisOrders(p, d.set.Nodes)
	}
	return d.orders[k][r.IntN(len(d.orders[k]))]
}

// Any draws values of a plan's keys, mostly illegal ones.
func (d *Plans) Any(r *rand.Rand) ir.Plan {
	p := d.set.SerialPlan(1, d.problem.Precision)
	rest := d.set.Devices
	for _, to := range []*int{&p.TP, &p.PP, &p.CP} {
		*to = d.divisor(r, rest)
		rest /= *to
	}
	p.DP, p.SP = rest, r.IntN(2) == 0
	if d.set.Experts > 0 {
		p.ETP, p.EP, p.MoESlack = d.divisor(r, p.TP), d.divisor(r, d.set.Experts),
			[]float64{space.DefaultMoESlack, space.DefaultMoESlack, space.DefaultMoESlack, 2}[r.IntN(4)]
	}
	if p.CP > 1 {
		p.CPKind = ir.ContextKinds[1+r.IntN(len(ir.ContextKinds)-1)]
	}
	if p.PP > 1 {
		limit := 2 // few plans with more chunks are legal
		if r.IntN(4) == 0 {
			limit = d.set.MaxVPP(p.PP)
		}
		p.VPP, p.Schedule = 1+r.IntN(limit), space.Schedules[r.IntN(len(space.Schedules))]
	}
	p.MicroBatch = d.divisor(r, max(1, d.problem.GlobalBatch/p.DP))
	p.MicroBatches = d.problem.GlobalBatch / (p.DP * p.MicroBatch)
	p.StageLayers = space.JoinCounts(space.EvenSplit(d.set.Layers, p.PP*p.VPP))
	if p.Replicas() > 1 {
		p.Zero = r.IntN(4)
	}
	if p.Zero > 0 {
		p.ZeroGroup = d.divisor(r, p.Replicas())
	}
	p.AxisOrder = d.axisOrder(r, &p)
	Recompute(r, &p)
	return p
}

// Legal draws a plan that is legal and that the problem's engine runs.
func (d *Plans) Legal(t testing.TB, r *rand.Rand) ir.Plan {
	t.Helper()
	const maxDraws = 1_000_000
	for range maxDraws {
		if p := d.Any(r); d.isLegal(&p) {
			return p
		}
	}
	t.Fatalf("none of %d drawn plans is legal", maxDraws)
	return ir.Plan{}
}

// isLegal reports whether a plan breaks no rule, and not MaxCP.
func (d *Plans) isLegal(p *ir.Plan) bool {
	if d.MaxCP > 0 && p.CP > d.MaxCP {
		return false
	}
	for i := range d.set.Rules {
		if !d.set.Rules[i].OK(p, d.set) {
			return false
		}
	}
	return true
}

// Varied draws n legal plans. It draws the schedule first, then the sharding, then the degrees, so that those with many
// plans do not dominate.
func (d *Plans) Varied(t testing.TB, r *rand.Rand, n int) (out []ir.Plan) {
	t.Helper()
	all := make([]ir.Plan, min(30*n, 3000))
	for i := range all {
		all[i] = d.Legal(t, r)
	}
	groups := grouped(all, func(p *ir.Plan) string { return p.Schedule },
		func(p *ir.Plan) string { return fmt.Sprint(p.Zero, p.ZeroGroup > 1 && p.ZeroGroup < p.DP) },
		func(p *ir.Plan) string { return fmt.Sprint(p.DP, p.TP, p.PP, p.CP, p.CPKind, p.EP, p.ETP) })
	for range n {
		out = append(out, groups.draw(r))
	}
	return out
}

// group is plans that agree in some keys, divided by the next key.
type group struct {
	plans []ir.Plan
	parts []*group
}

// grouped divides plans by keys.
func grouped(plans []ir.Plan, keys ...func(*ir.Plan) string) *group {
	g := &group{plans: plans}
	if len(keys) == 0 {
		return g
	}
	parts := map[string][]ir.Plan{}
	var values []string
	for i := range plans {
		v := keys[0](&plans[i])
		if parts[v] == nil {
			values = append(values, v)
		}
		parts[v] = append(parts[v], plans[i])
	}
	for _, v := range values {
		g.parts = append(g.parts, grouped(parts[v], keys[1:]...))
	}
	return g
}

// draw draws one value of each key, and a plan.
func (g *group) draw(r *rand.Rand) ir.Plan {
	if len(g.parts) == 0 {
		return g.plans[r.IntN(len(g.plans))]
	}
	return g.parts[r.IntN(len(g.parts))].draw(r)
}

// Uneven draws n legal plans like Varied. Half of those with a pipeline have blocks moved from some chunks to others.
func (d *Plans) Uneven(t testing.TB, r *rand.Rand, n int) []ir.Plan {
	t.Helper()
	out := d.Varied(t, r, n)
	for i := range out {
		p := &out[i]
		if p.PP > 1 && r.IntN(2) == 0 {
			d.moveBlocks(r, p)
		}
		if rs := space.BrokenRules(p, d.set); len(rs) > 0 {
			t.Fatalf("%v: %v", p.Text(), rs)
		}
	}
	return out
}

// moveBlocks moves blocks from some chunks to others.
func (d *Plans) moveBlocks(r *rand.Rand, p *ir.Plan) {
	ns := space.ParseCounts(p)
	for range 3 {
		from, to := r.IntN(len(ns)), r.IntN(len(ns))
		least := 1
		if from == 0 && d.set.Embed || from == len(ns)-1 && d.set.Head {
			least = 0
		}
		if ns[from] > least {
			ns[from]--
			ns[to]++
		}
	}
	p.StageLayers = space.JoinCounts(ns)
	p.RecomputeLayers = min(p.RecomputeLayers, p.LargestChunk())
	p.RecomputeEvery = min(p.RecomputeEvery, max(1, p.RecomputeLayers))
}

// Recompute draws the recomputation of a plan.
func Recompute(r *rand.Rand, p *ir.Plan) {
	p.Recompute = []string{"none", "selective", "full", "full"}[r.IntN(4)]
	p.RecomputeLayers, p.RecomputeEvery, p.RecomputeSplit = 0, 1, false
	if p.Recompute == "none" {
		return
	}
	p.RecomputeLayers = 1 + r.IntN(p.LargestChunk())
	if p.Recompute == "full" && r.IntN(2) == 0 {
		p.RecomputeEvery = 1 + r.IntN(p.RecomputeLayers)
	}
	p.RecomputeSplit = p.TP > 1 && !p.SP && p.RecomputeEvery == 1 && r.IntN(2) == 0
}
