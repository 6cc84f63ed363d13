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
	// plans fit, and the file can express none of them
	isOutsideFile bool
}

// IsOutsideFile reports whether the file cannot express the best plan, because it can express none that fits.
func (c *Check) IsOutsideFile() bool { return c.origin.isOutsideFile }

// From returns the plan that edits change: the checked one, or the one that is meant if that is illegal.
func (c *Check) From() ir.Plan { return c.origin.plan }

// LeastBytes returns what the fullest stage of the checked plan needs if fractions of the parts that
// costmodel.MemoryParts names are not on the device.
func (c *Check) LeastBytes(absent map[string]float64) int64 {
	return engine(c.Question).Least(c.Yours.Predict.MemoryBytes, absent)
}

// CheckVerdict is what a check comes to.
type CheckVerdict string

// Verdicts of checks.
const (
	CheckFine    CheckVerdict = "fine"
	CheckIllegal CheckVerdict = "illegal"
	CheckNoFit   CheckVerdict = "no_fit"
	// CheckUnpriced is the verdict on a legal plan that does not fit as it is priced, if its file offloads so much
	// state that it may fit, or trains adapters.
	CheckUnpriced CheckVerdict = "unpriced"
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

// FileLimits are the plans that a trainer's file can express. The zero value is all.
type FileLimits struct {
	Expresses func(*ir.Plan) bool // nil: all
	Keeps     []string            // keys of the checked plan that the file cannot change
	// ReplicasZero is the stage of ZeRO that the file says for several replicas, if the checked plan has one.
	ReplicasZero int
	// Other prices plans that shard state if the checked plan does not, and the reverse. It is nil if the file has the
	// same precision for both.
	Other *Question
}

// NewCheckOf is NewCheck for a trainer's file that cannot express all plans: the best plan is the fastest that it can,
// or else the checked one. If it can express none, as because of the model, all plans count. limits returns what a file
// can express that says the checked plan; nil is all.
func NewCheckOf(q *Question, limits func(yours ir.Plan) FileLimits) (*Check, error) {
	start := time.Now()
	k := newChecker(q)
	c := &Check{Schema: 1, Model: modelSummary(q), Cluster: clusterSummary(q.Hardware), Engine: q.Train.Engine,
		Rules: []BrokenRule{}, Why: []PartChange{}, Edits: []Edit{}, Changes: []CheckChange{},
		Assumed: []Assumption{}, Question: q}
	if err := k.findYours(c); err != nil {
		return nil, err
	}
	file := FileLimits{}
	if limits != nil {
		file = limits(k.from())
	}
	if file.Other != nil {
		k.split(file.Other)
	}
	best, counts, err := k.findBest()
	if err != nil {
		return nil, err
	}
	if limits != nil {
		best, counts, err = k.limit(c, file, best, counts)
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
	free     search.Problem  // without pins, except those of fixedKeys; its conditions hold for all parts
	parts    []*checkPart    // all plans; the first has the user's
	// fixedKeys are keys of the plan that the file cannot change.
	fixedKeys []string
	// replicasZero is [FileLimits.ReplicasZero].
	replicasZero int
	yours        *search.Priced // nil if it is illegal
	illegal      ir.Plan        // the plan that is meant if yours is illegal
}

func newChecker(q *Question) *checker {
	p := q.Problem()
	p.Prefer, p.MaxStep = search.PreferFastest, 0
	k := &checker{question: q, pinned: p, free: *p, parts: []*checkPart{{priced: p}}}
	k.free.Pins = search.Pins{}
	return k
}

// from returns the plan whose keys are edited.
func (k *checker) from() ir.Plan {
	if k.yours != nil {
		return k.yours.Plan
	}
	return k.illegal
}

// limitTo sets the plans that the file can express: keys that it cannot change are pinned.
func (k *checker) limitTo(limits FileLimits) {
	k.free.Expresses, k.fixedKeys = limits.Expresses, limits.Keeps
	all := search.PinPlan(k.from(), search.Pins{})
	for _, key := range k.fixedKeys {
		if values, ok := all[key]; ok {
			k.free.Pins[key] = values
		}
	}
}

// canExpress reports whether the file can express a plan, and has its values of fixedKeys.
func (k *checker) canExpress(plan *ir.Plan) bool {
	yours, theirs := k.from().JSON(), plan.JSON()
	for _, key := range k.fixedKeys {
		if key == "sp" && plan.TP == 1 {
			continue // there is no sequence parallelism without tp
		}
		if !equalValues(yours[key], theirs[key]) {
			return false
		}
	}
	return k.free.Expresses == nil || k.free.Expresses(plan)
}

// findYours finds the plan that is checked, with the reasons why it is illegal or does not fit.
func (k *checker) findYours(c *Check) error {
	series := &k.parts[0].series
	yours, _, err := series.Best(k.pinned)
	var illegal *search.IllegalError
	var unfit *search.NoPlan
	switch {
	case errors.As(err, &illegal):
		c.Verdict, k.illegal = CheckIllegal, meant(illegal)
		for _, r := range illegal.Reasons {
			c.Rules = append(c.Rules, BrokenRule{r.Key, r.Message})
		}
		errors.As(illegalError(k.question, illegal), &c.Diags)
		return nil
	case errors.As(err, &unfit):
		c.Verdict, yours = CheckNoFit, unfit.Nearest
		moments, err := series.Moments(k.pinned, yours.Plan)
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

// limit sets what the file can express, and returns the best plan that it can, given the best of all plans: nil if no
// plan fits. If the file can express none, it returns the best of all, and removes the condition.
func (k *checker) limit(c *Check, limits FileLimits, best *search.Priced, counts search.Counts) (*search.Priced,
	search.Counts, error) {
	k.replicasZero = limits.ReplicasZero
	if best == nil {
		return nil, counts, nil
	}
	k.limitTo(limits)
	if k.canExpress(&best.Plan) {
		return best, counts, nil
	}
	expressed, theirCounts, err := k.findBest()
	if err != nil {
		return nil, counts, err
	}
	if expressed == nil {
		k.free.Expresses, k.free.Pins, k.fixedKeys = nil, search.Pins{}, nil
		c.origin.isOutsideFile = true
		return best, counts, nil
	}
	c.origin.isLimited = true
	return expressed, theirCounts, nil
}

// expressed returns the edits that the file can express.
func (k *checker) expressed(edits []planEdit) []planEdit {
	return slices.DeleteFunc(slices.Clone(edits), func(e planEdit) bool {
		return !k.canExpress(&e.priced.Plan)
	})
}

// findBest returns the fastest plan that the engine can run and the file can express; nil if none fits or none is
// legal. Plans that such a search leaves out are tried too.
func (k *checker) findBest() (*search.Priced, search.Counts, error) {
	best, counts, err := k.bestOf(&k.free)
	for _, pins := range k.otherPins() {
		if err != nil && !isNone(err) {
			break
		}
		p := k.free
		p.Pins = pins
		one, n, oneErr := k.bestOf(&p)
		counts = counts.Plus(n)
		if compareAnswers(&one, oneErr, &best, err) < 0 {
			best, err = one, oneErr
		}
	}
	switch {
	case isNone(err):
		return nil, counts, nil
	case err != nil:
		return nil, counts, k.question.SearchError(err)
	}
	return &best, counts, nil
}

// otherPins returns the pins of searches for plans that a search with the pins of free does not try: those with the
// file's own stages, because it tries one split of the layers for each number of chunks; and those without tp, because
// sequence parallelism that the file cannot change requires it.
func (k *checker) otherPins() (out []search.Pins) {
	if own := k.ownStages(); own != nil {
		out = append(out, k.free.Pins.Merge(own))
	}
	if k.free.Pins["sp"] != nil && k.from().SP && k.free.Pins.Allows("tp", "1") {
		out = append(out, k.free.Pins.Without("sp").Merge(search.Pins{"tp": {"1"}}))
	}
	return out
}

// ownStages returns the pins of the file's own stages with all other keys free; nil if the file gives no split of the
// layers over several stages.
func (k *checker) ownStages() search.Pins {
	layers, isGiven := k.pinned.Pins["stage_layers"]
	from := k.from()
	if !isGiven || from.PP == 1 {
		return nil
	}
	all := search.PinPlan(from, search.Pins{})
	return search.Pins{"pp": all["pp"], "vpp": all["vpp"], "stage_layers": layers}
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
			s += fmt.Sprintf(" (%d more %s)", n, map[bool]string{true: "error", false: "errors"}[n == 1])
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
