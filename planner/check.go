package planner

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner/quantity"
)

// Check is the answer to the question that users of another trainer ask about the plan that they run: is it legal, does
// it fit, how far is it from the best, and which changes help? [NewCheck] makes it. It is what `planc check --json`
// prints about the plan (docs/output.md).
type Check struct {
	Schema   int            `json:"schema"`
	Planc    string         `json:"planc"` // version of the program that made it
	Model    ModelSummary   `json:"model"`
	Cluster  ClusterSummary `json:"cluster"`
	Engine   string         `json:"engine"`
	Verdict  CheckVerdict   `json:"verdict"`
	Message  string         `json:"message"`   // the verdict in one sentence
	Rules    []BrokenRule   `json:"rules"`     // that an illegal plan breaks
	Yours    *CheckedPlan   `json:"yours"`     // null if it is illegal
	Best     *CheckedPlan   `json:"best"`      // the fastest that engine and file allow; null if none fits
	SlowerBy *float64       `json:"slower_by"` // yours, as a fraction of the best plan's step; null without either
	Over     *OverMemory    `json:"no_fit"`    // null if it fits
	Why      []PartChange   `json:"why"`       // parts of the step, the largest difference first
	// Edits change one key of the plan each, or two if one alone is impossible. Those that fit come first, the fastest
	// first.
	Edits   []Edit        `json:"edits"`
	Changes []CheckChange `json:"changes"` // of the job, under which a plan fits; empty if yours fits
	Assumed []Assumption  `json:"guessed"`
	Search  SearchSummary `json:"search"` // for the best plan

	// Diags are Rules with their positions in the job.
	Diags    ir.Diags  `json:"-"`
	Question *Question `json:"-"`

	origin checkOrigin
}

// checkOrigin is what a check started from.
type checkOrigin struct {
	plan ir.Plan // that edits change
	// the engine can run a faster plan than the best one, which the file cannot express
	isLimited bool
}

// From returns the plan that edits change: the checked one, or the one that is meant if that is illegal.
func (c *Check) From() ir.Plan { return c.origin.plan }

// CheckVerdict is what a check comes to.
type CheckVerdict string

// Verdicts of checks.
const (
	CheckFine    CheckVerdict = "fine"
	CheckIllegal CheckVerdict = "illegal"
	CheckNoFit   CheckVerdict = "no_fit"
)

// CheckedPlan is a plan with its prediction.
type CheckedPlan struct {
	Plan    Plan              `json:"plan"`
	Fits    bool              `json:"fits"`
	Stage   int               `json:"stage"` // the one that uses the most memory
	Predict costmodel.Predict `json:"predict"`
	// Chosen are the keys of the checked plan that the pins leave open, so that the search chose their values.
	Chosen []string `json:"chosen,omitempty"`
}

func newCheckedPlan(p search.Priced) *CheckedPlan {
	return &CheckedPlan{Plan: Plan{p.Plan}, Fits: p.Fits(), Stage: p.Stage, Predict: p.Predict}
}

// OverMemory says by how much a plan does not fit, and when memory runs out.
type OverMemory struct {
	search.NoFit
	// Moment is the first moment of training that needs more than the capacity, one of costmodel's.
	Moment  string                   `json:"moment"`
	Moments []costmodel.MemoryMoment `json:"moments"`
}

// momentWords are the moments of [OverMemory] in words.
var momentWords = map[string]string{
	costmodel.FirstPasses:   "in the forward pass of the first step",
	costmodel.OptimizerStep: "at the first optimizer step",
	costmodel.LaterPasses:   "in the forward pass of the second step, when the optimizer's moments exist",
	costmodel.Start:         "at the start",
}

// When returns the moment in words.
func (o *OverMemory) When() string { return momentWords[o.Moment] }

// PartChange is a part of the step's time in your plan and in the best one.
type PartChange struct {
	Part   string  `json:"part"`
	YoursS float64 `json:"yours_s"`
	BestS  float64 `json:"best_s"`
}

// NewCheck checks the plan that a question pins, under the question's engine. If the pins leave several plans, it
// checks the fastest that fits, or else the one that exceeds memory least. It returns an error if there are too many
// plans to search, or if the cluster cannot run such a job at all.
func NewCheck(q *Question) (*Check, error) { return NewCheckOf(q, nil) }

// NewCheckOf is NewCheck for a trainer's file that cannot express all plans: the best plan is the fastest that it can,
// or else the checked one. If it can express none, as because of the model, all plans count. Nil expresses all.
func NewCheckOf(q *Question, expresses func(*ir.Plan) bool) (*Check, error) {
	start := time.Now()
	p := q.Problem()
	p.Prefer, p.MaxStep = search.PreferFastest, 0
	k := &checker{question: q, pinned: p, free: *p}
	k.free.Pins = search.Pins{}
	c := &Check{Schema: 1, Model: modelSummary(q), Cluster: clusterSummary(q.Hardware), Engine: q.Train.Engine,
		Rules: []BrokenRule{}, Why: []PartChange{}, Edits: []Edit{}, Changes: []CheckChange{},
		Assumed: []Assumption{}, Question: q}
	if err := k.findYours(c); err != nil {
		return nil, err
	}
	best, counts, err := k.findBest()
	if err != nil {
		return nil, err
	}
	if best != nil && expresses != nil {
		k.free.Expresses = expresses
		best, counts, err = k.limit(c, best, counts)
		if err != nil {
			return nil, err
		}
	}
	c.Search = SearchSummary{Counts: counts, Restricted: search.Restricted(&k.free)}
	c.origin.plan = k.from()
	edits := k.edits(c.Verdict)
	best = fastestOf(best, k.yours, k.expressed(edits))
	c.compare(k.yours, best)
	c.addEdits(edits, k, best)
	c.Assumed = assumptions(q, c.origin.plan)
	if c.Verdict == CheckNoFit {
		c.Changes = k.changes(best)
	}
	c.Message = c.sentence()
	c.Search.Seconds = float64(costmodel.Seconds(time.Since(start).Seconds()).Rounded())
	return c, nil
}

// checker finds the plans that a check compares.
type checker struct {
	question *Question
	pinned   *search.Problem // with the user's plan
	free     search.Problem  // without pins
	series   search.Series
	yours    *search.Priced // nil if it is illegal
	illegal  ir.Plan        // the plan that is meant if yours is illegal
}

// from returns the plan whose keys are edited.
func (k *checker) from() ir.Plan {
	if k.yours != nil {
		return k.yours.Plan
	}
	return k.illegal
}

// findYours finds the plan that is checked, with the reasons why it is illegal or does not fit.
func (k *checker) findYours(c *Check) error {
	yours, _, err := k.series.Best(k.pinned)
	var illegal *search.IllegalError
	var unfit *search.NoPlan
	switch {
	case errors.As(err, &illegal):
		c.Verdict, k.illegal = CheckIllegal, meant(illegal)
		for _, r := range illegal.Reasons {
			c.Rules = append(c.Rules, BrokenRule(r))
		}
		errors.As(illegalError(k.question, illegal), &c.Diags)
		return nil
	case errors.As(err, &unfit):
		c.Verdict, yours = CheckNoFit, unfit.Nearest
		moments, err := k.series.Moments(k.pinned, yours.Plan)
		if err != nil {
			return err
		}
		c.Over = overMemory(unfit.NoFit, moments, yours.Predict.MemoryBytes.Capacity)
	case err != nil:
		return k.question.SearchError(err)
	default:
		c.Verdict = CheckFine
	}
	k.yours, c.Yours = &yours, newCheckedPlan(yours)
	c.Yours.Chosen = chosenKeys(k.pinned.Pins, &yours.Plan, k.question.Config.Experts > 0)
	return nil
}

// overMemory finds the first moment that needs more than the capacity.
func overMemory(n search.NoFit, moments []costmodel.MemoryMoment, capacity int64) *OverMemory {
	i := slices.IndexFunc(moments, func(m costmodel.MemoryMoment) bool { return m.Bytes > capacity })
	return &OverMemory{n, moments[max(0, i)].Name, moments}
}

// meant returns the plan that pins mean although it is illegal. Keys that are not pinned follow from the others.
func meant(e *search.IllegalError) ir.Plan {
	plan := e.Plan
	for _, key := range e.Pins.Keys() {
		if values := e.Pins[key]; len(values) == 1 {
			_ = plan.SetKey(key, values[0]) // a value that no plan can have is among the broken rules
		}
	}
	if e.Pins["zero_group"] == nil && plan.Zero > 0 {
		plan.ZeroGroup = plan.Replicas()
	}
	if e.Pins["recompute_layers"] == nil && plan.Recompute != "none" {
		plan.RecomputeLayers = plan.LargestChunk()
	}
	return plan
}

// limit returns the best plan that the file can express, given the best of all plans. If there is none, it returns
// that one, and removes the condition.
func (k *checker) limit(c *Check, best *search.Priced, counts search.Counts) (*search.Priced, search.Counts, error) {
	if k.free.Expresses(&best.Plan) {
		return best, counts, nil
	}
	expressed, theirCounts, err := k.findBest()
	if err != nil {
		return nil, counts, err
	}
	if expressed == nil {
		k.free.Expresses = nil
		return best, counts, nil
	}
	c.origin.isLimited = true
	return expressed, theirCounts, nil
}

// expressed returns the edits that the file can express.
func (k *checker) expressed(edits []planEdit) []planEdit {
	return slices.DeleteFunc(slices.Clone(edits), func(e planEdit) bool {
		return k.free.Expresses != nil && !k.free.Expresses(&e.priced.Plan)
	})
}

// findBest returns the fastest plan that the engine can run and the file can express; nil if none fits or none is
// legal.
func (k *checker) findBest() (*search.Priced, search.Counts, error) {
	best, counts, err := bestExpressed(&k.series, &k.free)
	switch {
	case isNone(err):
		return nil, counts, nil
	case err != nil:
		return nil, counts, k.question.SearchError(err)
	}
	return &best, counts, nil
}

// fastestOf returns the fastest plan that fits. A search does not try all legal plans without pins (see
// [search.Restricted]), so that yours or an edit of it may be faster than what it finds.
func fastestOf(best, yours *search.Priced, edits []planEdit) *search.Priced {
	consider := func(p *search.Priced) {
		if p != nil && p.Fits() && (best == nil || p.Predict.StepS < best.Predict.StepS) {
			best = p
		}
	}
	consider(yours)
	for i := range edits {
		consider(&edits[i].priced)
	}
	return best
}

// compare adds the best plan, and how much slower yours is.
func (c *Check) compare(yours, best *search.Priced) {
	if best == nil {
		return
	}
	c.Best = newCheckedPlan(*best)
	if yours == nil {
		return
	}
	by := slowerBy(yours, best)
	c.SlowerBy = &by
	for _, part := range costmodel.TimeParts {
		a, b := yours.Predict.Time.Part(part), best.Predict.Time.Part(part)
		if a != b {
			c.Why = append(c.Why, PartChange{part, float64(a), float64(b)})
		}
	}
	slices.SortStableFunc(c.Why, func(a, b PartChange) int {
		return cmp.Compare(math.Abs(b.YoursS-b.BestS), math.Abs(a.YoursS-a.BestS))
	})
}

// slowerBy returns by which fraction of the second plan's step the first one is slower.
func slowerBy(a, other *search.Priced) float64 {
	return costmodel.SixDigits(float64(a.Predict.StepS/other.Predict.StepS) - 1)
}

// IsBest reports whether predictions cannot tell the checked plan from the best one.
func (c *Check) IsBest() bool { return c.SlowerBy != nil && *c.SlowerBy <= search.Apart }

// WhyWords returns what makes yours slower than the best plan: "pp_bubble +0.71 s, tp_comm -0.62 s"; "" if nothing
// does.
func (c *Check) WhyWords() string {
	if c.Yours == nil || c.Best == nil || len(c.Why) == 0 {
		return ""
	}
	return grownParts(c.Yours.Predict.Time, c.Best.Predict.Time)
}

// sentence returns the verdict in one sentence.
func (c *Check) sentence() string {
	switch c.Verdict {
	case CheckIllegal:
		s := "This plan is illegal: " + c.Rules[0].Message
		if n := len(c.Rules) - 1; n > 0 {
			s += fmt.Sprintf(" (and %d more)", n)
		}
		return s + "."
	case CheckNoFit:
		s := "This plan is legal and does not fit: " + quantity.Bytes(c.Over.OverBytes) + " over"
		if c.Yours.Plan.PP > 1 {
			s += fmt.Sprintf(" on stage %d", c.Over.Stage)
		}
		return s + ", " + c.Over.When() + "."
	case CheckFine:
	}
	able := "engine " + c.Engine + " can run"
	if c.origin.isLimited {
		able += " and the file can express"
	}
	switch by := *c.SlowerBy; {
	case by == 0:
		return "This plan is legal, fits, and is the fastest that " + able + "."
	case c.IsBest():
		return fmt.Sprintf("This plan is legal, fits, and is as fast as the best that %s, within what predictions "+
			"can tell (%s).", able, quantity.Signed(by))
	default:
		return fmt.Sprintf("This plan is legal, fits, and is %s slower than the best that %s.",
			strings.TrimPrefix(quantity.Percent(by), "+"), able)
	}
}
