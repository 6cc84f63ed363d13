package planner

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/passes/search/space"
)

// editor finds the plans that differ from a plan in one key, or in two if one alone is impossible.
type editor struct {
	*checker
	plan  ir.Plan
	dims  search.Dims
	seen  map[ir.Plan]bool
	found []planEdit
}

func newEditor(k *checker, plan ir.Plan) *editor {
	return &editor{checker: k, plan: plan, dims: search.DimsOf(k.free.Model), seen: map[ir.Plan]bool{plan: true}}
}

// editedKeys are the keys that are edited, in the order in which an edit of two keys names them. The others follow from
// these: dp, micro_batches, etc.
var editedKeys = []string{"tp", "pp", "vpp", "cp", "cp_kind", "ep", "etp", "sp", "zero", "zero_group", "micro_batch",
	"schedule", "recompute", "recompute_layers", "axis_order", "stage_layers"}

// companions are keys that are changed together with a key if it alone is impossible, by the key of the rule that it
// would break.
var companions = map[string][]string{
	"dp": {"tp", "pp", "cp"}, "tp": {"etp"}, "pp": {"vpp", "zero"}, "sp": {"sp"}, "cp": {"cp", "cp_kind"},
	"cp_kind": {"cp_kind"}, "ep": {"ep", "etp"}, "etp": {"etp"}, "zero": {"zero"}, "zero_group": {"zero", "zero_group"},
	"micro_batch": {"micro_batch"}, "micro_batches": {"micro_batch"}, "vpp": {"vpp", "schedule"},
	"schedule": {"schedule", "vpp"}, "recompute_split": {"recompute"}, "recompute_every": {"recompute"},
	"axis_order": {"axis_order"},
}

// edits returns all edits of the checked plan. Plans that several edits lead to are listed once. Those of an illegal
// plan that change two keys are left out if one key is enough to make it legal, except for those that fit if no edit of
// one key does.
func (k *checker) edits(verdict CheckVerdict) []planEdit {
	e := newEditor(k, k.from())
	for _, key := range editedKeys {
		for _, value := range e.values(key) {
			e.edit(key, value)
		}
	}
	isSingle := func(one planEdit) bool { return len(one.keys) == 1 }
	switch {
	case verdict == CheckNoFit:
		e.fit()
	case verdict == CheckIllegal && slices.ContainsFunc(e.found, isSingle):
		isEnough := slices.ContainsFunc(e.found, func(one planEdit) bool { return isSingle(one) && one.priced.Fits() })
		e.found = slices.DeleteFunc(e.found, func(one planEdit) bool {
			return !isSingle(one) && (isEnough || !one.priced.Fits())
		})
	}
	return e.found
}

// fit adds the best combinations of two edits each of which saves memory, if they make the plan fit and are faster than
// every single edit that does.
func (e *editor) fit() {
	var saving []planEdit
	fastest := planEdit{}
	for _, one := range e.found {
		switch {
		case len(one.keys) > 1:
		case one.priced.Predict.MemoryBytes.Total < e.yours.Predict.MemoryBytes.Total:
			saving = append(saving, one)
		}
		if one.priced.Fits() && (fastest.keys == nil || compareEdits(one, fastest) < 0) {
			fastest = one
		}
	}
	var pairs []planEdit
	for i, a := range saving {
		for _, b := range saving[i+1:] {
			if a.keys[0] == b.keys[0] || a.priced.Fits() || b.priced.Fits() {
				continue
			}
			both := maps.Clone(a.set)
			maps.Copy(both, b.set)
			one, _ := e.try(both)
			if one != nil && one.priced.Fits() && (fastest.keys == nil || compareEdits(*one, fastest) < 0) {
				pairs = append(pairs, *one)
			}
		}
	}
	slices.SortStableFunc(pairs, compareEdits)
	for _, one := range pairs[:min(len(pairs), mostPairs)] {
		e.add(one)
	}
}

// mostPairs is the number of combinations of two edits that are listed.
const mostPairs = 5

// edit tries a value of a key alone. If that is impossible, it tries the value with each companion and keeps the best.
func (e *editor) edit(key, value string) {
	alone, broken := e.try(map[string]string{key: value})
	switch {
	case alone != nil:
		e.add(*alone)
		if key == "tp" && e.plan.TP == 1 { // sp costs nothing to add, and is impossible before
			e.addBest([]map[string]string{{key: value, "sp": "true"}})
		}
		return
	case len(broken) == 0:
		return
	}
	var pairs []map[string]string
	for _, other := range companionsOf(broken) {
		if other == key {
			continue
		}
		for _, v := range e.values(other) {
			pairs = append(pairs, map[string]string{key: value, other: v})
		}
	}
	e.addBest(pairs)
}

// companionsOf returns the companions of broken rules, each once.
func companionsOf(broken []search.Reason) (keys []string) {
	for _, r := range broken {
		for _, key := range companions[r.Key] {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// addBest adds the best of some edits.
func (e *editor) addBest(sets []map[string]string) {
	var best *planEdit
	for _, set := range sets {
		if one, _ := e.try(set); one != nil && (best == nil || compareEdits(*one, *best) < 0) {
			best = one
		}
	}
	if best != nil {
		e.add(*best)
	}
}

// add adds an edit, unless another one leads to the same plan.
func (e *editor) add(one planEdit) {
	if !e.seen[one.priced.Plan] {
		e.seen[one.priced.Plan] = true
		e.found = append(e.found, one)
	}
}

// try returns the fastest plan with some keys changed, or the one that exceeds memory least; nil if none is legal, with
// the rules that it would break.
func (e *editor) try(set map[string]string) (*planEdit, []search.Reason) {
	pins, ok := e.pins(set)
	if !ok {
		return nil, nil
	}
	best, err := e.best(pins)
	var illegal *search.IllegalError
	var unfit *search.NoPlan
	switch {
	case errors.As(err, &illegal):
		return nil, illegal.Reasons
	case errors.As(err, &unfit):
		best = unfit.Nearest
	case err != nil:
		return nil, nil
	}
	out := &planEdit{set: set, priced: best}
	old, now := e.plan.JSON(), best.Plan.JSON()
	for _, key := range editedKeys {
		if _, isSet := set[key]; isSet && !equalValues(old[key], now[key]) {
			out.keys = append(out.keys, key)
		}
	}
	return out, nil
}

// best returns the fastest plan with some pins that the file can express, or else the fastest of all.
func (e *editor) best(pins search.Pins) (search.Priced, error) {
	p := e.free
	p.Pins = pins
	best, _, err := e.bestOf(&p)
	if p.Expresses == nil || !isNone(err) {
		return best, err
	}
	all := p
	all.Expresses = nil
	best, _, err = e.bestOf(&all)
	return best, err
}

// pins returns the plan's keys with some changed. Keys that follow from these are changed with them, or left free if
// the search solves them; ok is false if a value is impossible.
func (e *editor) pins(set map[string]string) (pins search.Pins, ok bool) {
	plan := e.plan
	for key, value := range set {
		if value != solved && plan.SetKey(key, value) != nil {
			return nil, false
		}
	}
	free := e.follow(&plan, set)
	for key, value := range set {
		if value == solved {
			free = append(free, key)
		}
	}
	if e.choosesBatch() {
		free = append(free, "micro_batch", "micro_batches")
	}
	return search.PinPlan(plan, search.Pins{}).Without(free...), true
}

// choosesBatch reports whether the file says no micro-batch, so that the search chooses it, for each edit again.
func (k *checker) choosesBatch() bool {
	return len(k.pinned.Pins["micro_batch"]) != 1 && len(k.pinned.Pins["micro_batches"]) != 1
}

// solved is the value of a key that the search solves.
const solved = ""

// follow changes the keys that follow from others, and returns those that the search solves.
func (e *editor) follow(p *ir.Plan, set map[string]string) (free []string) {
	e.followDegrees(p)
	e.followSharding(p, set)
	if p.CP == 1 {
		p.CPKind = "none"
	} else if e.plan.CP == 1 && set["cp_kind"] == "" {
		free = append(free, "cp_kind")
	}
	if _, isSet := set["axis_order"]; !isSet {
		if e.plan.AxisOrder == space.DefaultOrder(&e.plan) {
			p.AxisOrder = space.DefaultOrder(p)
		}
	}
	if e.followPipeline(p, set) {
		free = append(free, "stage_layers")
	}
	if p.Recompute != e.plan.Recompute {
		p.RecomputeEvery, p.RecomputeSplit = 1, false
		free = append(free, "recompute_layers")
	}
	return free
}

// followDegrees adapts dp and the number of micro-batches to the other degrees.
func (e *editor) followDegrees(p *ir.Plan) {
	ranks := p.TP * p.PP * p.CP
	if n := e.free.Cluster.Devices(); ranks > 0 && n%ranks == 0 {
		p.DP = n / ranks
	}
	if n := p.DP * p.MicroBatch; n > 0 && e.free.GlobalBatch%n == 0 {
		p.MicroBatches = e.free.GlobalBatch / n
	}
}

// followSharding adapts ZeRO to the number of replicas. State that was sharded over all replicas still is, and that of
// one replica is sharded over several as the file says.
func (e *editor) followSharding(p *ir.Plan, set map[string]string) {
	_, isSet := set["zero"]
	switch all := e.plan.Zero == 0 || e.plan.ZeroGroup == e.plan.Replicas(); {
	case p.Replicas() == 1:
		p.Zero, p.ZeroGroup = 0, 1
	case e.plan.Replicas() == 1 && e.plan.Zero == 0 && !isSet && e.replicasZero > 0:
		p.Zero, p.ZeroGroup = e.replicasZero, p.Replicas()
	case p.Zero == 0:
		p.ZeroGroup = 1
	case all && p.ZeroGroup == e.plan.ZeroGroup:
		p.ZeroGroup = p.Replicas()
	}
}

// followPipeline adapts the schedule and the recomputed blocks to the number of chunks. It reports whether the blocks
// must be split again.
func (e *editor) followPipeline(p *ir.Plan, set map[string]string) bool {
	_, isScheduled := set["schedule"]
	switch {
	case p.PP == 1:
		p.Schedule, p.VPP = "none", 1
	case isScheduled:
	case p.VPP > 1 && p.Schedule != "zb-v":
		p.Schedule = "interleaved"
	case p.VPP == 1 && (p.Schedule == "none" || p.Schedule == "interleaved"):
		p.Schedule = "1f1b"
	}
	if p.PP*p.VPP == e.plan.PP*e.plan.VPP {
		return false
	}
	chunk := (e.dims.Layers + p.PP*p.VPP - 1) / (p.PP * p.VPP)
	if p.RecomputeLayers == e.plan.LargestChunk() && p.Recompute != "none" {
		p.RecomputeLayers = chunk
	}
	p.RecomputeLayers = min(p.RecomputeLayers, chunk)
	return true
}

// values returns the values of a key that are tried, without the plan's own.
func (e *editor) values(key string) []string {
	switch key {
	case "cp_kind":
		if e.plan.CP == 1 {
			return nil
		}
		return others(e.plan.CPKind, e.free.ContextKinds(e.plan))
	case "sp":
		return []string{strconv.FormatBool(!e.plan.SP)}
	case "zero":
		return otherInts(e.plan.Zero, []int{0, 1, 2, 3})
	case "schedule":
		if e.plan.PP == 1 {
			return nil
		}
		return others(e.plan.Schedule, space.Schedules[1:])
	case "recompute":
		return others(e.plan.Recompute, []string{"none", "selective", "full"})
	case "recompute_layers", "stage_layers":
		return []string{solved}
	case "axis_order":
		return others(e.plan.AxisOrder, space.AxisOrders(&e.plan, e.free.Cluster.Nodes))
	}
	return e.degreeValues(key)
}

// degreeValues returns the other values of a key that is a number.
func (e *editor) degreeValues(key string) []string {
	p, devices := &e.plan, e.free.Cluster.Devices()
	switch key {
	case "tp":
		return otherInts(p.TP, space.Divisors(devices))
	case "pp":
		return otherInts(p.PP, upTo(space.Divisors(devices), min(space.MaxStages, e.dims.MaxChunks())))
	case "cp":
		return otherInts(p.CP, space.Divisors(max(1, devices/max(1, p.TP*p.PP))))
	case "vpp":
		if p.PP == 1 {
			return nil
		}
		return otherInts(p.VPP, upTo(space.Divisors(max(1, e.dims.Layers/p.PP)), space.MaxVPP))
	case "ep":
		if e.dims.Experts == 0 {
			return nil
		}
		return otherInts(p.EP, space.Divisors(e.dims.Experts))
	case "etp":
		if e.dims.Experts == 0 {
			return nil
		}
		return otherInts(p.ETP, space.Divisors(p.TP))
	case "zero_group":
		if p.Zero == 0 {
			return nil
		}
		return otherInts(p.ZeroGroup, space.Divisors(p.Replicas()))
	case "micro_batch":
		if e.choosesBatch() {
			return nil
		}
		share := max(1, e.free.GlobalBatch/max(1, p.DP))
		return near(p.MicroBatch, space.Divisors(share))
	}
	return nil
}

// upTo returns the values up to a limit.
func upTo(values []int, limit int) []int {
	return slices.DeleteFunc(slices.Clone(values), func(v int) bool { return v > limit })
}

// otherInts returns values as texts, without one.
func otherInts(own int, values []int) (out []string) {
	for _, v := range values {
		if v != own {
			out = append(out, strconv.Itoa(v))
		}
	}
	return out
}

// others returns values without one.
func others(own string, values []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == own })
}

// Numbers of smaller and of larger micro-batch sizes that are tried. Smaller ones save memory.
const (
	smallerMicros = 8
	largerMicros  = 3
)

// near returns the values next to one, as texts.
func near(own int, values []int) []string {
	i, found := slices.BinarySearch(values, own)
	from := max(0, i-smallerMicros)
	if found {
		i++
	}
	return otherInts(own, values[from:min(len(values), i+largerMicros)])
}
