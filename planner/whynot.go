package planner

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/passes/search/price"
)

// Restriction is what a user asks with --why-not: values of keys that another plan should have.
type Restriction struct {
	Pins search.Pins
	// IsRestKept says that the other keys keep the chosen plan's values. Otherwise they are free, unless the job pins
	// them.
	IsRestKept bool

	held search.Pins // pins of the job that hold in the answer too
}

// String returns the restriction in words: "tp 4 · sp false, all else free".
func (r Restriction) String() string {
	var words []string
	for _, k := range slices.Sorted(maps.Keys(r.Pins)) {
		words = append(words, k+" "+strings.Join(r.Pins[k], " or "))
	}
	text := strings.Join(words, " · ")
	switch {
	case r.IsRestKept:
		return text + ", all else kept"
	case len(r.held) > 0:
		return text + ", all else free but what the job pins: " + strings.Join(r.held.Words(), " · ")
	}
	return text + ", all else free"
}

// WhyNot is the answer to a restriction: the best plan under it, compared with the chosen one.
type WhyNot struct {
	Asked    map[string]any     `json:"asked"`
	Rest     string             `json:"rest"`      // free, kept
	Verdict  string             `json:"verdict"`   // slower, riskier, no_fit, illegal; "" for the chosen plan itself
	Plan     *Plan              `json:"plan"`      // null if none is legal
	Predict  *costmodel.Predict `json:"predict"`   // null if none is legal
	SlowerBy *float64           `json:"slower_by"` // fraction of the chosen plan's step
	NoFit    *search.NoFit      `json:"no_fit"`    // null if it fits
	Rules    []BrokenRule       `json:"rules"`     // that forbid it
	Message  string             `json:"message"`

	Restriction Restriction `json:"-"`
	// StateTraffic is what ranks send of parameters, gradients and optimizer state in a step, with the chosen plan and
	// with this one; nil if both have the same zero.
	StateTraffic [2][]price.Traffic `json:"-"`
}

// BrokenRule is a rule of legality, or a pin of the job, that forbids a plan.
type BrokenRule struct {
	Key     string `json:"key"`
	Message string `json:"message"`
}

// AskWhyNot adds the answer to a restriction to an explained document. It fails if there are too many plans to search.
func (d *Document) AskWhyNot(r Restriction) error {
	q, found := d.decision.Question, d.decision
	r.held = search.PinsOf(&q.Plan).Without(slices.Collect(maps.Keys(r.Pins))...)
	w := &WhyNot{Asked: map[string]any{}, Rest: "free", Rules: []BrokenRule{}, Restriction: r}
	for k, values := range r.Pins {
		w.Asked[k] = scalar(values[0])
		if len(values) > 1 {
			w.Asked[k] = values
		}
	}
	pins := r.Pins
	if r.IsRestKept {
		w.Rest, pins = "kept", search.PinPlan(found.Best.Plan, r.Pins)
	}
	var alt search.Alternative
	var err error
	if found.IsGiven || found.NoPlan != nil {
		alt, err = search.WhyNot(q.Problem(), found.Best, pins)
	} else {
		alt, err = found.WhyNot(pins)
	}
	var illegal *search.IllegalError
	switch {
	case errors.As(err, &illegal):
		w.setIllegal(illegal)
	case isTooMany(err):
		return q.SearchError(err)
	case err != nil:
		return err
	default:
		d.setAnswer(w, alt)
	}
	d.WhyNot = w
	if w.Plan == nil || alt.Plan.Zero == found.Best.Plan.Zero {
		return nil
	}
	for i, plan := range []ir.Plan{found.Best.Plan, alt.Plan} {
		w.StateTraffic[i], err = price.StateMoves(q.Problem(), plan)
		if err != nil {
			return err
		}
	}
	return nil
}

// setIllegal makes the answer that no plan is legal.
func (w *WhyNot) setIllegal(e *search.IllegalError) {
	w.Verdict = string(search.Illegal)
	var messages []string
	for _, r := range e.Reasons {
		w.Rules = append(w.Rules, BrokenRule{r.Key, r.Message})
		messages = append(messages, r.Message)
	}
	w.Message = strings.Join(messages, "; ")
}

// setAnswer makes the answer from the best plan under the restriction.
func (d *Document) setAnswer(w *WhyNot, alt search.Alternative) {
	w.Plan, w.Predict, w.NoFit = &Plan{alt.Plan}, &alt.Predict, alt.NoFit
	if alt.NoFit == nil {
		w.SlowerBy = &alt.SlowerBy
	}
	pinned := overruledPins(d.decision.Question, w.Restriction.Pins)
	switch {
	case alt.Plan == d.Plan.Plan:
		w.Message = "this is the chosen plan"
	case alt.NoFit != nil:
		w.Verdict, w.Message = string(search.DoesNot), overText(alt.NoFit, alt.Plan.PP > 1)
	case alt.SlowerBy < 0 && len(pinned) > 0:
		w.Verdict = string(search.Illegal)
		for _, key := range pinned {
			w.Rules = append(w.Rules, BrokenRule{key, "the job pins " + key})
		}
		w.Message = "the job pins " + strings.Join(pinned, ", ")
	case alt.Riskier(d.chosen()):
		w.Verdict, w.Message = string(search.Riskier), d.riskText(&alt.Predict)
	default:
		w.Verdict = string(search.Slower)
		w.Message = d.Reason(Alternative{Plan: *w.Plan, Predict: alt.Predict})
	}
}

// overruledPins returns the job's pins that a restriction changes.
func overruledPins(q *Question, asked search.Pins) (keys []string) {
	for _, k := range slices.Sorted(maps.Keys(search.PinsOf(&q.Plan))) {
		if asked[k] != nil {
			keys = append(keys, k)
		}
	}
	return keys
}
