package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/passes/search"
)

// explained adds what explain knows beside the plan; whole: levers and rules too, which are searches.
func (a *app) explained(j *loaded, d *document, found *decision, whole bool) error {
	m := found.Best.Predict.MemoryBytes
	d.explainDoc = &explainDoc{Choices: []choiceDoc{}, Levers: []leverDoc{}, Rules: []ruleDoc{},
		ErrorBar: errorBar(j, found.Best)}
	d.head.experts = expertsSentence(found.Best.Plan, search.ExpertsOf(j.Problem(), found.Best.Plan))
	for _, c := range found.Choices {
		d.Choices = append(d.Choices, d.choice(&c))
	}
	if d.Fits && whole {
		if err := a.beyond(j, d, found); err != nil {
			return err
		}
	}
	d.Binding = bindingDoc{Resource: binding(d), SlackBytes: m.Capacity - m.Total}
	return nil
}

// errorBar is what the step's error bar rests on.
func errorBar(j *loaded, best search.Priced) errorBarDoc {
	e, bar := barOf(j, best)
	like := bar.String()
	if e.Own && bar.Rows > 0 {
		like += "; planc's own kernels were not measured there"
	} else if e.Like != "" && bar.Rows > 0 {
		like += "; no run of " + e.Name + " was measured"
	}
	return errorBarDoc{Rows: bar.Rows, Like: like, Beyond: bar.Beyond.Trait}
}

func barOf(j *loaded, best search.Priced) (*costmodel.Engine, costmodel.ErrorBar) {
	e := costmodel.EngineOf(j.Train.Engine)
	return e, costmodel.ErrorBarOf(e, j.Hardware, j.Problem().Computes(), best.Plan.PP, best.Plan.MoESlack > 0,
		best.Predict.StepS)
}

// borrowedBar says what the step's error bar is of, where that is not runs of the engine: "± 11 % (runs of megatron,
// none of planc's)", "± 30 % (not measured at this size)", "± 30 % (not measured on such a network)", "± 50 %
// (assumed)".
func borrowedBar(j *loaded, best search.Priced) string {
	e, bar := barOf(j, best)
	why := ""
	switch {
	case bar.Short:
		why = "not measured at this size"
	case bar.Beyond.Trait != "":
		why = "not measured on such " + beyondWords[bar.Beyond.Trait]
	case bar.Rows == 0:
		why = "assumed"
	case e.Like != "" && bar.Engine != "":
		why = fmt.Sprintf("runs of %s, none of %s's", bar.Engine, e.Name)
	default:
		return ""
	}
	return fmt.Sprintf("%s (%s)", strings.TrimSpace(spread(best.Predict)), why)
}

// beyondWords are the hardware that no measured run was on, by [costmodel.TraitNames].
var beyondWords = map[string]string{"flops": "devices", "memory_bandwidth": "devices", "link": "links",
	"network": "a network"}

// beyond asks what would change the plan, and what rules of thumb would have said.
func (a *app) beyond(j *loaded, d *document, found *decision) error {
	own := found.Fastest // what hardware can gain is seen by the fastest plans with it and without
	var f search.Further
	err := a.runWithNotice("weighing what would change it", func() error {
		f = found.Beyond(j.Config.Params(), own, j.Narrower()...)
		return nil
	})
	for _, l := range f.Levers {
		doc := leverDoc{Name: l.Name, Set: l.Set, Speedup: l.Speedup, best: l.Best}
		if l.Best != nil {
			doc.Plan = l.Best.Plan.JSON()
			doc.experts = search.ExpertsOf(j.Problem(), l.Best.Plan)
		}
		d.Levers = append(d.Levers, doc)
	}
	change := batchChange(j, found.lock)
	for i := range f.Thumbs {
		if t := &f.Thumbs[i]; t.Rule == search.LearningRate && change != "" {
			t.Message = change
		}
		d.Rules = append(d.Rules, d.rule(&f.Thumbs[i]))
	}
	return err
}

// choice is a choice as documents and screens say it.
func (d *document) choice(c *search.Choice) choiceDoc {
	row := choiceDoc{Name: c.Name, Taken: scalar(c.Taken), Verdict: string(c.Verdict), Part: c.Part,
		Message: d.choiceMessage(c)}
	if c.RunnerUp != "" {
		row.RunnerUp = scalar(c.RunnerUp)
	}
	switch {
	case c.Free == nil:
	case c.Verdict == search.DoesNot:
		row.OverBytes = &c.OverBytes
	default:
		row.SlowerBy = &c.SlowerBy
	}
	if c.Free != nil && (c.Kept == nil || c.Free.Plan != c.Kept.Plan) {
		free := &freeDoc{Plan: c.Free.Plan.JSON(), NoFit: c.Free.NoFit}
		if c.Free.NoFit == nil {
			free.SlowerBy = &c.Free.SlowerBy
		}
		row.Free = free
	}
	return row
}

// choiceMessage is why the runner-up was not taken: of the plan that differs only in the choice, and what is best with
// all else free where that is notably better.
func (d *document) choiceMessage(c *search.Choice) string {
	switch {
	case c.Free == nil && len(c.Broken) > 0:
		return c.Broken[0].Message
	case c.Free == nil:
		return "the other keys are pinned"
	case c.Pinned:
		return fmt.Sprintf("%s is pinned; %s would be %s faster", c.Name, c.RunnerUp, percent(-c.Free.SlowerBy))
	}
	free := d.alternative(*c.Free)
	rest := d.besideRunnerUp(c)
	if c.Kept == nil {
		s := free.mainly(d)
		if rest != "" {
			s = "with " + rest + ": " + s
		}
		return s
	}
	kept := d.alternative(*c.Kept)
	s := someBlocks(c) + kept.mainly(d)
	if kept.NoFit == nil && c.Kept.SlowerBy < 0 && c.Verdict != search.Riskier {
		s = "faster, and not the plan that is given"
	}
	const notably = 0.01 // of a step
	if free.NoFit == nil && rest != "" && !free.risk &&
		(kept.NoFit != nil || c.Kept.SlowerBy-c.Free.SlowerBy > notably) {
		s += fmt.Sprintf("; %s with %s", signed(c.Free.SlowerBy), rest)
	}
	return s
}

// someBlocks says how many blocks the plan that differs only in recompute recomputes, "" where it is all of them.
func someBlocks(c *search.Choice) string {
	text, some := strings.CutPrefix(c.Kept.Plan.RecomputeWords(), "recompute "+c.RunnerUp+" ")
	if c.Name != "recompute" || !some {
		return ""
	}
	return text + ", "
}

// besideRunnerUp is what else the best plan without the value that was taken has, in two words: the choice's own value
// first, where that is not the runner-up's.
func (d *document) besideRunnerUp(c *search.Choice) string {
	value := c.Free.Plan.JSON()[c.Name]
	text := fmt.Sprint(value)
	if axes, ok := value.([]string); ok {
		text = strings.Join(axes, ",")
	}
	words := differenceWords(c.Free.Plan, d.head.chosen, c.Name)
	if text != c.RunnerUp {
		words = slices.Insert(words, 0, word(c.Name, value))
	}
	return brief(words)
}

// brief are the two words that say most of a difference: dp follows from the other degrees.
func brief(words []string) string {
	words = slices.DeleteFunc(words, func(w string) bool { return strings.HasPrefix(w, "dp ") })
	const most = 2
	if len(words) > most {
		words = words[:most]
	}
	return strings.Join(words, " · ")
}

// alternative is the search's as a document's.
func (d *document) alternative(a search.Alternative) alternativeDoc {
	row := alternativeDoc{Plan: a.Plan.JSON(), Predict: a.Predict, NoFit: a.NoFit, plan: a.Plan}
	if a.NoFit == nil {
		row.SlowerBy = &a.SlowerBy
		row.risk = a.Riskier(search.Priced{Plan: d.head.chosen, Predict: d.Predict})
	}
	return row
}

// rule is what a rule of thumb comes to.
func (d *document) rule(t *search.RuleOfThumb) ruleDoc {
	row := ruleDoc{Rule: t.Rule, Verdict: string(t.Verdict), Message: t.Message}
	switch t.Verdict {
	case search.Slower, search.Riskier, search.Faster, search.Differs, search.Agrees:
		row.SlowerBy = &t.SlowerBy
	}
	if t.Best == nil {
		return row
	}
	row.Plan = t.Best.Plan.JSON()
	if row.Message == "" {
		a := d.alternative(*t.Best)
		row.Message = a.label(d) + ": " + a.mainly(d)
		row.plan = &t.Best.Plan
	}
	return row
}

// memoryBinds is the binding resource if more memory would make the plan faster.
const memoryBinds = "memory"

// nothing is what a lever gains that does not move the plan, as a fraction.
const nothing = 0.0005

// binding is what keeps the plan from being faster: memory where the plan does not fit, or where more of it gains more
// than the levers on what the step spends most on, which it is else.
func binding(d *document) string {
	t := d.Predict.Time
	most := slices.MaxFunc(costmodel.TimeParts, func(a, b string) int { return cmp.Compare(t.Part(a), t.Part(b)) })
	more, tried := d.lever(memoryBinds)
	best, any := d.strongest(most)
	switch {
	case !d.Fits, !tried && !any && fasterUnfit(d.Alternatives, d.Predict) >= 0:
		return memoryBinds
	case tried && more.Speedup >= nothing && (!any || more.Speedup >= best.Speedup):
		return memoryBinds
	}
	return most
}

// lever is a lever by its name.
func (d *document) lever(name string) (leverDoc, bool) {
	for _, l := range d.Levers {
		if l.Name == name {
			return l, true
		}
	}
	return leverDoc{}, false
}

// fasterUnfit is the alternative that lacks least memory of those that would be faster, -1 if there is none.
func fasterUnfit(alternatives []alternativeDoc, than costmodel.Predict) int {
	return slices.IndexFunc(alternatives, func(a alternativeDoc) bool {
		return a.NoFit != nil && a.Predict.StepS < than.StepS
	})
}
