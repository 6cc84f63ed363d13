package search

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// Alternative is the best plan under some restriction, compared with the chosen one.
type Alternative struct {
	Plan     ir.Plan
	Predict  costmodel.Predict
	SlowerBy float64 // fraction of the chosen plan's step; 0 if it does not fit
	NoFit    *NoFit  // nil if it fits
}

// JSON returns the alternative in the format of contract.md: slower_by is null if it does not fit.
func (a Alternative) JSON() map[string]any {
	out := map[string]any{"plan": a.Plan.JSON(), "predict": a.Predict, "slower_by": a.SlowerBy, "no_fit": a.NoFit}
	if a.NoFit != nil {
		out["slower_by"] = nil
	}
	return out
}

// NoFit says by how much a plan does not fit, and which part of memory differs most from the chosen plan.
type NoFit struct {
	OverBytes int64  `json:"over_bytes"`
	Part      string `json:"part"`
	Stage     int    `json:"stage"`
}

// Verdict is why a choice's runner-up was not taken.
type Verdict string

// Verdicts of choices.
const (
	Slower  Verdict = "slower"
	DoesNot Verdict = "no_fit"
	Illegal Verdict = "illegal"
	// faster by less than predictions can tell, but with more memory pressure or a less simple plan
	Riskier Verdict = "riskier"
)

// Choice is one key of the plan: the value taken, and the best of its other values. Verdict and the figures are of
// the plan that differs only in this key, if one is legal, or else of the best plan with another value.
type Choice struct {
	Name      string
	Taken     string
	RunnerUp  string // "" if there is no other value
	Verdict   Verdict
	SlowerBy  float64 // negative if a pin forbids a faster plan
	OverBytes int64
	Part      string

	// the best plan that differs only in this key, in what depends on it, and in what is solved; nil if none is legal
	RestKept *Alternative
	Broken   []Reason // the rules of legality that are broken, if Kept is nil
	// the best plan with another value and everything else free; nil if there is no other value
	Free *Alternative
	// the plan with the other value is faster, and only the job's pin forbids it
	Pinned bool
}

// explain fills in alternatives and choices: for each key, the best plan with another value, and with each of the
// values that the choice asks for.
func (s *searcher) explain(sp *planSpace, r *Result) {
	var applying []*choice
	for i := range choices {
		if c := &choices[i]; c.applies == nil || c.applies(&r.Best.Plan) {
			applying = append(applying, c)
		}
	}
	seen := map[ir.Plan]bool{r.Best.Plan: true}
	for i, a := range s.answers(sp, applying, r.Best) {
		for _, o := range a.others {
			if !seen[o.Plan] && s.problem.Pins.Allows(applying[i].name, applying[i].value(&o.Plan)) {
				seen[o.Plan] = true
				r.Alternatives = append(r.Alternatives, o)
			}
		}
		if a.choice != nil {
			r.Choices = append(r.Choices, *a.choice)
		}
	}
	slices.SortStableFunc(r.Alternatives, compareAlternatives)
}

// answer is the explanation of one choice.
type answer struct {
	values []string            // values other than the one taken
	wants  []func(string) bool // restrictions that alternatives are searched under
	others []Alternative       // the alternative for each restriction
	choice *Choice             // nil if there is nothing to report
}

// ask returns the answer of a choice before its alternatives are found.
func (s answerer) ask(c *choice, best Priced) (a answer) {
	a.values = s.otherValues(s.freedSpace(s.space, c.name), c, &best.Plan)
	a.wants = c.questions(a.values, c.value(&best.Plan))
	a.others = make([]Alternative, len(a.wants))
	return a
}

// answer finds alternative i of a choice.
func (s answerer) answer(c *choice, a *answer, i int, best Priced) {
	a.others[i] = s.alternative(s.freedSpace(s.space, c.name), choiceFilter(c, &best.Plan, a.wants[i]), best)
}

// compare completes an answer once all its alternatives are found.
func (s answerer) compare(c *choice, a *answer, best Priced) {
	if len(a.others) == 0 && c.applies != nil {
		return
	}
	a.choice = &Choice{Name: c.name, Taken: c.value(&best.Plan)}
	s.runnerUp(a.choice, c, a.values, a.others, best)
}

// freedSpace returns the space with a key free. It returns sp itself if no plan is legal then, because a key that is
// split only on request has few values when it is free. It also does if there are too many plans.
func (s *searcher) freedSpace(sp *planSpace, name string) *planSpace {
	if s.problem.Pins[name] == nil {
		return sp
	}
	if s.freedSpaces[name] != nil {
		return s.freedSpaces[name]
	}
	q := *s.problem
	q.Pins = s.problem.Pins.Without(name)
	free, err := s.space(&q)
	var illegal *IllegalError
	var many *TooManyPlans
	switch {
	case errors.As(err, &illegal), errors.As(err, &many):
		free = sp
	case err != nil:
		panic("search: a space with a plan has none with fewer pins: " + err.Error())
	}
	s.freedSpaces[name] = free
	return free
}

// questions returns the restrictions under which a choice's alternatives are searched.
func (c *choice) questions(others []string, taken string) []func(string) bool {
	var out []func(string) bool
	is := func(v string) func(string) bool { return func(x string) bool { return x == v } }
	if len(others) == 0 {
		return nil
	}
	if c.asks == eachOther {
		for _, v := range others {
			out = append(out, is(v))
		}
		return out
	}
	out = append(out, func(x string) bool { return x != taken })
	if c.asks == adjacent {
		for _, v := range neighbours(others, taken) {
			out = append(out, is(v))
		}
	}
	return out
}

// neighbours returns the next smaller and the next larger of some numbers, if they exist.
func neighbours(values []string, value string) (out []string) {
	n, _ := strconv.Atoi(value)
	var numbers []int
	for _, v := range values {
		if m, err := strconv.Atoi(v); err == nil {
			numbers = append(numbers, m)
		}
	}
	slices.Sort(numbers)
	i, _ := slices.BinarySearch(numbers, n)
	if i > 0 {
		out = append(out, strconv.Itoa(numbers[i-1]))
	}
	if i < len(numbers) {
		out = append(out, strconv.Itoa(numbers[i]))
	}
	return out
}

// compareAlternatives orders plans that fit first, the faster first, then those that exceed memory less.
func compareAlternatives(a, b Alternative) int {
	switch {
	case a.NoFit == nil && b.NoFit == nil:
		return cmp.Compare(a.Predict.StepS, b.Predict.StepS)
	case a.NoFit == nil:
		return -1
	case b.NoFit == nil:
		return 1
	}
	return cmp.Compare(a.NoFit.OverBytes, b.NoFit.OverBytes)
}

// recommended returns the plan to recommend of a space, or the one that exceeds memory least if none fits.
func (s *searcher) recommended(sp *planSpace, chosen Priced) Alternative {
	c, _, ok := s.choose(sp, &filter{})
	if !ok {
		return s.versus(s.nearest(sp, nil), false, chosen)
	}
	return s.versus(c.best, true, chosen)
}

// alternative returns the fastest plan of a space that passes the filter, or the one that exceeds memory least if
// none fits.
func (s *searcher) alternative(sp *planSpace, k *filter, chosen Priced) Alternative {
	best, _, found := s.best(sp, k)
	if !found {
		best = s.nearest(sp, k)
	}
	return s.versus(best, found, chosen)
}

// versus compares a plan with the chosen one.
func (s *searcher) versus(best Priced, found bool, chosen Priced) Alternative {
	a := Alternative{Plan: best.Plan, Predict: best.Predict}
	if found {
		a.SlowerBy = slowerBy(best.Predict, chosen.Predict)
		return a
	}
	no := noFitOf(best)
	no.Part = mostGrownPart(best.Predict.MemoryBytes, chosen.Predict.MemoryBytes)
	a.NoFit = &no
	return a
}

// rounding is the relative difference that rounding may cause between two equal times.
const rounding = 1e-5

// slowerBy returns the fraction by which a takes longer than b, or 0 if the difference is rounding.
func slowerBy(a, b costmodel.Predict) float64 {
	d := costmodel.SixDigits(float64(a.StepS/b.StepS) - 1)
	if d < 0 && d > -rounding {
		return 0
	}
	return d
}

// mostGrownPart returns the part of m that exceeds that of the other memory most.
func mostGrownPart(m, other costmodel.Memory) string {
	best, largest := m.Largest(), int64(0)
	for _, p := range costmodel.MemoryParts {
		if d := m.Part(p) - other.Part(p); d > largest {
			best, largest = p, d
		}
	}
	return best
}

// WhyNot returns the plan to recommend with further pins, compared with the chosen one; everything else is as in the
// problem. If nothing fits, it returns the plan that exceeds memory least. Its errors are those of [Search].
func WhyNot(p *Problem, chosen Priced, pins Pins) (Alternative, error) {
	return new(Series).alternative(p, pins, chosen)
}

// runnerUp completes a choice with the best plan that differs only in it, and the best plan with another value and
// everything else free.
func (s *searcher) runnerUp(c *Choice, chosen *choice, values []string, others []Alternative, best Priced) {
	if len(others) == 0 {
		c.Verdict, c.Broken = Illegal, s.whyNone(c.Name, best.Plan)
		return
	}
	free := slices.MinFunc(others, compareAlternatives)
	c.Free = &free
	c.RestKept, c.Broken = s.onlyIn(chosen.name, values, best)
	a := c.Free
	if c.RestKept != nil {
		a = c.RestKept
	}
	c.RunnerUp = chosen.value(&a.Plan)
	c.Verdict, c.SlowerBy = Slower, a.SlowerBy
	if a.Riskier(best) {
		c.Verdict = Riskier
	}
	if a.NoFit != nil {
		c.Verdict, c.OverBytes, c.Part = DoesNot, a.NoFit.OverBytes, a.NoFit.Part
	}
	if f := c.Free; f.NoFit == nil && f.SlowerBy < 0 && s.problem.Pins[c.Name] != nil {
		c.RunnerUp, c.Verdict, c.SlowerBy, c.Pinned = chosen.value(&f.Plan), Illegal, f.SlowerBy, true
	}
}

// solvedKeys are the keys that every plan has at their best values. A plan that differs only in one other key solves
// them again.
var solvedKeys = []string{"recompute_layers", "recompute_every", "stage_layers"}

// onlyIn returns the best plan with another value of a key and everything else kept, or the rules that forbid every
// value.
func (s *searcher) onlyIn(key string, others []string, best Priced) (*Alternative, []Reason) {
	q := *s.problem
	q.Pins = pinsKeepingSolved(best.Plan, Pins{key: others}, s.problem.Pins)
	only, err := s.space(&q)
	var illegal *IllegalError
	switch {
	case errors.As(err, &illegal):
		return nil, illegal.Reasons
	case err != nil:
		panic("search: a space with a plan has none with other pins: " + err.Error())
	}
	a := s.alternative(only, nil, best)
	return &a, nil
}

// pinsKeepingSolved is [Kept], with the solved keys as the job pins them.
func pinsKeepingSolved(plan ir.Plan, but, job Pins) Pins {
	pins := PinPlan(plan, but).Without(solvedKeys...)
	for _, key := range solvedKeys {
		if vs, pinned := job[key]; pinned && but[key] == nil {
			pins[key] = vs
		}
	}
	return pins
}
