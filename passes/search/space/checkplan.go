package space

import (
	"fmt"

	"github.com/planc-dev/planc/ir"
)

// Check returns why a plan from elsewhere, such as an edited file, is not in the space: the rules of legality that it
// breaks, the pins that it does not follow, and the keys whose values do not follow from others.
func Check(p *Problem, plan ir.Plan) []Reason {
	d := DimsOf(p.Model)
	if rs := BrokenRules(&plan, NewRuleContext(p, d)); len(rs) > 0 {
		return rs
	}
	var rs []Reason
	plain := d.SerialPlan(plan.MicroBatch, p.Precision) // keys that no rule concerns have one value
	is, normal := KeyValues(plan), KeyValues(plain)
	for _, key := range ir.PlanKeys() {
		switch {
		case !p.Pins.Allows(key, is[key]):
			rs = append(rs, Reason{Key: key,
				Message: fmt.Sprintf("%s is %s, which the job's plan.%s does not allow", key,
					is[key], key)})
		case is[key] != normal[key] && onlyValue[key]:
			rs = append(rs, Reason{Key: key,
				Message: fmt.Sprintf("%s is %q, but only %q is possible with the other keys", key,
					is[key], normal[key])})
		}
	}
	return rs
}

// onlyValue are the keys that have only one value today and that no rule concerns.
var onlyValue = map[string]bool{"offload": true, "precision": true}
