package search

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// BadPlan is reported if no plan with the pinned values is legal.
//
// Example:
//
//	plan: {tp: 3}
const BadPlan ir.Code = "BadPlan"

// IllegalError is the error that the pinned values leave no legal plan.
type IllegalError struct {
	Plan    ir.Plan  // the pinned plan that breaks the fewest rules
	Reasons []Reason // the rules that it breaks
	Pins    Pins
}

func (e *IllegalError) Error() string {
	var ms []string
	for _, r := range e.Reasons {
		ms = append(ms, r.Message)
	}
	return fmt.Sprintf("no plan with %s is legal: %s [%s]", e.Pins, strings.Join(ms, "; "), BadPlan)
}

// reasons returns why the nearest plan is not legal: the rules that it breaks or, if it breaks none by itself, those
// that it breaks with the pinned values of the open keys.
func (e *enumeration) reasons() []Reason {
	rs := append(legal(&e.worst, e.set), e.brokenPins()...)
	if len(rs) > 0 {
		return rs
	}
	plan := e.worst
	for _, key := range openKeys {
		if vs := e.p.Pins[key]; len(vs) > 0 {
			if err := plan.SetKey(key, vs[0]); err != nil {
				rs = append(rs, Reason{key, err.Error()})
			}
		}
	}
	if e.p.Pins["zero"] == nil && plan.ZeroGroup > 1 && plan.Replicas() > 1 {
		plan.Zero = 1 // zero is free, so its value is not what is wrong with the group
	}
	if e.p.Pins["zero_group"] == nil && plan.Zero > 0 {
		plan.ZeroGroup = plan.Replicas()
	}
	if e.p.Pins["recompute_layers"] == nil && plan.Recompute != "none" {
		plan.RecomputeLayers = plan.LargestChunk()
	}
	rs = append(rs, legal(&plan, e.set)...)
	if len(rs) > 0 {
		return rs
	}
	return e.untried()
}

// untried returns a reason for each pinned open key if no rule is broken: no plan has its value together with the
// other pins. It never returns an empty list.
func (e *enumeration) untried() []Reason {
	var rs []Reason
	for _, key := range openKeys {
		if vs := e.p.Pins[key]; len(vs) > 0 {
			rs = append(rs, Reason{key, fmt.Sprintf("%s %s: no plan that is tried combines it with the other pins",
				key, strings.Join(vs, " or "))})
		}
	}
	if len(rs) == 0 {
		rs = []Reason{{"dp", "no plan is legal for this model, batch and cluster"}}
	}
	return rs
}

// brokenPins returns the pins that the nearest plan does not follow. micro_batches is only reported if the batch can
// be divided at all.
func (e *enumeration) brokenPins() []Reason {
	var rs []Reason
	for _, r := range e.p.brokenPins(e.worst) {
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

// checkPins refuses keys that no plan has, and values that no plan can have.
func (p *Problem) checkPins(d Dims) error {
	keys := keyValues(d.plain(1, p.Precision))
	bad := &IllegalError{Pins: p.Pins}
	for _, k := range p.Pins.names() {
		old, known := keys[k]
		if !known {
			bad.Reasons = append(bad.Reasons, Reason{k, "a plan has no key " + k})
			continue
		}
		for _, v := range p.Pins[k] {
			if why := badValue(old, v); why != "" && k != "stage_layers" && k != "moe_slack" {
				bad.Reasons = append(bad.Reasons, Reason{k, fmt.Sprintf("%s: %q is %s", k, v, why)})
			}
		}
	}
	if len(bad.Reasons) > 0 {
		return bad
	}
	return nil
}

// badValue compares the form of a value with that of a plan's own value.
func badValue(old, v string) string {
	if _, err := strconv.ParseBool(old); err == nil && (old == "true" || old == "false") {
		if v != "true" && v != "false" {
			return "not true or false"
		}
		return ""
	}
	if _, err := strconv.Atoi(old); err == nil {
		if _, err := strconv.Atoi(v); err != nil {
			return "not a whole number"
		}
	}
	return ""
}

// brokenPins returns the pins that a plan does not follow, of keys that are not enumerated.
func (p *Problem) brokenPins(plan ir.Plan) []Reason {
	if len(p.Pins) == 0 {
		return nil
	}
	rest := p.Pins.Without(append([]string{"dp", "tp", "pp", "cp", "cp_kind", "vpp", "sp", "schedule", "micro_batch",
		"stage_layers", "ep", "etp", "moe_slack"}, openKeys...)...)
	if len(rest) == 0 {
		return nil
	}
	var rs []Reason
	kv := keyValues(plan)
	for _, k := range rest.names() {
		if !rest.allows(k, kv[k]) {
			rs = append(rs, Reason{k, fmt.Sprintf("%s %s: with the other pins, only %s is possible", k,
				strings.Join(rest[k], " or "), kv[k])})
		}
	}
	return rs
}
