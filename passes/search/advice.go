package search

import (
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
)

// Lever is a change of the hardware or the job, with the gain of the best plan under it. For moe_slack, it is the
// best plan that differs in nothing else except what is solved.
type Lever struct {
	// what changes: memory, flops, memory_bandwidth, link, network, batch, moe_slack, precision, nodes, near_batch
	Name string
	// fields of the cluster file (gpu.memory_gib) or of the job (train.global_batch), with their values
	Set map[string]any
	// gain in tokens per second, as a fraction; 0 if no plan fits under the change
	Speedup float64
	Best    *Priced // nil if no plan fits
}

// moreMemory is the additional memory per device that the memory lever tries, in GiB.
const moreMemory = 8

// levers are the changes that are tried for every problem. A change that does not apply returns nil.
var levers = []struct {
	name string
	set  func(p *Problem, c *costmodel.Cluster) map[string]any // c is p's own copy
}{
	{"memory", func(_ *Problem, c *costmodel.Cluster) map[string]any {
		if c.IsCPU() {
			return nil // devices of a CPU share its memory
		}
		c.GPU.MemoryGiB += moreMemory
		return map[string]any{"gpu.memory_gib": costmodel.SixDigits(c.GPU.MemoryGiB)}
	}},
	{"flops", func(_ *Problem, c *costmodel.Cluster) map[string]any {
		set := map[string]any{}
		for k, v := range c.GPU.PeakTFLOPS {
			c.GPU.PeakTFLOPS[k] = 2 * v
			set["gpu.peak_tflops."+k] = 2 * v
		}
		return set
	}},
	{"memory_bandwidth", func(_ *Problem, c *costmodel.Cluster) map[string]any {
		c.GPU.MemoryBandwidth *= 2
		return map[string]any{"gpu.memory_bandwidth": c.GPU.MemoryBandwidth.String()}
	}},
	{"link", func(_ *Problem, c *costmodel.Cluster) map[string]any {
		if c.Node.Devices == 1 {
			return nil
		}
		c.Node.Link.Bandwidth *= 2
		return map[string]any{"node.link.bandwidth": c.Node.Link.Bandwidth.String()}
	}},
	{"network", func(_ *Problem, c *costmodel.Cluster) map[string]any {
		if c.Nodes == 1 {
			return nil
		}
		set := map[string]any{}
		for i := range c.Network {
			c.Network[i].Bandwidth *= 2
		}
		set["network[0].bandwidth"] = c.Network[0].Bandwidth.String()
		if c.Node.Host.Bandwidth > 0 { // the path to the NICs
			c.Node.Host.Bandwidth *= 2
			set["node.host.bandwidth"] = c.Node.Host.Bandwidth.String()
		}
		return set
	}},
	{"batch", func(p *Problem, _ *costmodel.Cluster) map[string]any {
		p.GlobalBatch *= 2
		return map[string]any{"train.global_batch": p.GlobalBatch}
	}},
	{moeSlack, func(p *Problem, _ *costmodel.Cluster) map[string]any {
		if !p.IsFree(moeSlack) || DimsOf(p.Model).Experts == 0 || !p.PricedEngine().Own {
			return nil // other engines have no slots
		}
		return map[string]any{"plan." + moeSlack: slacks}
	}},
}

// moeSlack is a plan key, and the lever that tries other values of it.
const moeSlack = "moe_slack"

// slacks are the capacity factors that the lever tries. They include the default, so that a worse one is never called
// a gain.
var slacks = []float64{1.05, 1.1, space.DefaultMoESlack, 1.5, 2}

// slackTexts returns slacks as texts.
func slackTexts() (out []string) {
	for _, v := range slacks {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// leverTrials returns the trials of a problem's levers.
func leverTrials(p *Problem) (out []Trial) {
	for i := range levers {
		t := Trial{Name: levers[i].name, Problem: *p}
		t.Problem.Cluster = cloneCluster(p.Cluster)
		t.Set = levers[i].set(&t.Problem, t.Problem.Cluster)
		if t.Set != nil {
			out = append(out, t)
		}
	}
	return out
}

// cloneCluster returns a copy of a cluster that can be changed.
func cloneCluster(c *costmodel.Cluster) *costmodel.Cluster {
	own := *c
	own.GPU.PeakTFLOPS = maps.Clone(c.GPU.PeakTFLOPS)
	own.Network = slices.Clone(c.Network)
	return &own
}

// lever returns the result of a trial, compared with the best plan of the original problem.
func (r *Series) lever(t *Trial, base Priced) Lever {
	l := Lever{Name: t.Name, Set: t.Set}
	if !r.memo.IsOf(t.Problem.Model) {
		r = &Series{}
	}
	best, ok := r.bestOfTrial(t, base.Plan)
	if !ok {
		return l // no plan is legal or fits
	}
	l.Best = &best
	if t.Name == moeSlack && best.Plan.MoESlack != base.Plan.MoESlack {
		l.Set = map[string]any{"plan." + moeSlack: best.Plan.MoESlack}
	}
	if gain := costmodel.SixDigits(best.Predict.TokensPerS/base.Predict.TokensPerS - 1); gain > rounding ||
		gain < -rounding {
		l.Speedup = gain
	}
	return l
}

// bestOfTrial returns the best plan of a trial. The original plan, with its solved keys solved again, gives an upper
// bound of the step if it fits.
func (r *Series) bestOfTrial(t *Trial, plan ir.Plan) (Priced, bool) {
	p := &t.Problem
	if t.Name == moeSlack { // the same plan with another capacity factor
		p.Pins = pinsKeepingSolved(plan, Pins{moeSlack: slackTexts()}, p.Pins)
		return r.fastest(p)
	}
	now := *p
	now.Pins = pinsKeepingSolved(plan, Pins{
		"micro_batches": {strconv.Itoa(p.GlobalBatch / max(1, plan.DP*plan.MicroBatch))}},
		p.Pins)
	if near, ok := r.fastest(&now); ok {
		if best, ok, err := r.Within(p, r.time(p, near.Plan)*(1+rounding)); err == nil && ok {
			return best, true
		} // pins of the job may forbid it
	}
	return r.fastest(p)
}

// inParallel runs n independent tasks on some workers, each on a core of its own. The result does not depend on which
// worker runs which task. It panics with the first panic of a task, so that the caller can recover from it.
func inParallel[T any](n int, workers []T, do func(i int, by T)) {
	if len(workers) == 1 {
		for i := range n {
			do(i, workers[0])
		}
		return
	}
	var next atomic.Int64
	var all sync.WaitGroup
	var fault atomic.Pointer[string]
	for _, by := range workers {
		all.Go(func() {
			defer func() {
				if x := recover(); x != nil {
					text := fmt.Sprintf("%v\n%s", x, debug.Stack())
					fault.CompareAndSwap(nil, &text)
				}
			}()
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i, by)
			}
		})
	}
	all.Wait()
	if text := fault.Load(); text != nil {
		panic(*text)
	}
}

// Further is advice about a chosen plan: what would change it, and what rules of thumb would have said.
type Further struct {
	// in the order of their table, then those passed by the caller, then near questions that are notably faster
	Levers []Lever
	Thumbs []RuleOfThumb // rules of thumb that apply, in the order of their table
}

// Beyond searches for every lever and rule of thumb, on all cores. Rules are compared with the result's plan, and
// levers with own, the search's own plan. params is the model's size, and more are levers that only the caller can
// construct.
func (r *Result) Beyond(params int64, own Priced, more ...Trial) Further {
	p := r.searcher.problem
	trials := append(leverTrials(p), more...)
	q := &ruleQuestion{p: p, params: params, chosen: r.Best}
	var rules []*ruleRow
	for i := range ruleOfThumbRows {
		if t := &ruleOfThumbRows[i]; t.applies(q) {
			rules = append(rules, t)
		}
	}
	f := Further{Levers: make([]Lever, len(trials)), Thumbs: make([]RuleOfThumb, len(rules))}
	near := nearTrials(p)
	found, faster := make([]Lever, len(near)), make([]bool, len(near))
	q.found = r
	defer r.searcher.limitHelpers(0)()
	each := make([]*Series, min(1+len(trials)+len(near), runtime.GOMAXPROCS(0)))
	for i := range each {
		each[i] = &Series{memo: *r.searcher.Memo().Clone()}
	}
	inParallel(1+len(trials)+len(near), each, func(i int, s *Series) {
		switch n := i - 1 - len(trials); {
		case n >= 0:
			found[n], faster[n] = s.nearLever(&near[n], own, p.GlobalBatch, 0)
			return
		case i > 0:
			f.Levers[i-1] = s.lever(&trials[i-1], own)
			return
		}
		for j, rule := range rules { // sequential, because they use the result's own searcher
			f.Thumbs[j] = rule.answer(q, s)
		}
	})
	for i := range near {
		if faster[i] {
			f.Levers = append(f.Levers, found[i])
		}
	}
	return f
}

// Roomier returns the best plan that leaves a fraction of each device's memory free, as [Search] finds it. ok is
// false if there is none.
func Roomier(p *Problem, headroom float64) (best Priced, ok bool) {
	q := *p
	q.Headroom = max(p.Headroom, headroom)
	best, _, err := new(Series).Best(&q)
	return best, err == nil
}
