package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/planc-dev/planc/costmodel"
)

// fasterDoc is a near question, on fewer nodes or of a near batch, whose best plan trains on notably more tokens a
// second.
type fasterDoc struct {
	Set     map[string]any    `json:"set"`
	Speedup float64           `json:"speedup"`
	Plan    map[string]any    `json:"plan"`
	Predict costmodel.Predict `json:"predict"`

	text string
}

// faster is what plan says of near questions, those that are soon known; nil if there is nothing to say.
func (d *document) faster(found *decision) *fasterDoc {
	if !d.Fits {
		return nil
	}
	l, ok := found.Near(found.Fastest)
	if !ok {
		return nil
	}
	key := slices.Collect(maps.Keys(l.Set))[0] // the only one
	return &fasterDoc{Set: l.Set, Speedup: l.Speedup, Plan: l.Best.Plan.JSON(), Predict: l.Best.Predict,
		text: fmt.Sprintf("%s: %.2f × the tokens a second, %s a step; --set %s=%v",
			leverName(d, leverDoc{Name: l.Name, Set: l.Set}),
			1+l.Speedup, seconds(float64(l.Best.Predict.StepS)), key, l.Set[key])}
}
