package space

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/planc-dev/planc/ir"
)

// Messages suggest a value only if the plan with it breaks no rule that the plan does not break already.

// suggest returns the values of a degree next to the plan's own, of the allowed ones (ascending), with which the plan
// is better: ": use tp 2 or 4"; "" if there is none.
func (s *RuleContext) suggest(p *ir.Plan, key string, allowed []int) string {
	text := ir.NearestNumbers(value(p, key), allowed, func(n int) bool { return s.isBetter(p, key, n) })
	if text == "" {
		return ""
	}
	return fmt.Sprintf(": use %s %s", key, text)
}

// suggestOr is suggest with another change that helps: ": use tp 2 or 4, or sp false".
func (s *RuleContext) suggestOr(p *ir.Plan, key string, allowed []int, other string) string {
	if text := s.suggest(p, key, allowed); text != "" {
		return text + ", or " + other
	}
	return ": use " + other
}

// value returns a degree of a plan, or another key with a number.
func value(p *ir.Plan, key string) int {
	switch key {
	case "ep":
		return p.EP
	case "etp":
		return p.ETP
	case "micro_batch":
		return p.MicroBatch
	case "micro_batches":
		return p.MicroBatches
	case "zero_group":
		return p.ZeroGroup
	}
	return Degree(p, key)
}

// solvedKeys are keys that a search chooses for the other keys of a plan, unless they are pinned.
var solvedKeys = []string{"stage_layers", "recompute_layers", "recompute_every", "recompute_split"}

// isBetter reports whether some plan with another value of a key has all pinned values of the other keys, obeys all
// rules of this key and of the ranks, and breaks no other rule that the plan obeys. If another degree than dp changes
// too, the plan must be legal, because messages are about the nearest plan without such a change.
func (s *RuleContext) isBetter(p *ir.Plan, key string, n int) bool {
	return slices.ContainsFunc(s.replaced(*p, key, n), func(q ir.Plan) bool {
		changed := *p
		setNumber(&changed, key, n)
		isOther := changed.TP != q.TP || changed.PP != q.PP || changed.CP != q.CP
		return s.hasPins(&q, key) && s.breaksNothing(p, &q, key, isOther)
	})
}

// hasPins reports whether a plan has all pinned values except that of one key, which a suggestion replaces.
func (s *RuleContext) hasPins(q *ir.Plan, replaced string) bool {
	rest := s.pins.Without(replaced)
	return len(rest) == 0 || rest.Match(q)
}

// breaksNothing reports whether plan q, with another value of a key of p, obeys the rules that p obeys, and those of
// the key and the ranks; or all rules, if it must be legal.
func (s *RuleContext) breaksNothing(p, q *ir.Plan, key string, mustBeLegal bool) bool {
	isSolved := func(key string) bool { return slices.Contains(solvedKeys, key) && s.pins[key] == nil }
	return !slices.ContainsFunc(s.Rules, func(r Rule) bool {
		if isSolved(r.Key) || r.OK(q, s) {
			return false
		}
		return mustBeLegal || r.Key == key || r.Key == "dp" && !isMicroKey(key) || key == "dp" && isMicroKey(r.Key) ||
			r.OK(p, s)
	})
}

// replaced returns plans with another value of a key and with what follows from it: another degree that is free, the
// micro-batches, and the pinned values of the keys that a family leaves open.
func (s *RuleContext) replaced(p ir.Plan, key string, n int) (plans []ir.Plan) {
	setNumber(&p, key, n)
	isMicro := isMicroKey(key) // the degrees stay, even if the devices are not a multiple of their ranks
	for _, base := range s.bases(&p, key) {
		for _, follower := range []string{"", "dp", "tp", "pp", "cp"} {
			q := base
			isFree := follower != key && s.pins[follower] == nil
			isGiven := follower == "" && q.DP == p.DP && q.TP == p.TP && isMicro
			if isFree && (isGiven || s.fillsDevices(&q, follower)) && s.splitsBatch(&q, key) {
				s.followDegrees(&q, &p)
				plans = append(plans, s.withOpenPins(q, key)...)
			}
		}
	}
	return plans
}

// isMicroKey reports whether a key is a size or a number of micro-batches.
func isMicroKey(key string) bool { return key == "micro_batch" || key == "micro_batches" }

// bases returns a plan and, if a size of micro-batches is to be replaced, the plan with each value of dp and tp that
// is free: dp decides which sizes divide the batch, and nobody asked for that of the plan.
func (s *RuleContext) bases(p *ir.Plan, key string) []ir.Plan {
	bases := []ir.Plan{*p}
	if !isMicroKey(key) {
		return bases
	}
	for _, free := range []string{"dp", "tp"} {
		if s.pins[free] != nil {
			continue
		}
		for _, base := range slices.Clone(bases) {
			for _, n := range Divisors(s.Devices) {
				setNumber(&base, free, n)
				bases = append(bases, base)
			}
		}
	}
	return bases
}

// setNumber sets a degree, or another key with a number.
func setNumber(p *ir.Plan, key string, n int) {
	if err := p.SetKey(key, strconv.Itoa(n)); err != nil {
		panic(fmt.Sprintf("key %s has no value %d: %v", key, n, err))
	}
}

// fillsDevices sets a degree such that the plan has a rank for each device, and reports whether there is such a value.
// Without a degree it reports whether the plan has a rank for each device.
func (s *RuleContext) fillsDevices(q *ir.Plan, follower string) bool {
	if follower == "" {
		return q.Ranks() == s.Devices
	}
	setNumber(q, follower, 1)
	rest := q.Ranks()
	if rest < 1 || s.Devices%rest != 0 {
		return false
	}
	n := s.Devices / rest
	if follower == "cp" && n > 1 && s.Seq/n < MinOwnPositions {
		return false // it is only tried on request
	}
	setNumber(q, follower, n)
	return true
}

// splitsBatch sets the micro-batches of a plan, and reports whether they divide the batch. A micro_batch that is free
// follows from a number of micro-batches that is given.
func (s *RuleContext) splitsBatch(q *ir.Plan, key string) bool {
	if q.DP < 1 || s.Batch%q.DP != 0 {
		return false
	}
	share := s.Batch / q.DP
	counts := []int{q.MicroBatches}
	if key != "micro_batches" {
		counts = nil
		for _, text := range s.pins["micro_batches"] {
			n, _ := strconv.Atoi(text)
			counts = append(counts, n)
		}
	}
	isFree := key != "micro_batch" && s.pins["micro_batch"] == nil
	i := slices.IndexFunc(counts, func(n int) bool { return n >= 1 && share%n == 0 })
	switch {
	case isFree && i >= 0:
		q.MicroBatch = share / counts[i]
	case isFree && (q.MicroBatch < 1 || share%q.MicroBatch != 0):
		q.MicroBatch = 1
	}
	if q.MicroBatch < 1 {
		return false
	}
	q.MicroBatches = max(1, share/q.MicroBatch)
	return true
}

// followDegrees sets the keys of a plan that follow from its degrees. The plan from has its other keys.
func (s *RuleContext) followDegrees(q, from *ir.Plan) {
	switch {
	case q.Replicas() == 1:
		q.Zero, q.ZeroGroup = 0, 1
	case q.Zero > 0 && s.pins["zero_group"] == nil && q.Replicas() != from.Replicas():
		q.ZeroGroup = q.Replicas()
	}
	switch {
	case q.CP == 1:
		q.CPKind = "none"
	case q.CPKind == "none":
		q.CPKind = "ring"
	}
	switch {
	case q.PP == 1:
		q.Schedule, q.VPP = "none", 1
	case q.Schedule == "none":
		q.Schedule = "1f1b"
	}
	if from.ETP == from.TP && from.ETP > 1 && s.pins["etp"] == nil {
		q.ETP = q.TP
	}
	if chunks := q.PP * q.VPP; s.pins["stage_layers"] == nil && chunks >= 1 && chunks <= s.MaxChunks() {
		q.StageLayers = JoinCounts(EvenSplit(s.Layers, chunks))
	}
	if q.TP == 1 && s.pins["sp"] == nil {
		q.SP = false
	}
	q.AxisOrder = DefaultOrder(q)
}

// withOpenPins returns a plan with each combination of the pinned values of the open keys, except the key that a
// suggestion replaces. Values that no plan can have are left out.
func (s *RuleContext) withOpenPins(plan ir.Plan, replaced string) []ir.Plan {
	plans := []ir.Plan{plan}
	rest := s.pins.Without(replaced)
	for _, key := range OpenKeys {
		if rest[key] == nil {
			continue
		}
		var next []ir.Plan
		for _, q := range plans {
			for _, text := range rest[key] {
				if q.SetKey(key, text) == nil {
					next = append(next, q)
				}
			}
		}
		plans = next
	}
	fixed := s.pins.Merge(Pins{replaced: {strconv.Itoa(value(&plan, replaced))}})
	for i := range plans {
		fixed.FollowOpen(&plans[i])
	}
	return plans
}

// FollowOpen sets the open keys that are free and follow from pinned ones.
func (p Pins) FollowOpen(plan *ir.Plan) {
	if p["zero"] == nil && plan.ZeroGroup > 1 && plan.Replicas() > 1 {
		plan.Zero = 1 // zero is free, so its value is not what is wrong with the group
	}
	if p["zero_group"] == nil && plan.Zero > 0 {
		plan.ZeroGroup = plan.Replicas()
	}
	if p["recompute_layers"] == nil && plan.Recompute != "none" {
		plan.RecomputeLayers = plan.LargestChunk()
	}
}
