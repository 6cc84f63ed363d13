package main

import (
	"fmt"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
)

// simplerDoc is a simpler plan that the cost model can hardly tell from the chosen one, and what to set to have it.
type simplerDoc struct {
	Set      map[string]any    `json:"set"`
	Plan     map[string]any    `json:"plan"`
	Predict  costmodel.Predict `json:"predict"`
	SlowerBy float64           `json:"slower_by"`

	text string
	plan ir.Plan
}

// simpler is what the search says of simpler plans, nil if there is nothing to say.
func (d *document) simpler(r *search.Result) *simplerDoc {
	s, ok := r.Simpler()
	if !ok {
		return nil
	}
	path, a := "plan."+s.Key, d.alternative(s.Alternative)
	return &simplerDoc{Set: map[string]any{path: scalar(s.Value)}, Plan: a.Plan, Predict: a.Predict, SlowerBy: s.SlowerBy, plan: s.Plan,
		text: fmt.Sprintf("%s: %s, less than predictions can tell apart; --set %s=%s", a.label(d), signed(s.SlowerBy), path, s.Value)}
}

// nextBest is the fastest alternative that fits, if there is one.
func (d *document) nextBest() (a alternativeDoc, ok bool) {
	for _, a := range d.others() {
		if a.SlowerBy != nil {
			return a, true
		}
	}
	return a, false
}

// simplerNext tells whether the next best plan is the simpler one.
func (d *document) simplerNext() bool {
	a, ok := d.nextBest()
	return ok && d.Simpler != nil && a.plan == d.Simpler.plan
}
