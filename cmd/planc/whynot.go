package main

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/spec/strict"
	"github.com/planc-dev/planc/passes/search"
)

// question is what --why-not asks.
type question struct {
	pins search.Pins
	held search.Pins // the job's, of keys that are not asked about: they hold in the answer too
	kept bool        // all else is as in the chosen plan
}

// parseQuestion reads tp=4,sp=false,rest=kept. Keys and values are those of the job's plan.
func parseQuestion(text string) (question, error) {
	var q question
	var pins spec.Pins
	doc, diags := strict.New(), ir.Diags{}
	seen := map[string]bool{}
	for _, part := range outsideBrackets(text) {
		key, value, _ := strings.Cut(part, "=")
		key = strings.TrimPrefix(key, "plan.")
		switch {
		case value == "" || value == "null":
			diags = append(diags, ir.Diag{Code: BadFlag,
				Msg: fmt.Sprintf("--why-not %s: KEY=VALUE is wanted, as tp=4 or tp=4,rest=kept", part)})
		case key == "rest":
			q.kept = value == "kept"
			if value != "kept" && value != "free" {
				diags = append(diags, ir.Diag{Code: BadFlag, Fix: "rest=kept",
					Msg: fmt.Sprintf("--why-not rest=%s: kept and free are what the rest can be", value)})
			}
		case seen[key]:
			diags = append(diags, ir.Diag{Code: BadFlag, Fix: key + "=[...]",
				Msg: fmt.Sprintf("--why-not %s: %s is given twice; a list allows several values", part, key)})
		case jobPlace(key) != "":
			at := jobPlace(key)
			diags = append(diags, ir.Diag{Code: strict.UnknownKey, Msg: fmt.Sprintf(
				"--why-not %s: %s is the job's, not the plan's; planc plan --set %s=%s plans the job with it", part,
				at, at, value)})
		default:
			seen[key] = true
			diags = append(diags, doc.Set(spec.Override{Key: key, Value: value, Shown: "--why-not " + part}, nil)...)
		}
	}
	diags = append(diags, doc.Decode(&pins)...)
	pins.Own(&diags, func(string) ir.Pos { return ir.Pos{} })
	q.pins = search.PinsOf(&pins)
	if len(q.pins) == 0 && len(diags) == 0 {
		return q, inputErrorf(BadFlag, "", "--why-not rest names no value to change, as tp=4 does")
	}
	return q, diags.Err()
}

// jobPlace is where the job has a key, or a dotted path, that the plan does not; "" where it has none, or several.
func jobPlace(key string) string {
	last := key[strings.LastIndexByte(key, '.')+1:]
	if slices.Contains(strict.Keys(reflect.TypeFor[spec.Pins]()), last) {
		return ""
	}
	places := slices.DeleteFunc(strict.Places(reflect.TypeFor[spec.Job](), last), func(p string) bool {
		return key != last && p != key
	})
	if len(places) != 1 {
		return ""
	}
	return places[0]
}

// outsideBrackets cuts at the commas that are in no list.
func outsideBrackets(text string) []string {
	depth := 0
	return strings.Split(strings.Map(func(r rune) rune {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth == 0 {
				return 0
			}
		}
		return r
	}, text), "\x00")
}

// String is the question as people say it: tp 4 · sp false, all else free.
func (q question) String() string {
	var words []string
	for _, k := range slices.Sorted(maps.Keys(q.pins)) {
		words = append(words, k+" "+strings.Join(q.pins[k], " or "))
	}
	if q.kept {
		return strings.Join(words, " · ") + ", all else kept"
	}
	if len(q.held) > 0 {
		return strings.Join(words, " · ") + ", all else free but what the job pins: " + strings.Join(q.held.Words(),
			" · ")
	}
	return strings.Join(words, " · ") + ", all else free"
}

// whyNotDoc is the answer to --why-not.
type whyNotDoc struct {
	Asked    map[string]any     `json:"asked"`
	Rest     string             `json:"rest"`    // free, kept
	Verdict  string             `json:"verdict"` // slower, riskier, no_fit, illegal; "" of the chosen plan itself
	Plan     map[string]any     `json:"plan"`    // null where none is legal
	Predict  *costmodel.Predict `json:"predict"`
	SlowerBy *float64           `json:"slower_by"`
	NoFit    *search.NoFit      `json:"no_fit"`
	Rules    []brokenDoc        `json:"rules"` // that forbid it
	Message  string             `json:"message"`

	question question
	other    alternativeDoc
	moves    [2][]search.Traffic // of the state, where zero differs: the chosen plan's, and that of this one
}

// brokenDoc is a rule of legality, or a pin of the job, that forbids a plan.
type brokenDoc struct {
	Key     string `json:"key"`
	Message string `json:"message"`
}

// whyNot puts the best plan of the question beside the chosen one.
func (a *app) whyNot(j *loaded, d *document, found *decision, q question) error {
	q.held = search.PinsOf(&j.Plan).Without(slices.Collect(maps.Keys(q.pins))...)
	w := &whyNotDoc{Asked: map[string]any{}, Rest: "free", Rules: []brokenDoc{}, question: q}
	for k, vs := range q.pins {
		w.Asked[k] = scalar(vs[0])
		if len(vs) > 1 {
			w.Asked[k] = vs
		}
	}
	pins := q.pins
	if q.kept {
		w.Rest, pins = "kept", search.Kept(found.Best.Plan, q.pins)
	}
	var alt search.Alternative
	err := a.runSearches(func() (err error) {
		if found.lock.isObeyed() || found.Unfit != nil {
			alt, err = search.WhyNot(j.Problem(), found.Best, pins)
		} else {
			alt, err = found.WhyNot(pins)
		}
		return err
	})
	var illegal *search.IllegalError
	switch {
	case errors.As(err, &illegal):
		w.forbidden(illegal)
	case isTooMany(err):
		return j.SearchError(err)
	case err != nil:
		return err
	default:
		w.priced(d, alt, j.overruled(q.pins))
	}
	d.WhyNot = w
	if w.Plan != nil && alt.Plan.Zero != found.Best.Plan.Zero {
		for i, plan := range []ir.Plan{found.Best.Plan, alt.Plan} {
			w.moves[i], err = search.StateMoves(j.Problem(), plan)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// forbidden is the answer where no plan is legal.
func (w *whyNotDoc) forbidden(e *search.IllegalError) {
	w.Verdict = string(search.Illegal)
	var messages []string
	for _, r := range e.Reasons {
		w.Rules = append(w.Rules, brokenDoc{r.Key, r.Message})
		messages = append(messages, r.Message)
	}
	w.Message = strings.Join(messages, "; ")
}

// priced is the answer where there is a plan; pinned are the job's pins that the question changes.
func (w *whyNotDoc) priced(d *document, alt search.Alternative, pinned []string) {
	w.Plan, w.Predict, w.NoFit = alt.Plan.JSON(), &alt.Predict, alt.NoFit
	w.other = alternativeDoc{plan: alt.Plan, Predict: alt.Predict, NoFit: alt.NoFit}
	if alt.NoFit == nil {
		w.SlowerBy = &alt.SlowerBy
	}
	switch {
	case alt.Plan == d.head.chosen:
		w.Message = "this is the chosen plan"
	case alt.NoFit != nil:
		w.Verdict, w.Message = string(search.DoesNot), overText(alt.NoFit, alt.Plan.PP > 1)
	case alt.SlowerBy < 0 && len(pinned) > 0:
		w.Verdict = string(search.Illegal)
		for _, key := range pinned {
			w.Rules = append(w.Rules, brokenDoc{key, "the job pins " + key})
		}
		w.Message = "the job pins " + strings.Join(pinned, ", ")
	case alt.Riskier(search.Priced{Plan: d.head.chosen, Predict: d.Predict}):
		w.Verdict, w.Message = string(search.Riskier), d.riskText(&alt.Predict)
	default:
		w.Verdict, w.Message = string(search.Slower), w.other.because(d)
	}
}

// overruled are the job's pins that the question changes.
func (j *loaded) overruled(asked search.Pins) (keys []string) {
	for _, k := range slices.Sorted(maps.Keys(search.PinsOf(&j.Plan))) {
		if asked[k] != nil {
			keys = append(keys, k)
		}
	}
	return keys
}
