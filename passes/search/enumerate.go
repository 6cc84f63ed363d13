package search

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/price"
	"github.com/planc-dev/planc/passes/search/space"
)

// enumeration iterates over all combinations of the keys' values.
type enumeration struct {
	s   *searcher
	p   *Problem
	set *space.RuleContext
	out *planSpace
	// the illegal plan that breaks the fewest rules, the first of several
	worst        ir.Plan
	fewest       int
	limit        costmodel.Seconds // if above 0, families that take longer are skipped
	skipped      bool              // something was skipped because of the limit
	sharedSplits map[string]sharedSplit
	text         []byte
	slab         []familySlot // preallocated families
	// pins ask for a pipeline, so an illegal plan with one may be reported
	wantsPipeline bool

	microBatches map[int][]int // micro-batch sizes, by the number of sequences per replica
	microIndex   int           // index of the current micro-batch

	// of one choice of the degrees and of sp
	degreesLegal bool // the choice is legal by itself
	splits       map[splitKey]blockSplit
	classes      price.ClassSlab

	bases *price.LayerList // if only the layers of plans are listed; otherwise nil
}

// blockSplit is the number of blocks per chunk, as numbers and as stage_layers prints it.
type blockSplit struct {
	counts []int
	text   string
}

// splitKey is what splits depend on in addition to the degrees and sp.
type splitKey struct {
	vpp, micro int
	// apart: the backward pass is split; back: chunks go down the stages and back up
	apart, back bool
}

// degrees iterates over pp and tp. It skips values that no pin requests and no rule allows.
func (e *enumeration) degrees() {
	devices := e.set.Devices
	for _, pp := range e.p.Ints("pp", space.Divisors(devices)) {
		if _, pinned := e.p.Pins["pp"]; !pinned && pp > min(e.set.MaxChunks(), space.MaxStages) {
			continue
		}
		for _, tp := range e.p.Ints("tp", space.Divisors(max(1, devices/max(1, pp)))) {
			plan := e.set.SerialPlan(1, e.p.Precision)
			plan.TP, plan.PP = tp, pp
			if _, pinned := e.p.Pins["tp"]; !pinned && !space.Obeys(&plan, "tp", e.set) {
				continue
			}
			e.contexts(plan)
		}
	}
}

// contexts iterates over cp, cp_kind and dp.
func (e *enumeration) contexts(plan ir.Plan) {
	rest := max(1, e.set.Devices/max(1, plan.TP*plan.PP))
	_, asked := e.p.Pins["cp"]
	kinds, askedKind := e.p.Pins["cp_kind"]
	asked = asked || askedKind && !slices.Contains(kinds, "none")
	for _, plan.CP = range e.p.Ints("cp", space.Divisors(rest)) {
		if plan.CP > 1 && !asked && e.set.Seq/plan.CP < space.MinOwnPositions {
			continue
		}
		kinds2 := []string{"none"}
		if plan.CP > 1 {
			kinds2 = e.p.ContextKinds(plan)
		}
		if askedKind {
			kinds2 = kinds
		}
		for _, plan.CPKind = range kinds2 {
			if !asked && !space.Obeys(&plan, "cp", e.set) {
				continue
			}
			plan.AxisOrder = space.DefaultOrder(&plan)
			for _, plan.DP = range e.p.Ints("dp", []int{max(1, rest/max(1, plan.CP))}) {
				for _, plan.SP = range e.p.Bools("sp") {
					e.experts(plan)
				}
			}
		}
	}
}

// experts iterates over etp, ep and moe_slack. Without pins, etp is 1 or tp.
func (e *enumeration) experts(plan ir.Plan) {
	etps, eps := []int{1}, []int{1}
	if e.set.Experts > 0 {
		eps = space.Divisors(e.set.Experts)
	}
	if e.set.Experts > 0 && e.set.Experts <= space.MaxSplitExperts {
		etps = slices.Compact([]int{1, plan.TP})
	}
	_, etp := e.p.Pins["etp"]
	_, ep := e.p.Pins["ep"]
	for _, plan.MoESlack = range e.p.MoESlacks(plan.MoESlack) {
		for _, plan.ETP = range e.p.Ints("etp", etps) {
			if !etp && !space.Obeys(&plan, "etp", e.set) {
				continue
			}
			for _, plan.EP = range e.p.Ints("ep", eps) {
				if ep || etp && plan.ETP < 1 || space.Obeys(&plan, "ep", e.set) {
					e.startDegrees(&plan)
					e.chunks(plan)
				}
			}
			plan.EP = 1
		}
	}
}

// startDegrees resets the state that belongs to one choice of the degrees and of sp.
func (e *enumeration) startDegrees(plan *ir.Plan) {
	e.degreesLegal = min(plan.EP, plan.ETP) >= 1
	if e.splits == nil {
		e.splits = map[splitKey]blockSplit{}
	}
	clear(e.splits)
	e.classes.Start()
	for _, key := range []string{"dp", "tp", "sp", "cp", "cp_kind", "ep", "etp", "moe_slack"} {
		e.degreesLegal = e.degreesLegal && space.Obeys(plan, key, e.set)
	}
}

// chunks iterates over vpp and the schedules.
func (e *enumeration) chunks(plan ir.Plan) {
	if e.bases != nil {
		if e.degreesLegal {
			e.listBases(&plan)
		}
		return
	}
	all := make([]int, e.set.MaxVPP(plan.PP))
	for i := range all {
		all[i] = i + 1
	}
	_, pinned := e.p.Pins["vpp"]
	for _, plan.VPP = range e.p.Ints("vpp", all) {
		for _, plan.Schedule = range e.p.Schedules(&plan) {
			if pinned || space.ChunksMatchSchedule(&plan) {
				e.micros(plan)
			}
		}
	}
}

// micros iterates over the micro-batch sizes.
func (e *enumeration) micros(plan ir.Plan) {
	share := e.p.GlobalBatch
	if plan.DP > 0 && share%plan.DP == 0 {
		share /= plan.DP
	}
	for e.microIndex, plan.MicroBatch = range e.p.Ints("micro_batch", e.microBatchesFor(share)) {
		if e.tooMany() {
			return
		}
		plan.MicroBatches = e.p.GlobalBatch / max(1, plan.DP*plan.MicroBatch)
		if c := e.degreeClass(&plan); e.limit > 0 && c != nil &&
			(e.s.WorkBound(c, &plan) > e.limit || e.s.PipelineBound(e.p, c, &plan) > e.limit) {
			e.skipped = true
			continue
		}
		k := splitKey{plan.VPP, plan.MicroBatch, plan.Splits(), plan.Schedule == "zb-v"}
		if !e.degreesLegal || plan.PP*plan.VPP > e.set.MaxChunks() {
			k.micro = 0 // the plan is illegal anyway
		}
		found, known := e.splits[k]
		if !known {
			found.counts, found.text = e.shared(e.split(&plan))
			e.splits[k] = found
		}
		plan.StageLayers = found.text
		e.visit(&plan, found.counts)
	}
}

// tooMany reports whether there are more families than the searcher accepts.
func (e *enumeration) tooMany() bool { return len(e.out.families) > e.s.maxFamilies }

// shared returns a split and its text; equal splits are stored once.
func (e *enumeration) shared(split []int) ([]int, string) {
	e.text = space.AppendCounts(e.text[:0], split)
	known, met := e.sharedSplits[string(e.text)]
	if !met {
		known = sharedSplit{slices.Clone(split), string(e.text)}
		e.sharedSplits[known.text] = known
	}
	return known.counts, known.text
}

// sharedSplit is stage_layers as numbers and as a plan prints it.
type sharedSplit struct {
	counts []int
	text   string
}

// microBatchesFor returns the micro-batch sizes for which a replica's share is a pinned number of micro-batches. If
// none is, it returns all that divide the share, so that there is a plan to report.
func (e *enumeration) microBatchesFor(share int) []int {
	if e.microBatches[share] == nil {
		e.microBatches[share] = e.p.MicroBatches(share)
	}
	return e.microBatches[share]
}

// split returns a plan's stage_layers: the pinned split, an even one if the engine prefers it and it exists, or the one
// that balances the stages.
func (e *enumeration) split(plan *ir.Plan) []int {
	if vs, pinned := e.p.Pins["stage_layers"]; pinned {
		plan.StageLayers = vs[0]
		return space.ParseCounts(plan)
	}
	n := plan.PP * plan.VPP
	if n == 1 {
		return []int{e.set.Layers}
	}
	if n > e.set.MaxChunks() || n < 1 { // illegal for every split
		return []int{e.set.Layers}
	}
	if !e.degreesLegal || plan.Schedule == "zb-v" && plan.VPP != 2 {
		return space.EvenSplit(e.set.Layers, n) // illegal anyhow
	}
	if e.p.PricedEngine().Even && e.set.Layers%n == 0 {
		return space.EvenSplit(e.set.Layers, n)
	}
	return e.s.balancer.balance(plan, e.s.LayerTotals(e.degreeClass(plan), plan))
}

// degreeClass returns the class of a plan with the current micro-batch. Plans whose degrees are illegal have none.
func (e *enumeration) degreeClass(plan *ir.Plan) *price.DegreeClass {
	if !e.degreesLegal {
		return nil
	}
	return e.classes.Class(plan, e.microIndex)
}

// visit adds a family, or records why it is illegal.
func (e *enumeration) visit(plan *ir.Plan, split []int) {
	broken := 0
	if min(plan.DP, plan.TP, plan.PP, plan.VPP, plan.CP, plan.EP, plan.ETP) < 1 {
		broken = len(e.set.Rules)
	}
	for i := range e.set.Rules {
		if broken < e.fewest && !e.set.Rules[i].OK(plan, e.set) {
			broken++
		}
	}
	if broken == 0 {
		f := e.family(plan, split)
		if f.size > 0 {
			e.out.families = append(e.out.families, f)
			e.out.size += f.size
			e.slab = e.slab[1:]
			e.watch()
			return
		}
	}
	broken++ // a legal plan that other pins forbid is nearer than any that breaks a rule
	if broken < e.fewest && (plan.PP == 1 || e.wantsPipeline) {
		e.worst, e.fewest = *plan, broken
	}
}

// family returns the family of a plan; its size is 0 if the pins allow no plan of it.
func (e *enumeration) family(plan *ir.Plan, split []int) *spaceFamily {
	if len(e.slab) == 0 {
		e.slab = make([]familySlot, 64)
	}
	slot := &e.slab[0] // may hold a rejected family
	slot.spec = price.FamilySpec{Plan: *plan, Counts: split}
	slot.family = spaceFamily{Family: price.NewFamily(&slot.spec, e.degreeClass(plan)), first: e.out.size}
	f := &slot.family
	if len(e.p.BrokenPins(*plan)) > 0 {
		return f
	}
	f.OrderNames = e.s.Orders(e.p, plan)
	f.size = len(e.s.Shardings(e.p, plan)) * len(e.s.RecomputeChoices(e.p, plan, slices.Max(split))) * len(f.OrderNames)
	return f
}

// reasons returns why the nearest plan is not legal: the rules that it breaks or, if it breaks none by itself, those
// that it breaks with the pinned values of the open keys.
func (e *enumeration) reasons() []Reason {
	rs := append(space.BrokenRules(&e.worst, e.set), e.brokenPins()...)
	if len(rs) > 0 {
		return rs
	}
	plan := e.worst
	for _, key := range space.OpenKeys {
		if vs := e.p.Pins[key]; len(vs) > 0 {
			if err := plan.SetKey(key, vs[0]); err != nil {
				rs = append(rs, Reason{Key: key, Message: err.Error()})
			}
		}
	}
	e.p.Pins.FollowOpen(&plan)
	rs = append(rs, space.BrokenRules(&plan, e.set)...)
	if len(rs) > 0 {
		return rs
	}
	return e.untried()
}

// untried returns a reason for each pinned open key if no rule is broken: no plan has its value together with the
// other pins. It never returns an empty list.
func (e *enumeration) untried() []Reason {
	var rs []Reason
	for _, key := range space.OpenKeys {
		if vs := e.p.Pins[key]; len(vs) > 0 {
			rs = append(rs, Reason{Key: key,
				Message: fmt.Sprintf("%s %s: no plan that is tried combines it with the other pins",
					key, strings.Join(vs, " or "))})
		}
	}
	if len(rs) == 0 {
		rs = []Reason{{Key: "dp", Message: "no plan is legal for this model, batch and cluster"}}
	}
	return rs
}

// brokenPins returns the pins that the nearest plan does not follow. micro_batches is only reported if the batch can
// be divided at all.
func (e *enumeration) brokenPins() []Reason {
	var rs []Reason
	for _, r := range e.p.BrokenPins(e.worst) {
		if r.Key != "micro_batches" {
			rs = append(rs, r)
			continue
		}
		for _, n := range e.p.Ints(r.Key, nil) {
			switch {
			case !e.set.DividesBatch(&e.worst):
			case e.p.Pins["micro_batch"] == nil && (n < 1 || e.set.Batch/e.worst.DP%n != 0):
				rs = append(rs, Reason{Key: r.Key, Message: e.set.NoMicroBatches(&e.worst, n)})
			default:
				rs = append(rs, Reason{Key: r.Key, Message: e.set.OtherMicroBatches(&e.worst, n)})
			}
		}
	}
	return rs
}

// listBases lists the layers that a choice of the degrees needs.
func (e *enumeration) listBases(plan *ir.Plan) {
	for _, vpp := range []int{1, 2} {
		plan.VPP = vpp
		for _, plan.Schedule = range e.p.Schedules(plan) {
			if plan.PP > 1 || plan.VPP == 1 {
				e.bases.Add(*plan)
			}
		}
	}
}

// precompile lets other cores compile the layers that an enumeration needs.
func (s *searcher) precompile(p *Problem, set *space.RuleContext) {
	if s.Helpers() == 0 {
		return
	}
	e := &enumeration{s: s, p: p, set: set, bases: &price.LayerList{}}
	e.degrees()
	s.Precompile(p, e.bases)
}

// precompileRecomputed lets other cores compile the layers that the families of a search need once they are expanded:
// first and the queued families, in the order of their bounds.
func (h *bestFirst) precompileRecomputed(first *spaceFamily) {
	h.s.PrecompileRecomputed(h.space.problem, func(yield func(*price.Family, costmodel.Seconds) bool) {
		if !yield(&first.Family, 0) {
			return
		}
		for i := range h.queue {
			if e := &h.queue[i]; e.family != nil && !yield(&e.family.Family, e.floor) {
				return
			}
		}
	}, h.filter.recompute)
}
