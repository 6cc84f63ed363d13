package main

import (
	"fmt"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/passes/search"
)

// simplerDoc is a simpler plan that the cost model can hardly tell from the chosen one, and what to set to have it.
type simplerDoc struct {
	Set      map[string]any    `json:"set"`
	Plan     map[string]any    `json:"plan"`
	Predict  costmodel.Predict `json:"predict"`
	SlowerBy float64           `json:"slower_by"`

	text string
}

// simpler is what the search says of simpler plans, nil if there is nothing to say.
func (d *document) simpler(r *search.Result) *simplerDoc {
	s, ok := r.Simpler()
	if !ok {
		return nil
	}
	path, a := "plan."+s.Key, d.alternative(s.Alternative)
	return &simplerDoc{Set: map[string]any{path: scalar(s.Value)}, Plan: a.Plan, Predict: a.Predict, SlowerBy: s.SlowerBy,
		text: fmt.Sprintf("%s: %s, less than predictions can tell apart; --set %s=%s", a.label(d), signed(s.SlowerBy), path, s.Value)}
}
