package main

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
)

// derived are the keys of a plan that mostly follow from others, and are named only where nothing else differs; or
// where they do not follow.
var derived = map[string]bool{"zero_group": true, "micro_batches": true, "schedule": true, "stage_layers": true,
	"axis_order": true, "cp_kind": true, "etp": true}

// planKeys are the keys that tell two plans apart, in the order in which they are named. What recompute says has its
// blocks and their groups in it.
var planKeys = []string{"dp", "tp", "pp", "vpp", "cp", "cp_kind", "ep", "etp", "sp", "zero", "micro_batch", "recompute",
	"offload", "schedule", "zero_group", "micro_batches", "stage_layers", "axis_order", "moe_slack", "precision"}

// differences are the words in which a plan differs from another: "zero 3", "no sp".
func differences(p, from ir.Plan) string { return strings.Join(differenceWords(p, from, ""), " · ") }

// differenceWords are those, without one key's; without one, there is room for how much is recomputed.
func differenceWords(p, from ir.Plan, but string) []string {
	a, b := p.JSON(), from.JSON()
	var words, minor []string
	for _, key := range planKeys {
		switch {
		case key == "recompute" && but == "":
			if text := p.RecomputeWords(); text != from.RecomputeWords() {
				words = append(words, text)
			}
		case key == but, fmt.Sprint(a[key]) == fmt.Sprint(b[key]):
			continue
		case key == "sp" && p.TP == 1, key == "zero" && p.DP*p.CP == 1:
			continue // cannot be otherwise
		case derived[key] && !named(key, p, from):
			minor = append(minor, word(key, a[key]))
		default:
			words = append(words, word(key, a[key]))
		}
	}
	if len(words) == 0 && but == "" {
		words = minor
	}
	return words
}

// named tells whether a derived key's value is one that does not follow from what else differs.
func named(key string, p, from ir.Plan) bool {
	switch key {
	case "zero_group":
		return p.Zero == from.Zero && p.DP == from.DP
	case "schedule":
		return p.Schedule == "gpipe" || p.Splits()
	}
	return false
}

// word is a key and its value as people say it.
func word(key string, value any) string {
	switch v := value.(type) {
	case bool:
		if v {
			return key
		}
		return "no " + key
	case []string:
		if len(v) == 0 {
			return "no " + key
		}
		return key + " " + strings.Join(v, ",")
	case []int:
		return key + " " + strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ","), "[]")
	}
	return fmt.Sprintf("%s %v", key, value)
}

// label is how the alternative differs from the chosen plan.
func (a alternativeDoc) label(d *document) string {
	return cmp.Or(differences(a.plan, d.head.chosen), "the same plan")
}

// because is what makes the alternative worse: the memory that it lacks, or the part of the step that grows most.
func (a alternativeDoc) because(d *document) string {
	if a.NoFit != nil {
		return overText(a.NoFit, a.plan.PP > 1)
	}
	if a.risk {
		return d.riskText(&a.Predict)
	}
	s := grown(a.Predict.Time, d.Predict.Time)
	if chosen := &d.head.chosen; a.plan.PP > 1 && a.plan.Zero == 3 && chosen.Zero < 3 &&
		a.Predict.StepS > d.Predict.StepS {
		s = fmt.Sprintf("gathers for each of %d micro-batches: ", a.plan.MicroBatches) + s
	}
	return s
}

// mainly is because without what is gained in turn.
func (a alternativeDoc) mainly(d *document) string {
	s := a.because(d)
	if a.NoFit == nil {
		s, _, _ = strings.Cut(s, ", ")
	}
	return s
}

// overText is 14.0 GiB over, activations.
func overText(n *search.NoFit, staged bool) string {
	s := size(n.OverBytes) + " over, " + n.Part
	if staged {
		s += fmt.Sprintf(", stage %d", n.Stage)
	}
	return s
}

// sameTime is why a plan that is no slower in any part is no better.
const sameTime = "the same time"

// grown names the parts of the step that make the difference: the one that grows most, and of the others the one that
// changes most, if that matters.
func grown(t, from costmodel.Time) string {
	var more, next share
	change := func(name string) float64 { return float64(t.Part(name) - from.Part(name)) }
	for _, name := range costmodel.TimeParts {
		if by := change(name); by > more.value {
			more = share{name, by}
		}
	}
	if more.name == "" {
		return sameTime
	}
	for _, name := range costmodel.TimeParts {
		if by := change(name); name != more.name && math.Abs(by) > math.Abs(next.value) {
			next = share{name, by}
		}
	}
	s := more.name + " +" + seconds(more.value)
	if math.Abs(next.value) > more.value/10 {
		s += ", " + next.name + " " + plus(next.value) + seconds(next.value)
	}
	return s
}

// plus is the sign that seconds leaves out.
func plus(v float64) string {
	if v > 0 {
		return "+"
	}
	return ""
}
