package search

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// BadPlan is reported where no plan with the pinned values is legal.
//
// Example:
//
//	plan: {tp: 3}
const BadPlan ir.Code = "BadPlan"

// IllegalError says that the pinned values leave no legal plan.
type IllegalError struct {
	Plan    ir.Plan  // the pinned plan that breaks the fewest rules
	Reasons []Reason // those rules
	Pins    Pins
}

func (e *IllegalError) Error() string {
	var ms []string
	for _, r := range e.Reasons {
		ms = append(ms, r.Message)
	}
	return fmt.Sprintf("no plan with %s is legal: %s [%s]", e.Pins, strings.Join(ms, "; "), BadPlan)
}

// space is the legal plans that the pins allow, in the order of the search's tie-breaking.
type space struct {
	problem  *Problem
	families []*family
	size     int
}

// family is the plans that agree in all but sharding, recomputation and axis order.
type family struct {
	plan   ir.Plan // without those, the axes in their usual order
	counts []int   // blocks of each chunk
	first  int     // where its plans begin in the space
	size   int
	floor  costmodel.Seconds // no plan of it takes less
	least  int               // bytes; no plan of it needs less

	frame      *frame // this and what follows: once it was asked for
	held       []hold
	blocks     [8]*blocks
	batchBytes int
	mostElems  int
	messages   []costmodel.Seconds // by the order's index; 0: not known
	names      []string            // of the orders of its axes that pins allow
	orders     []order
	costs      [][]familyCosts // by the order's index
	stateOf    [4][3]*state    // by zero, and by how groups share a copy
	problem    *Problem
	splits     bool // backward is two passes

	branches []*branch     // once it was opened
	states   [][]stateNeed // of each sharding
	layers   [][]stretch   // of each chunk
}

// space lists the families of the legal plans. If there are none, the error says which rules the nearest plan breaks.
func (s *searcher) space(p *Problem) (*space, error) {
	if err := p.pinned(s.dims); err != nil {
		return nil, err
	}
	e := &enumeration{s: s, p: p, out: &space{problem: p}, fewest: len(rules) + 2,
		set: &setting{s.dims, p.Cluster.Devices(), p.Cluster.Nodes, p.GlobalBatch}}
	for _, key := range []string{"pp", "vpp", "schedule", "stage_layers"} {
		e.staged = e.staged || p.Pins[key] != nil
	}
	e.degrees()
	if e.out.size == 0 {
		return nil, &IllegalError{Plan: e.worst, Reasons: e.reasons(), Pins: p.Pins}
	}
	return e.out, nil
}

// enumeration goes through combinations of the keys' values.
type enumeration struct {
	s      *searcher
	p      *Problem
	set    *setting
	out    *space
	worst  ir.Plan // of those that are not legal, the first that breaks the fewest rules
	fewest int
	staged bool // pins ask for a pipeline: else nobody wonders about one
}

// degrees goes through tp, pp and dp. What no pin asks for and no rule allows is left out at once.
func (e *enumeration) degrees() {
	devices := e.set.devices
	for _, pp := range e.p.ints("pp", divisors(devices)) {
		if _, pinned := e.p.Pins["pp"]; !pinned && pp > e.set.mostChunks() {
			continue
		}
		for _, tp := range e.p.ints("tp", divisors(max(1, devices/max(1, pp)))) {
			plan := e.set.plain(1, e.p.Precision)
			plan.TP, plan.PP = tp, pp
			e.set.splitExperts(&plan)
			if _, pinned := e.p.Pins["tp"]; !pinned && !obeys(&plan, "tp", e.set) {
				continue
			}
			e.contexts(plan)
		}
	}
}

// ownPositions is how many positions a rank keeps at least of a sequence where no pin says that it be split over cp: in
// shorter parts nothing is won that dp, tp and recomputation do not give cheaper, and there are many such plans.
const ownPositions = 8192

// contexts goes through cp, its kinds and dp.
func (e *enumeration) contexts(plan ir.Plan) {
	rest := max(1, e.set.devices/max(1, plan.TP*plan.PP))
	_, asked := e.p.Pins["cp"]
	kinds, askedKind := e.p.Pins["cp_kind"]
	asked = asked || askedKind && !slices.Contains(kinds, "none")
	for _, plan.CP = range e.p.ints("cp", divisors(rest)) {
		if plan.CP > 1 && (!asked && e.set.Seq/plan.CP < ownPositions || e.p.engine() != costmodel.PlancEngine) {
			continue
		}
		of := []string{"none"}
		if plan.CP > 1 {
			of = []string{"gather", "heads"}
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
					e.chunks(plan)
				}
			}
		}
	}
}

// obeys tells whether a plan breaks none of the rules of the degrees that are about a key.
func obeys(plan *ir.Plan, key string, set *setting) bool {
	for _, rules := range [][]rule{degreeRules, contextRules} {
		for i := range rules {
			if r := &rules[i]; r.key == key && !r.ok(plan, set) {
				return false
			}
		}
	}
	return true
}

// chunks goes through vpp and the schedules.
func (e *enumeration) chunks(plan ir.Plan) {
	most := 1
	if plan.PP > 1 {
		most = max(2, e.set.mostChunks()/plan.PP) // 2 may be too many, which is then what to say of zb-v
	}
	all := make([]int, most)
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

// schedules are all that the search knows, in its order.
var schedules = []string{"none", "1f1b", "gpipe", "interleaved", "zb-h1", "zb-v"}

// schedules are those that go with a number of chunks, or those that pins ask for.
func (p *Problem) schedules(plan *ir.Plan) []string {
	if vs, pinned := p.Pins["schedule"]; pinned {
		return vs
	}
	var out []string
	for _, name := range schedules {
		plan.Schedule = name
		if stageRules[0].ok(plan, nil) && stageRules[2].ok(plan, nil) && (plan.PP == 1 || knownSchedule(name)) {
			out = append(out, name)
		}
	}
	return out
}

// micros goes through the micro-batches.
func (e *enumeration) micros(plan ir.Plan) {
	share := e.p.GlobalBatch
	if plan.DP > 0 && share%plan.DP == 0 {
		share /= plan.DP
	}
	for _, plan.MicroBatch = range e.p.ints("micro_batch", e.making(share)) {
		plan.MicroBatches = e.p.GlobalBatch / max(1, plan.DP*plan.MicroBatch)
		split := e.split(&plan)
		plan.StageLayers = joinCounts(split)
		e.visit(plan, split)
	}
}

// making are the micro_batch of which a replica's share is as many micro-batches as pins ask for; if that is none of them,
// all that divide the share, so that there is a plan to say so of.
func (e *enumeration) making(share int) []int {
	all := divisors(share)
	var out []int
	for _, n := range all {
		if e.p.Pins.allows("micro_batches", strconv.Itoa(share/n)) {
			out = append(out, n)
		}
	}
	if len(out) == 0 {
		return all
	}
	return out
}

// split is a plan's stage_layers: what pins ask for, or what balance finds.
func (e *enumeration) split(plan *ir.Plan) []int {
	if vs, pinned := e.p.Pins["stage_layers"]; pinned {
		plan.StageLayers = vs[0]
		return counts(plan)
	}
	n := plan.PP * plan.VPP
	if n == 1 {
		return []int{e.set.Layers}
	}
	if n > e.set.mostChunks() || n < 1 || !obeys(plan, "dp", e.set) || !obeys(plan, "tp", e.set) || !obeys(plan, "sp", e.set) || !obeys(plan, "cp", e.set) || !obeys(plan, "cp_kind", e.set) || plan.Schedule == "zb-v" && plan.VPP != 2 {
		return even(e.set.Layers, max(0, n)) // illegal anyhow
	}
	return e.s.balance(plan, e.s.costs(plan, baseKey(*plan), e.s.base(*plan).profile, plan.MicroBatch))
}

// even splits blocks over chunks without a look at what they cost. Where there are too few, the last and then the first, which
// may have the head and the embedding, get none.
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

// visit adds a family, or notes why it is none.
func (e *enumeration) visit(plan ir.Plan, split []int) {
	broken := 0
	if min(plan.DP, plan.TP, plan.PP, plan.VPP, plan.CP) < 1 {
		broken = len(rules)
	}
	for i := range rules {
		if broken < e.fewest && !rules[i].ok(&plan, e.set) {
			broken++
		}
	}
	if broken == 0 {
		if f := e.family(plan, split); f.size > 0 {
			e.out.families = append(e.out.families, f)
			e.out.size += f.size
			return
		}
	}
	broken++ // a legal plan that pins of other keys forbid is nearer than any that breaks a rule
	if broken < e.fewest && (plan.PP == 1 || e.staged) {
		e.worst, e.fewest = plan, broken
	}
}

func (e *enumeration) family(plan ir.Plan, split []int) *family {
	f := &family{plan: plan, counts: split, first: e.out.size, splits: plan.Splits(), problem: e.p}
	if len(e.p.unfollowed(plan)) > 0 {
		return f
	}
	f.names = e.s.orders(e.p, &plan)
	f.size = len(e.s.shardings(e.p, &plan)) * len(e.p.recomputes(&plan, slices.Max(split))) * len(f.names)
	return f
}

// reasons say why the nearest plan is not legal: the rules that it breaks, or, where it breaks none by itself, those that it
// breaks with the pinned values of the keys that a family leaves open.
func (e *enumeration) reasons() []Reason {
	rs := append(legal(&e.worst, e.set, rules), e.unfollowed()...)
	if len(rs) > 0 {
		return rs
	}
	plan := e.worst
	for _, key := range open {
		if vs := e.p.Pins[key]; len(vs) > 0 {
			if err := plan.SetKey(key, vs[0]); err != nil {
				rs = append(rs, Reason{key, err.Error()})
			}
		}
	}
	if e.p.Pins["zero_group"] == nil && plan.Zero > 0 {
		plan.ZeroGroup = plan.Replicas()
	}
	if e.p.Pins["recompute_layers"] == nil && plan.Recompute != "none" {
		plan.RecomputeLayers = plan.LargestChunk()
	}
	return append(rs, legal(&plan, e.set, rules)...)
}

// unfollowed are the pins that the nearest plan does not follow. What is wrong with micro_batches there is to say only where
// the batch is shared out at all.
func (e *enumeration) unfollowed() []Reason {
	var rs []Reason
	for _, r := range e.p.unfollowed(e.worst) {
		if r.Key != "micro_batches" {
			rs = append(rs, r)
			continue
		}
		for _, n := range e.p.ints(r.Key, nil) {
			switch {
			case !e.set.shares(&e.worst):
			case e.p.Pins["micro_batch"] == nil && (n < 1 || e.set.batch/e.worst.DP%n != 0):
				rs = append(rs, Reason{r.Key, e.set.noMicros(&e.worst, n)})
			default:
				rs = append(rs, Reason{r.Key, e.set.otherMicros(&e.worst, n)})
			}
		}
	}
	return rs
}

// open are the keys that a family leaves open.
var open = []string{"zero", "zero_group", "recompute", "recompute_layers", "recompute_every", "recompute_split", "axis_order"}

// ints are the values that a key may have: the pinned ones, ascending, or all.
func (p *Problem) ints(key string, all []int) []int {
	texts, pinned := p.Pins[key]
	if !pinned {
		return all
	}
	var vs []int
	for _, t := range texts {
		if v, err := strconv.Atoi(t); err == nil {
			vs = append(vs, v)
		}
	}
	slices.Sort(vs)
	return slices.Compact(vs)
}

func (p *Problem) bools(key string) []bool {
	var vs []bool
	for _, v := range []bool{false, true} {
		if p.Pins.allows(key, strconv.FormatBool(v)) {
			vs = append(vs, v)
		}
	}
	return vs
}

// divisors of n, ascending.
func divisors(n int) []int {
	var ds []int
	for i := 1; i <= n/i; i++ {
		if n%i == 0 {
			ds = append(ds, i)
			if i != n/i {
				ds = append(ds, n/i)
			}
		}
	}
	slices.SortFunc(ds, cmp.Compare[int])
	return ds
}

// pinned refuses keys that no plan has, and values that no plan can have there.
func (p *Problem) pinned(d Dims) error {
	keys := keyValues(d.plain(1, p.Precision))
	bad := &IllegalError{Pins: p.Pins}
	for _, k := range p.Pins.names() {
		old, known := keys[k]
		if !known {
			bad.Reasons = append(bad.Reasons, Reason{k, "a plan has no " + k})
			continue
		}
		for _, v := range p.Pins[k] {
			if why := badValue(old, v); why != "" && k != "stage_layers" {
				bad.Reasons = append(bad.Reasons, Reason{k, fmt.Sprintf("%s: %q is %s", k, v, why)})
			}
		}
	}
	if len(bad.Reasons) > 0 {
		return bad
	}
	return nil
}

// badValue compares the form of a value with that of a plan's own.
func badValue(old, v string) string {
	if _, err := strconv.ParseBool(old); err == nil && (old == "true" || old == "false") {
		if v != "true" && v != "false" {
			return "neither true nor false"
		}
		return ""
	}
	if _, err := strconv.Atoi(old); err == nil {
		if _, err := strconv.Atoi(v); err != nil {
			return "no whole number"
		}
	}
	return ""
}

// unfollowed are the pins that a plan does not follow, of the keys that nothing goes through.
func (p *Problem) unfollowed(plan ir.Plan) []Reason {
	if len(p.Pins) == 0 {
		return nil
	}
	rest := p.Pins.Without(append([]string{"dp", "tp", "pp", "cp", "cp_kind", "vpp", "sp", "schedule", "micro_batch", "stage_layers"}, open...)...)
	if len(rest) == 0 {
		return nil
	}
	var rs []Reason
	kv := keyValues(plan)
	for _, k := range rest.names() {
		if !rest.allows(k, kv[k]) {
			rs = append(rs, Reason{k, fmt.Sprintf("%s %s: with the rest pinned only %s is possible", k, strings.Join(rest[k], " or "), kv[k])})
		}
	}
	return rs
}
