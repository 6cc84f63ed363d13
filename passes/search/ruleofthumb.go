package search

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/planc-dev/planc/passes/search/space"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// RuleOfThumb is a common rule of thumb, and the result of following it.
type RuleOfThumb struct {
	Rule string
	// Agrees, Slower, Riskier, DoesNot, Illegal or Note; Differs for claims; Faster if only pins of the job forbid it
	Verdict Verdict
	// of the plan that follows it, as a fraction of the chosen plan's step; 0 if it agrees
	SlowerBy float64
	Message  string       // the finding in numbers, if Best does not show it
	Best     *Alternative // the best plan that follows it, if that is not the chosen one
}

// Verdicts of rules of thumb, in addition to those of choices.
const (
	Agrees  Verdict = "agrees"
	Differs Verdict = "differs" // the numbers of the claim are different here
	Faster  Verdict = "faster"
	Note    Verdict = "note"
)

// LearningRate is the rule that multiplies the learning rate by the number of GPUs. Its message only considers the
// problem's batch. A caller that knows for which batch the rate was chosen can say more.
const LearningRate = "learning rate × GPUs"

// ruleQuestion is what rules are applied to: a problem, its model's size and its plan.
type ruleQuestion struct {
	p      *Problem
	params int64
	chosen Priced
	found  *Result // of the problem
}

// ruleRow is a row of the table of rules: the problems it applies to, and how it is checked.
type ruleRow struct {
	rule    string
	applies func(q *ruleQuestion) bool
	// pins, each of which follows the rule; nil if check answers
	pins func(q *ruleQuestion) []Pins
	// of rules that are more than pins; nil if pins does
	check func(q *ruleQuestion, r *Series) *RuleOfThumb
}

// Model sizes at which the rules change, in parameters.
const (
	smallModel = 500e6
	largeModel = 10e9
)

// ruleOfThumbRows are the rules of thumb of guides on distributed training that planc answers.
var ruleOfThumbRows = []ruleRow{
	{"<500M: DDP", func(q *ruleQuestion) bool { return q.hasManyDevices() && q.params < smallModel },
		func(*ruleQuestion) []Pins { return []Pins{{"tp": {"1"}, "pp": {"1"}, "zero": {"0"}}} }, nil},
	{"500M-10B: FSDP / ZeRO-2", func(q *ruleQuestion) bool {
		return q.hasManyDevices() && q.params >= smallModel && q.params <= largeModel
	},
		func(*ruleQuestion) []Pins { return []Pins{{"tp": {"1"}, "pp": {"1"}, "zero": {"2", "3"}}} }, nil},
	{">10B: ZeRO-3 or 3D", func(q *ruleQuestion) bool { return q.hasManyDevices() && q.params > largeModel },
		func(q *ruleQuestion) []Pins {
			return []Pins{{"zero": {"3"}}, {"tp": q.degreesAboveOne(), "pp": q.degreesAboveOne()}}
		}, nil},
	{"TP inside a node", func(q *ruleQuestion) bool { return q.p.Cluster.Nodes > 1 },
		func(q *ruleQuestion) []Pins {
			return []Pins{{"tp": intTexts(space.Divisors(q.p.Cluster.Node.Devices)),
				"axis_order": ordersWith(func(o []string) bool {
					return o[0] == "tp"
				})}}
		}, nil},
	{"PP across nodes", func(q *ruleQuestion) bool {
		return q.p.Cluster.Nodes > 1 && (q.params > largeModel || q.chosen.Plan.PP > 1)
	}, func(q *ruleQuestion) []Pins {
		return []Pins{{"pp": q.degreesAboveOne(), "axis_order": ordersWith(func(o []string) bool {
			return o[len(o)-1] == "pp"
		})}}
	}, nil},
	{"small models gain little from GPUs", func(q *ruleQuestion) bool {
		// a CPU with fewer devices has other devices
		return q.hasManyDevices() && !q.p.Cluster.IsCPU() && q.params < smallModel
	}, nil, halfTheDevices},
	{"a checkpoint each 4 layers: -75 % activations, +20-30 % time", func(q *ruleQuestion) bool {
		return true
	}, nil, checkpointing},
	{LearningRate, (*ruleQuestion).hasManyDevices, nil, learningRate},
}

// hasManyDevices reports whether the cluster has several devices.
func (q *ruleQuestion) hasManyDevices() bool { return q.p.Cluster.Devices() > 1 }

// degreesAboveOne returns the degrees above 1.
func (q *ruleQuestion) degreesAboveOne() []string {
	return intTexts(space.Divisors(q.p.Cluster.Devices())[1:])
}

// ordersWith returns the orders of all axes, with and without cp, for which holds is true.
func ordersWith(holds func(order []string) bool) (out []string) {
	for _, p := range []ir.Plan{{DP: 2, TP: 2, PP: 1, CP: 1}, {DP: 2, TP: 2, PP: 2, CP: 1}, {DP: 2, TP: 2, PP: 1,
		CP: 2}, {DP: 2, TP: 2, PP: 2, CP: 2}} {
		for _, o := range space.AxisOrders(&p, 2) {
			if holds(space.SplitOrder(o)) {
				out = append(out, o)
			}
		}
	}
	return out
}

// intTexts prints integers.
func intTexts(ns []int) []string {
	out := make([]string, len(ns))
	for i, n := range ns {
		out[i] = fmt.Sprint(n)
	}
	return out
}

// answer applies a rule.
func (t *ruleRow) answer(q *ruleQuestion, r *Series) RuleOfThumb {
	if t.check != nil {
		out := t.check(q, r)
		out.Rule = t.rule
		return *out
	}
	out := RuleOfThumb{Rule: t.rule, Verdict: Illegal}
	for _, pins := range t.pins(q) {
		if pins.Match(&q.chosen.Plan) {
			return RuleOfThumb{Rule: t.rule, Verdict: Agrees}
		}
		a, err := q.found.bestWithPins(pins, r)
		var illegal *IllegalError
		var many *TooManyPlans
		switch {
		case errors.As(err, &many):
			if out.Best == nil {
				out.Message = many.Error()
			}
		case errors.As(err, &illegal):
			if out.Best == nil {
				out.Message = illegal.Reasons[0].Message
			}
		case err != nil:
			panic("search: a problem with a plan has none under other pins: " + err.Error())
		case out.Best == nil || compareAlternatives(a, *out.Best) < 0:
			out.Best, out.Message = &a, "" // that another way to follow the rule is illegal does not matter
		}
	}
	if out.Best != nil {
		out.judge(q)
	}
	return out
}

// judge sets the verdict on the best plan that follows a rule.
func (t *RuleOfThumb) judge(q *ruleQuestion) {
	a := t.Best
	switch {
	case a.NoFit != nil:
		t.Verdict = DoesNot
	case a.Riskier(q.chosen):
		t.Verdict, t.SlowerBy = Riskier, a.SlowerBy
	case a.SlowerBy < 0:
		t.Verdict, t.SlowerBy, t.Message = Faster, a.SlowerBy, "the plan is not the search's own"
		if names := q.p.Pins.Keys(); len(names) > 0 {
			t.Message = "the job pins " + strings.Join(names, ", ")
		}
	default:
		t.Verdict, t.SlowerBy = Slower, a.SlowerBy
	}
}

// halfTheDevices checks whether the second half of the devices is worth having.
func halfTheDevices(q *ruleQuestion, r *Series) *RuleOfThumb {
	p, c := *q.p, cloneCluster(q.p.Cluster)
	if c.Nodes > 1 {
		c.Nodes /= 2
	} else {
		c.Node.Devices /= 2
	}
	p.Cluster = c
	best, _, err := r.Best(&p)
	var illegal *IllegalError
	var many *TooManyPlans
	switch {
	case errors.As(err, &many):
		return &RuleOfThumb{Verdict: Illegal, Message: fmt.Sprintf("on %d devices, %s", c.Devices(), many)}
	case errors.As(err, &illegal):
		return &RuleOfThumb{Verdict: Illegal, Message: fmt.Sprintf("on %d devices, %s", c.Devices(),
			illegal.Reasons[0].Message)}
	case err != nil:
		return &RuleOfThumb{Verdict: DoesNot, Message: fmt.Sprintf("%d devices are needed to hold it",
			q.p.Cluster.Devices())}
	}
	gain := costmodel.SixDigits(q.chosen.Predict.TokensPerS / best.Predict.TokensPerS)
	t := &RuleOfThumb{Verdict: Differs, SlowerBy: gain - 1,
		Message: fmt.Sprintf("%d devices train %.2f × as fast as %d",
			q.p.Cluster.Devices(), gain, c.Devices())}
	if worth := 1.5; gain < worth { // half of what doubling could give
		t.Verdict = Agrees
	}
	return t
}

// checkpointEach is the number of layers per checkpoint in the rule: the input of the first is saved, and the others
// are recomputed from it.
const checkpointEach = 4

// checkpointing compares blocks recomputed in groups of checkpointEach with no recomputation, with the rest of the
// chosen plan kept. Both are priced whether they fit or not.
func checkpointing(q *ruleQuestion, r *Series) *RuleOfThumb {
	none, all := q.chosen.Plan, q.chosen.Plan
	none.Recompute, none.RecomputeLayers, none.RecomputeEvery, none.RecomputeSplit = "none", 0, 1, false
	all.Recompute, all.RecomputeLayers, all.RecomputeSplit = "full", all.LargestChunk(), false
	all.RecomputeEvery = min(checkpointEach, all.RecomputeLayers)
	a, err := r.Price(q.p, none)
	b, err2 := r.Price(q.p, all)
	if err != nil || err2 != nil {
		panic(fmt.Sprintf("search: a plan is not legal with recomputation changed: %v %v", err, err2))
	}
	saved := 1 - float64(b.MemoryBytes.Activations)/float64(max(1, a.MemoryBytes.Activations))
	return checkpointed(saved, float64(b.StepS/a.StepS)-1)
}

// checkpointed compares what recomputation saves and costs, as fractions, with the rule.
func checkpointed(saved, slower float64) *RuleOfThumb {
	t := &RuleOfThumb{Verdict: Differs, SlowerBy: costmodel.SixDigits(slower),
		Message: fmt.Sprintf("here %+.0f %% for %+.1f %%", -100*saved, 100*slower)}
	saves, costs := outside(saved, 0.70, 0.80), outside(slower, 0.20, 0.30)
	switch {
	case saves == "" && costs == "":
		t.Verdict = Agrees
	case saves == "":
		t.Message += ", which costs " + costs
	case costs == "":
		t.Message += ", which saves " + saves
	case saves == costs:
		t.Message += ", which saves and costs " + saves
	default:
		t.Message += fmt.Sprintf(", which saves %s and costs %s", saves, costs)
	}
	return t
}

// outside returns on which side of a range a figure is: "" within it, after rounding to a whole percentage.
func outside(figure, least, limit float64) string {
	figure = math.Round(100*figure) / 100
	switch {
	case figure < least:
		return "less"
	case figure > limit:
		return "more"
	}
	return ""
}

// learningRate answers why linear scaling of the learning rate is not needed.
func learningRate(q *ruleQuestion, _ *Series) *RuleOfThumb {
	return &RuleOfThumb{Verdict: Note, Message: fmt.Sprintf("not needed, the batch stays %d", q.p.GlobalBatch)}
}
