package main

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
)

// otherDoc is the plan that would be recommended if the job preferred otherwise, and what to set to have it.
type otherDoc struct {
	Set      map[string]any    `json:"set"`
	Plan     map[string]any    `json:"plan"`
	Predict  costmodel.Predict `json:"predict"`
	SlowerBy float64           `json:"slower_by"`

	text string
	plan ir.Plan
}

// prefers fills in the fastest plan where it is not the recommended one, or, if the job prefers the fastest, the plan
// of less risk.
func (d *document) prefers(r *search.Result) {
	a, prefer, ok := r.Other()
	if !ok {
		return
	}
	alt := d.alternative(a)
	o := &otherDoc{Set: map[string]any{"objective.prefer": prefer}, Plan: alt.Plan, Predict: a.Predict,
		SlowerBy: a.SlowerBy, plan: a.Plan}
	o.text = fmt.Sprintf("%s: %s, %s; --set objective.prefer=%s", alt.label(d), signed(a.SlowerBy),
		used(a.Predict.MemoryBytes), prefer)
	if prefer == search.PreferFastest {
		d.Fastest = o
	} else {
		d.Simpler = o
	}
}

// used is the memory of a plan, and what it may use: "71.0 of 71.2 GiB".
func used(m costmodel.Memory) string {
	total, capacity := size(m.Total), size(m.Capacity)
	if unit(total) == unit(capacity) {
		total = strings.TrimSuffix(total, unit(total))
	}
	return total + " of " + capacity
}

// riskText is why a plan that is faster is not recommended.
func (d *document) riskText(p *costmodel.Predict) string {
	if search.Pressure(p.MemoryBytes) > search.Pressure(d.Predict.MemoryBytes) {
		return "less memory free: " + used(p.MemoryBytes)
	}
	return "less simple"
}

// nextBest is the fastest alternative that fits and has no line of its own, if there is one.
func (d *document) nextBest() (a alternativeDoc, ok bool) {
	for _, a := range d.others() {
		if a.SlowerBy != nil {
			return a, true
		}
	}
	return a, false
}
