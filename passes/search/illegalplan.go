package search

import (
	"fmt"
	"strconv"
	"strings"

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

// reasons say why the nearest plan is not legal: the rules that it breaks, or, where it breaks none by itself, those
// that it breaks with the pinned values of the keys that a family leaves open.
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
		plan.Zero = 1 // as zero is free, its value is not what is wrong with the group
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

// untried is what is said where no rule is broken: of each pinned key that a family leaves open, that nothing tried has
// its values together with those of the other keys. There is always something to say.
func (e *enumeration) untried() []Reason {
	var rs []Reason
	for _, key := range openKeys {
		if vs := e.p.Pins[key]; len(vs) > 0 {
			rs = append(rs, Reason{key, fmt.Sprintf("%s %s: no plan that is tried has it together with the other pins",
				key, strings.Join(vs, " or "))})
		}
	}
	if len(rs) == 0 {
		rs = []Reason{{"dp", "no plan is legal for this model, batch and cluster"}}
	}
	return rs
}

// brokenPins are the pins that the nearest plan does not follow. What is wrong with micro_batches there is to say only
// where the batch is shared out at all.
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

// bestWithPins refuses keys that no plan has, and values that no plan can have there.
func (p *Problem) checkPins(d Dims) error {
	keys := keyValues(d.plain(1, p.Precision))
	bad := &IllegalError{Pins: p.Pins}
	for _, k := range p.Pins.names() {
		old, known := keys[k]
		if !known {
			bad.Reasons = append(bad.Reasons, Reason{k, "a plan has no " + k})
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

// brokenPins are the pins that a plan does not follow, of the keys that nothing goes through.
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
			rs = append(rs, Reason{k, fmt.Sprintf("%s %s: with the rest pinned only %s is possible", k,
				strings.Join(rest[k], " or "), kv[k])})
		}
	}
	return rs
}
