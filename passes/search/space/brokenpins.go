package space

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/ir"
)

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

// CheckPins refuses keys that no plan has, and values that no plan can have.
func (p *Problem) CheckPins(d Dims) error {
	keys := KeyValues(d.SerialPlan(1, p.Precision))
	bad := &IllegalError{Pins: p.Pins}
	for _, k := range p.Pins.Keys() {
		old, known := keys[k]
		if !known {
			bad.Reasons = append(bad.Reasons, Reason{Key: k, Message: "a plan has no key " + k})
			continue
		}
		for _, v := range p.Pins[k] {
			if why := badValue(old, v); why != "" && k != "stage_layers" && k != "moe_slack" {
				bad.Reasons = append(bad.Reasons, Reason{Key: k, Message: fmt.Sprintf("%s: %q is %s", k, v, why)})
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

// BrokenPins returns the pins that a plan does not follow, of keys that are not enumerated.
func (p *Problem) BrokenPins(plan ir.Plan) []Reason {
	if len(p.Pins) == 0 {
		return nil
	}
	rest := p.Pins.Without(append([]string{"dp", "tp", "pp", "cp", "cp_kind", "vpp", "sp", "schedule", "micro_batch",
		"stage_layers", "ep", "etp", "moe_slack"}, OpenKeys...)...)
	if len(rest) == 0 {
		return nil
	}
	var rs []Reason
	kv := KeyValues(plan)
	for _, k := range rest.Keys() {
		if !rest.Allows(k, kv[k]) {
			rs = append(rs, Reason{Key: k, Message: fmt.Sprintf("%s %s: with the other pins, only %s is possible", k,
				strings.Join(rest[k], " or "), kv[k])})
		}
	}
	return rs
}

// BadPlan is reported if no plan with the pinned values is legal.
//
// Example:
//
//	plan: {tp: 3}
const BadPlan ir.Code = "BadPlan"

// OpenKeys are the plan keys that a family of plans leaves open: they are chosen last and independently of each
// other.
var OpenKeys = []string{"zero", "zero_group", "recompute", "recompute_layers", "recompute_every", "recompute_split",
	"axis_order"}
