package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/passes/search/price"
	"github.com/planc-dev/planc/planner/quantity"
)

// Explanation is what `planc explain` adds to a document: why this plan, and what would change it.
type Explanation struct {
	Choices  []Choice `json:"choices"`
	Binding  Binding  `json:"binding"`
	Levers   []Lever  `json:"levers"`
	Rules    []Rule   `json:"rules"`
	ErrorBar ErrorBar `json:"error_bar"`
	WhyNot   *WhyNot  `json:"why_not"` // null unless it was asked
}

// Choice is one key of the plan with its runner-up. The runner-up's plan differs from the chosen one only in this key
// if such a plan is legal.
type Choice struct {
	Name      string    `json:"name"`
	Taken     any       `json:"taken"`
	RunnerUp  any       `json:"runner_up"` // null if the key has no other value
	Verdict   string    `json:"verdict"`
	SlowerBy  *float64  `json:"slower_by"`  // fraction of the chosen plan's step; null if the runner-up is not priced
	OverBytes *int64    `json:"over_bytes"` // null if the runner-up fits
	Part      string    `json:"part"`
	Message   string    `json:"message"`
	Free      *FreePlan `json:"rest_free"` // null if that is the runner-up's plan
}

// FreePlan is the best plan with another value of a choice and everything else free.
type FreePlan struct {
	Plan     Plan          `json:"plan"`
	SlowerBy *float64      `json:"slower_by"` // null if it does not fit
	NoFit    *search.NoFit `json:"no_fit"`    // null if it fits
}

// ErrorBar says what the error bar of the step's time rests on.
type ErrorBar struct {
	Rows int    `json:"rows"` // measured runs
	Like string `json:"like"` // what these runs have in common with this one
	// Beyond is a trait of this run that no measured run has, one of [engines.TraitNames]; "" if there is none.
	Beyond string `json:"beyond"`
}

// ExplainOptions say what an explanation covers.
type ExplainOptions struct {
	// HasLevers asks for levers and rules of thumb too. Each of them is a search.
	HasLevers bool
	// LockedBatch is the global batch of the job's lock, for which its learning rate was chosen; 0 if there is no lock.
	LockedBatch int
}

// Explain adds an explanation to the document. Levers and rules are explained only if the plan fits.
func (d *Document) Explain(o ExplainOptions) {
	decision := d.decision
	e := &Explanation{Choices: []Choice{}, Levers: []Lever{}, Rules: []Rule{},
		ErrorBar: errorBar(decision.Question, decision.Best)}
	d.Explanation = e
	for _, c := range decision.Choices {
		e.Choices = append(e.Choices, d.choice(&c))
	}
	if d.Fits && o.HasLevers {
		d.addLevers(o.LockedBatch)
	}
	m := decision.Best.Predict.MemoryBytes
	e.Binding = Binding{Resource: d.bindingResource(), SlackBytes: m.Capacity - m.Total}
}

// addLevers searches for what would change the plan, and for what rules of thumb would have said.
func (d *Document) addLevers(lockedBatch int) {
	q := d.decision.Question
	// The gain of hardware is the difference of the fastest plans with it and without it.
	further := d.decision.Beyond(q.Config.Params(), d.decision.Fastest, q.narrower()...)
	for _, l := range further.Levers {
		lever := Lever{Name: l.Name, Set: l.Set, Speedup: l.Speedup, Best: l.Best}
		if l.Best != nil {
			lever.Plan = &Plan{l.Best.Plan}
			lever.Experts = price.ExpertsOf(q.Problem(), l.Best.Plan)
		}
		d.Levers = append(d.Levers, lever)
	}
	change := BatchChange(q, lockedBatch)
	for i := range further.Thumbs {
		t := &further.Thumbs[i]
		if t.Rule == search.LearningRate && change != "" {
			t.Message = change
		}
		d.Rules = append(d.Rules, d.rule(t))
	}
}

// errorBar returns what the error bar of a plan's step rests on.
func errorBar(q *Question, best search.Priced) ErrorBar {
	e, bar := engine(q), measuredBar(q, best)
	like := bar.String()
	if e.Own && bar.Rows > 0 {
		devices := cmp.Or(bar.Generation, "such devices")
		like += "; planc's own kernels have not been measured on " + devices
	} else if e.Like != "" && bar.Rows > 0 {
		like += "; no run of " + e.Name + " was measured"
	}
	return ErrorBar{Rows: bar.Rows, Like: like, Beyond: bar.Beyond.Trait}
}

func measuredBar(q *Question, best search.Priced) engines.ErrorBar {
	return engines.ErrorBarOf(engine(q), q.Hardware, q.Problem().Computes(), best.Plan.PP, best.Plan.MoESlack > 0,
		best.Predict.StepS)
}

// ErrorBarSource returns why the error bar of the step is not that of measured runs of the job's engine: "not measured
// at this size", "not measured on such a network", "assumed", "runs of megatron, none of planc's"; "" if it is.
func (d *Document) ErrorBarSource() string {
	q := d.decision.Question
	e, bar := engine(q), measuredBar(q, d.decision.Best)
	switch {
	case bar.Short:
		return "not measured at this size"
	case bar.Beyond.Trait != "":
		return "not measured on such " + traitWords[bar.Beyond.Trait]
	case bar.Rows == 0:
		return "assumed"
	case e.Like != "" && bar.Engine != "":
		return fmt.Sprintf("runs of %s, none of %s's", bar.Engine, e.Name)
	}
	return ""
}

// traitWords are the hardware of each of [engines.TraitNames].
var traitWords = map[string]string{"flops": "devices", "memory_bandwidth": "devices", "link": "links",
	"network": "a network"}

// choice returns the search's choice as a document's.
func (d *Document) choice(c *search.Choice) Choice {
	out := Choice{Name: c.Name, Taken: scalar(c.Taken), Verdict: string(c.Verdict), Part: c.Part,
		Message: d.choiceMessage(c)}
	if c.RunnerUp != "" {
		out.RunnerUp = scalar(c.RunnerUp)
	}
	switch {
	case c.Free == nil:
	case c.Verdict == search.DoesNot:
		out.OverBytes = &c.OverBytes
	default:
		out.SlowerBy = &c.SlowerBy
	}
	if c.Free != nil && (c.RestKept == nil || c.Free.Plan != c.RestKept.Plan) {
		free := &FreePlan{Plan: Plan{c.Free.Plan}, NoFit: c.Free.NoFit}
		if c.Free.NoFit == nil {
			free.SlowerBy = &c.Free.SlowerBy
		}
		out.Free = free
	}
	return out
}

// choiceMessage returns why the runner-up was not taken. The reason is that of the plan which differs only in the
// choice, and then the best plan with everything else free if that is notably better.
func (d *Document) choiceMessage(c *search.Choice) string {
	switch {
	case c.Free == nil && len(c.Broken) > 0:
		return c.Broken[0].Message
	case c.Free == nil:
		return "the other keys are pinned"
	case c.Pinned:
		return fmt.Sprintf("%s is pinned; %s would be %s faster", c.Name, c.RunnerUp,
			quantity.Percent(-c.Free.SlowerBy))
	}
	free := d.alternative(*c.Free)
	rest := d.otherDifferences(c)
	if c.RestKept == nil {
		s := d.mainReason(free)
		if rest != "" {
			s = "with " + rest + ": " + s
		}
		return s
	}
	same := d.alternative(*c.RestKept)
	s := recomputedBlocks(c) + d.mainReason(same)
	if same.NoFit == nil && c.RestKept.SlowerBy < 0 && c.Verdict != search.Riskier {
		s = "faster, and not the plan that is given"
	}
	const notably = 0.01 // of a step
	if free.NoFit == nil && rest != "" && !free.IsRiskier &&
		(same.NoFit != nil || c.RestKept.SlowerBy-c.Free.SlowerBy > notably) {
		s += fmt.Sprintf("; %s with %s", quantity.Signed(c.Free.SlowerBy), rest)
	}
	return s
}

// recomputedBlocks returns how many blocks are recomputed by the plan that differs only in recompute; "" if it
// recomputes all of them.
func recomputedBlocks(c *search.Choice) string {
	text, some := strings.CutPrefix(c.RestKept.Plan.RecomputeWords(), "recompute "+c.RunnerUp+" ")
	if c.Name != "recompute" || !some {
		return ""
	}
	return text + ", "
}

// otherDifferences returns in two words how the best plan without the value that was taken differs otherwise. The
// choice's own value comes first if it is not the runner-up's.
func (d *Document) otherDifferences(c *search.Choice) string {
	value := c.Free.Plan.JSON()[c.Name]
	text := fmt.Sprint(value)
	if axes, ok := value.([]string); ok {
		text = strings.Join(axes, ",")
	}
	words := differenceWords(c.Free.Plan, d.Plan.Plan, c.Name)
	if text != c.RunnerUp {
		words = slices.Insert(words, 0, keyWords(c.Name, value))
	}
	return firstTwo(words)
}

// scalar returns the value that a text of a plan or of --set stands for.
func scalar(text string) any {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	switch text {
	case "null":
		return nil
	case "true", "false":
		return text == "true"
	}
	return text
}
