package search

import (
	"slices"
	"strconv"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// enumeration iterates over all combinations of the keys' values.
type enumeration struct {
	s   *searcher
	p   *Problem
	set *ruleContext
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
	// this and the following fields belong to one choice of the degrees and of sp: whether that is legal by itself
	degreesLegal bool
	splits       map[splitKey]blockSplit
	// by the index of the micro-batch; the second list is for split backward passes
	classes   [2][]*degreeClass
	routeSets [2]*[]*routeSet
	classSlab []degreeClass // preallocated classes

	basesMet     map[profileKey]bool // bases already listed, if only bases are listed
	baseRequests []baseRequest
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
	devices := e.set.devices
	for _, pp := range e.p.ints("pp", divisors(devices)) {
		if _, pinned := e.p.Pins["pp"]; !pinned && pp > min(e.set.maxChunks(), maxStages) {
			continue
		}
		for _, tp := range e.p.ints("tp", divisors(max(1, devices/max(1, pp)))) {
			plan := e.set.plain(1, e.p.Precision)
			plan.TP, plan.PP = tp, pp
			if _, pinned := e.p.Pins["tp"]; !pinned && !obeys(&plan, "tp", e.set) {
				continue
			}
			e.contexts(plan)
		}
	}
}

// ownPositions is the least number of positions per rank for which cp is tried without a pin. With shorter parts, cp
// gains nothing that dp, tp and recomputation do not give more cheaply, and there are many such plans.
const ownPositions = 8192

// contexts iterates over cp, cp_kind and dp.
func (e *enumeration) contexts(plan ir.Plan) {
	rest := max(1, e.set.devices/max(1, plan.TP*plan.PP))
	_, asked := e.p.Pins["cp"]
	kinds, askedKind := e.p.Pins["cp_kind"]
	asked = asked || askedKind && !slices.Contains(kinds, "none")
	for _, plan.CP = range e.p.ints("cp", divisors(rest)) {
		if plan.CP > 1 && !asked && e.set.Seq/plan.CP < ownPositions {
			continue
		}
		of := []string{"none"}
		if plan.CP > 1 {
			of = e.p.contextKinds(plan)
		}
		if askedKind {
			of = kinds
		}
		for _, plan.CPKind = range of {
			if !asked && !obeys(&plan, "cp", e.set) {
				continue
			}
			plan.AxisOrder = usualOrder(&plan)
			for _, plan.DP = range e.p.ints("dp", []int{max(1, rest/max(1, plan.CP))}) {
				for _, plan.SP = range e.p.bools("sp") {
					e.experts(plan)
				}
			}
		}
	}
}

// contextKinds returns the values of cp_kind that the engine supports for a plan with cp above 1.
func (p *Problem) contextKinds(plan ir.Plan) (out []string) {
	for _, plan.CPKind = range ir.ContextKinds[1:] {
		if p.runs(&plan, "cp_kind") {
			out = append(out, plan.CPKind)
		}
	}
	return out
}

// wideExperts is the largest number of experts per block for which etp is tried without a pin. Models with more
// experts have narrow ones, and their parts are too narrow for efficient GEMMs, while ep has enough experts for many
// ranks.
const wideExperts = 16

// experts iterates over etp, ep and moe_slack. Without pins, etp is 1 or tp.
func (e *enumeration) experts(plan ir.Plan) {
	etps, eps := []int{1}, []int{1}
	if e.set.Experts > 0 {
		eps = divisors(e.set.Experts)
	}
	if e.set.Experts > 0 && e.set.Experts <= wideExperts {
		etps = slices.Compact([]int{1, plan.TP})
	}
	_, etp := e.p.Pins["etp"]
	_, ep := e.p.Pins["ep"]
	for _, plan.MoESlack = range e.p.slacks(plan.MoESlack) {
		for _, plan.ETP = range e.p.ints("etp", etps) {
			if !etp && !obeys(&plan, "etp", e.set) {
				continue
			}
			for _, plan.EP = range e.p.ints("ep", eps) {
				if ep || etp && plan.ETP < 1 || obeys(&plan, "ep", e.set) {
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
	e.classes[0], e.classes[1] = e.classes[0][:0], e.classes[1][:0]
	e.routeSets = [2]*[]*routeSet{new([]*routeSet), new([]*routeSet)}
	for _, key := range []string{"dp", "tp", "sp", "cp", "cp_kind", "ep", "etp", "moe_slack"} {
		e.degreesLegal = e.degreesLegal && obeys(plan, key, e.set)
	}
}

// slacks returns the pinned capacity factors, or the default.
func (p *Problem) slacks(usual float64) []float64 {
	texts, pinned := p.Pins["moe_slack"]
	if !pinned {
		return []float64{usual}
	}
	var out []float64
	for _, t := range texts {
		if v, err := strconv.ParseFloat(t, 64); err == nil {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// obeys reports whether a plan breaks none of the degree rules that concern a key.
func obeys(plan *ir.Plan, key string, set *ruleContext) bool {
	for _, rules := range [][]rule{degreeRules, contextRules, expertRules, set.engine} {
		for i := range rules {
			if r := &rules[i]; r.key == key && !r.ok(plan, set) {
				return false
			}
		}
	}
	return true
}

// chunks iterates over vpp and the schedules.
func (e *enumeration) chunks(plan ir.Plan) {
	if e.basesMet != nil {
		if e.degreesLegal {
			e.listBases(&plan)
		}
		return
	}
	all := make([]int, e.set.maxVPPTried(plan.PP))
	for i := range all {
		all[i] = i + 1
	}
	_, pinned := e.p.Pins["vpp"]
	for _, plan.VPP = range e.p.ints("vpp", all) {
		for _, plan.Schedule = range e.p.schedules(&plan) {
			if pinned || stageRules[2].ok(&plan, nil) {
				e.micros(plan)
			}
		}
	}
}

// schedules are all schedules of the search, in its order.
var schedules = []string{"none", "1f1b", "gpipe", "interleaved", "zb-h1", "zb-v"}

// schedules returns the schedules that are possible with a plan's chunks, or those that pins request.
func (p *Problem) schedules(plan *ir.Plan) []string {
	if vs, pinned := p.Pins["schedule"]; pinned {
		return vs
	}
	var out []string
	for _, name := range schedules {
		plan.Schedule = name
		// only on request: the gradients of experts are computed in their rounds and cannot be delayed
		if plan.Splits() && hasExperts(plan) && !p.engine().SplitsExperts {
			continue
		}
		if stageRules[0].ok(plan, nil) && stageRules[2].ok(plan, nil) && (plan.PP == 1 || knownSchedule(name)) &&
			p.runs(plan, "schedule") {
			out = append(out, name)
		}
	}
	return out
}

// micros iterates over the micro-batch sizes.
func (e *enumeration) micros(plan ir.Plan) {
	share := e.p.GlobalBatch
	if plan.DP > 0 && share%plan.DP == 0 {
		share /= plan.DP
	}
	for e.microIndex, plan.MicroBatch = range e.p.ints("micro_batch", e.microBatchesFor(share)) {
		if e.tooMany() {
			return
		}
		plan.MicroBatches = e.p.GlobalBatch / max(1, plan.DP*plan.MicroBatch)
		if c := e.degreeClass(&plan); e.limit > 0 && c != nil &&
			(e.s.workBound(c, &plan) > e.limit || e.s.pipelineBound(e.p, c, &plan) > e.limit) {
			e.skipped = true
			continue
		}
		k := splitKey{plan.VPP, plan.MicroBatch, plan.Splits(), plan.Schedule == "zb-v"}
		if !e.degreesLegal || plan.PP*plan.VPP > e.set.maxChunks() {
			k.micro = 0 // the plan is illegal anyway
		}
		of, known := e.splits[k]
		if !known {
			of.counts, of.text = e.shared(e.split(&plan))
			e.splits[k] = of
		}
		plan.StageLayers = of.text
		e.visit(&plan, of.counts)
	}
}

// tooMany reports whether there are more families than the searcher accepts.
func (e *enumeration) tooMany() bool { return len(e.out.families) > e.s.maxFamilies }

// shared returns a split and its text; equal splits are stored once.
func (e *enumeration) shared(split []int) ([]int, string) {
	e.text = appendCounts(e.text[:0], split)
	kept, met := e.sharedSplits[string(e.text)]
	if !met {
		kept = sharedSplit{slices.Clone(split), string(e.text)}
		e.sharedSplits[kept.text] = kept
	}
	return kept.counts, kept.text
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
		e.microBatches[share] = e.p.microBatchesFor(share)
	}
	return e.microBatches[share]
}

// microBatchesFor computes [enumeration.microBatchesFor].
func (p *Problem) microBatchesFor(share int) []int {
	all := divisors(share)
	var out []int
	for _, n := range all {
		if p.Pins.allows("micro_batches", strconv.Itoa(share/n)) {
			out = append(out, n)
		}
	}
	if len(out) == 0 {
		return all
	}
	return out
}

// split returns a plan's stage_layers: the pinned split, or the one that balances the stages.
func (e *enumeration) split(plan *ir.Plan) []int {
	if vs, pinned := e.p.Pins["stage_layers"]; pinned {
		plan.StageLayers = vs[0]
		return counts(plan)
	}
	n := plan.PP * plan.VPP
	if n == 1 {
		return []int{e.set.Layers}
	}
	if n > e.set.maxChunks() || n < 1 { // illegal for every split
		return []int{e.set.Layers}
	}
	if !e.degreesLegal || plan.Schedule == "zb-v" && plan.VPP != 2 {
		return even(e.set.Layers, n) // illegal anyhow
	}
	if e.p.engine().Even {
		return even(e.set.Layers, n)
	}
	c := e.degreeClass(plan)
	if c.costs == nil {
		b := e.s.baseOf(c, plan)
		c.costs = e.s.layerTimes(e.s.routeSetAt(plan, b.profile), &b.key, b.profile, plan.MicroBatch)
	}
	return e.s.balancer.balance(plan, c.costs)
}

// even splits blocks evenly over chunks, without regard to their cost. If there are too few blocks, the last chunk
// and then the first get none, because they may hold the head and the embedding.
func even(blocks, chunks int) []int {
	out := make([]int, chunks)
	if blocks < chunks && blocks >= chunks-2 {
		for c := range out {
			if c > 0 && c < chunks-1 || c == 0 && blocks == chunks-1 {
				out[c] = 1
			}
		}
		return out
	}
	for c := range out {
		out[c] = blocks*(c+1)/chunks - blocks*c/chunks
	}
	return out
}

// visit adds a family, or records why it is illegal.
func (e *enumeration) visit(plan *ir.Plan, split []int) {
	broken := 0
	if min(plan.DP, plan.TP, plan.PP, plan.VPP, plan.CP, plan.EP, plan.ETP) < 1 {
		broken = len(e.set.rules)
	}
	for i := range e.set.rules {
		if broken < e.fewest && !e.set.rules[i].ok(plan, e.set) {
			broken++
		}
	}
	if broken == 0 {
		f := e.family(plan, split)
		if f.size > 0 && e.limit > 0 && e.s.cannotFit(e.p, f) {
			e.skipped = true
			return
		}
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
func (e *enumeration) family(plan *ir.Plan, split []int) *family {
	if len(e.slab) == 0 {
		e.slab = make([]familySlot, 64)
	}
	of := &e.slab[0] // may hold a rejected family
	of.family, of.spec = family{familySpec: &of.spec, class: e.degreeClass(plan)}, familySpec{plan: *plan,
		counts: split,
		first:  e.out.size, splitsBackward: plan.Splits()}
	f := &of.family
	if len(e.p.brokenPins(*plan)) > 0 {
		return f
	}
	f.orderNames = e.s.orders(e.p, plan)
	f.size = len(e.s.shardings(e.p, plan)) * len(e.s.recomputeChoices(e.p, plan, slices.Max(split))) * len(f.orderNames)
	return f
}
