package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/planner/quantity"
)

// whySentence explains the choice: the size of the model states, the least sharding that fits, and the cost of the next
// best plan.
func (d *Document) whySentence() string {
	p, m := d.Plan.Plan, d.Predict.MemoryBytes
	states := d.Model.Params * int64(d.Predict.BytesPerParam)
	s := fmt.Sprintf("model states are %s, a %s has %s.", quantity.Bytes(states), d.Head.device,
		quantity.Bytes(m.Capacity))
	if d.Cluster.Devices > 1 {
		s = fmt.Sprintf("model states are %s: %s of each %s's %s.", quantity.Bytes(states),
			quantity.Bytes(m.Params+m.Grads+m.Optimizer), d.Head.device, quantity.Bytes(m.Capacity))
	}
	if len(d.Head.rounding) > 0 {
		s += " There is no master copy: " + d.Head.rounding[0] + "."
	}
	s += shardingSentence(d.Choices)
	if a, ok := d.nextBest(); ok && !(a.IsRiskier && d.Fastest != nil) { // FASTEST shows that plan
		s += fmt.Sprintf(" Next best is %s: %s, %s.", d.Label(a), quantity.Signed(*a.SlowerBy), d.Reason(a))
	}
	if p.TP > 1 && d.Cluster.Nodes > 1 && strings.HasPrefix(p.AxisOrder, "tp") &&
		p.TP*d.Cluster.Nodes == d.Cluster.Devices {
		s += " tp fills the node."
	}
	return s
}

// shardingSentence says which lower ZeRO stage does not fit; "" if there is none.
func shardingSentence(choices []planner.Choice) string {
	for _, c := range choices {
		taken, _ := c.Taken.(int)
		less, ok := c.RunnerUp.(int)
		if c.Name == "zero" && ok && less < taken && c.Verdict == string(search.DoesNot) {
			return fmt.Sprintf(" zero %d is %s over.", less, quantity.Bytes(*c.OverBytes))
		}
	}
	return ""
}

// bindingSentence says which resource limits the step time, and how much more of it would gain.
func (d *Document) bindingSentence() string {
	free := quantity.Bytes(d.Binding.SlackBytes) + " free"
	if d.Binding.SlackBytes < 0 {
		free = quantity.Bytes(-d.Binding.SlackBytes) + " over"
	}
	more, tried := d.Lever(planner.MemoryBinding)
	if d.Binding.Resource == planner.MemoryBinding {
		s := fmt.Sprintf("memory, %s.", free)
		if tried {
			s = fmt.Sprintf("memory, %s: %s per %s would gain %s.", free, leverName(d, more), d.Head.device,
				quantity.Percent(more.Speedup))
		}
		return s + d.unfitSentence()
	}
	s := d.Binding.Resource
	if l, ok := d.StrongestLever(s); ok {
		s += fmt.Sprintf(": %s %s", leverName(d, l), quantity.Signed(l.Speedup))
	}
	s += "; memory: " + free
	if tried {
		gain := "gains nothing"
		if more.Speedup >= planner.LeastGain {
			gain = quantity.Signed(more.Speedup)
		}
		s += fmt.Sprintf(", %s %s", leverName(d, more), gain)
	}
	return s + "." + d.unfitSentence()
}

// unfitSentence says how much more memory a faster plan would need; "" if no faster plan was found.
func (d *Document) unfitSentence() string {
	i := d.FasterUnfit()
	if i < 0 {
		return ""
	}
	a := d.Alternatives[i]
	return fmt.Sprintf(" With %s more, %s would fit: %s.", quantity.Bytes(a.NoFit.OverBytes), d.Label(a),
		quantity.Signed(float64(a.Predict.StepS/d.Predict.StepS)-1))
}

// leverName returns the name of a lever on screens.
func leverName(d *Document, l planner.Lever) string {
	switch l.Name {
	case planner.MemoryBinding:
		return "8 GiB more"
	case "flops":
		return "2 × FLOP/s"
	case "memory_bandwidth":
		if d.Head.device == "GPU" {
			return "2 × HBM"
		}
		return "2 × memory bandwidth"
	case "link":
		return "2 × " + cmp.Or(d.Head.link, "link")
	case "network":
		return "2 × network"
	case "batch", "near_batch":
		return fmt.Sprintf("batch %v", l.Set["train.global_batch"])
	case "nodes":
		n, _ := l.Set["cluster.nodes"].(int)
		return fmt.Sprintf("%d %s", n, layout.Plural(n, "node"))
	case "moe_slack":
		if v, one := l.Set["plan.moe_slack"].(float64); one {
			return fmt.Sprintf("moe_slack %v", v)
		}
		return "another moe_slack"
	}
	return fmt.Sprint(l.Set["train.precision"])
}

// leverLine returns the gains of changes of the hardware and the job, largest first; "" if none was tried.
func (d *Document) leverLine() string {
	levers := slices.Clone(d.Levers)
	slices.SortStableFunc(levers, func(a, b planner.Lever) int { return cmp.Compare(b.Speedup, a.Speedup) })
	var words, none []string
	for _, l := range levers {
		switch name := leverName(d, l); {
		case l.Plan == nil:
			words = append(words, name+" no fit")
		case l.Speedup < planner.LeastGain && l.Speedup > -planner.LeastGain:
			none = append(none, name)
		default:
			words = append(words, name+" "+quantity.Signed(l.Speedup))
		}
	}
	if len(none) > 0 {
		words = append(words, "no gain: "+strings.Join(none, ", "))
	}
	if len(words) == 0 {
		return ""
	}
	return layout.Flow("WHAT IF", labelColumn, " ", layout.SentenceWords(strings.Join(words, " · "))) + d.slackLine()
}

// ruleLines returns the verdicts on rules of thumb. Rules that agree with the plan share one line.
func ruleLines(rules []planner.Rule) string {
	var agree, lines []string
	seen := map[ir.Plan]bool{}
	for _, r := range rules {
		quoted := `"` + r.Rule + `"`
		if r.DescribesPlan {
			if seen[r.Plan.Plan] {
				r.Message = "the same plan"
			}
			seen[r.Plan.Plan] = true
		}
		switch r.Verdict {
		case string(search.Agrees):
			if r.Message != "" {
				quoted += " (" + r.Message + ")"
			}
			agree = append(agree, quoted)
		case string(search.Slower), string(search.Riskier), string(search.Faster):
			lines = append(lines, fmt.Sprintf("%s: %s, %s", quoted, quantity.Signed(*r.SlowerBy), r.Message))
		case string(search.DoesNot):
			lines = append(lines, fmt.Sprintf("%s: no fit, %s", quoted, r.Message))
		case string(search.Illegal):
			lines = append(lines, fmt.Sprintf("%s: illegal, %s", quoted, r.Message))
		default:
			lines = append(lines, quoted+": "+r.Message)
		}
	}
	switch len(agree) {
	case 0:
	case 1:
		lines = append([]string{agree[0] + ": agrees"}, lines...)
	default:
		lines = append([]string{strings.Join(agree, ", ") + ": agree"}, lines...)
	}
	var b strings.Builder
	label := "RULES OF THUMB"
	for _, l := range lines {
		b.WriteString(layout.Prose(label, labelColumn, l))
		label = ""
	}
	return b.String()
}
