package planner

import (
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
)

// Pinned returns the plan that a check of a question finds: the one that the pins mean, and the keys whose values they
// leave open.
func Pinned(q *Question) (plan ir.Plan, chosen []string, err error) {
	k, c := newChecker(q), &Check{}
	if err := k.findYours(c); err != nil {
		return plan, nil, err
	}
	if c.Yours != nil {
		chosen = c.Yours.Chosen
	}
	return k.from(), chosen, nil
}

// BrokenRules returns the rules that the plan of a question's pins breaks, at the pins.
func BrokenRules(q *Question) (ir.Diags, error) {
	c := &Check{}
	err := newChecker(q).findYours(c)
	return c.Diags, err
}

// chosenKeys returns the keys of a plan whose values the search chose: neither the pins nor the pinned keys say them.
// Keys that have no effect in the plan are left out.
func chosenKeys(pins search.Pins, plan *ir.Plan, hasExperts bool) []string {
	isFree := func(key string) bool { return len(pins[key]) != 1 }
	isDPFree := isFree("dp") && (isFree("tp") || isFree("pp") || isFree("cp"))
	isRecomputed := plan.Recompute != "none"
	out := []string{}
	for _, k := range []struct {
		key      string
		isChosen bool
	}{
		{"dp", isDPFree},
		{"tp", isFree("tp")},
		{"sp", isFree("sp") && plan.TP > 1},
		{"pp", isFree("pp")},
		{"vpp", isFree("vpp") && plan.PP > 1},
		{"schedule", isFree("schedule") && plan.PP > 1},
		{"cp", isFree("cp")},
		{"cp_kind", isFree("cp_kind") && plan.CP > 1},
		{"ep", isFree("ep") && hasExperts},
		{"etp", isFree("etp") && hasExperts && plan.TP > 1},
		{"zero", isFree("zero")},
		{"zero_group", isFree("zero_group") && plan.Zero > 0 && plan.ZeroGroup < plan.Replicas()},
		{"micro_batch", isFree("micro_batch") && (isFree("micro_batches") || isDPFree)},
		{"recompute", isFree("recompute")},
		{"recompute_layers", isFree("recompute_layers") && isRecomputed && plan.RecomputeLayers < plan.LargestChunk()},
	} {
		if k.isChosen {
			out = append(out, k.key)
		}
	}
	return out
}
