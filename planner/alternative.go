package planner

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner/quantity"
)

// Alternative is the best plan with another value of one choice, and everything else free.
type Alternative struct {
	Plan      Plan              `json:"plan"`
	Predict   costmodel.Predict `json:"predict"`
	SlowerBy  *float64          `json:"slower_by"` // fraction of the chosen plan's step; null if it does not fit
	NoFit     *search.NoFit     `json:"no_fit"`    // null if it fits
	IsRiskier bool              `json:"-"`         // it is faster, and not recommended because of its risk
}

// alternative returns the search's alternative as a document's.
func (d *Document) alternative(a search.Alternative) Alternative {
	out := Alternative{Plan: Plan{a.Plan}, Predict: a.Predict, NoFit: a.NoFit}
	if a.NoFit == nil {
		out.SlowerBy = &a.SlowerBy
		out.IsRiskier = a.Riskier(d.chosen())
	}
	return out
}

// chosen returns the document's plan.
func (d *Document) chosen() search.Priced {
	return search.Priced{Plan: d.Plan.Plan, Predict: d.Predict}
}

// Label returns in words how an alternative differs from the chosen plan.
func (d *Document) Label(a Alternative) string {
	return cmp.Or(Differences(a.Plan.Plan, d.Plan.Plan), "the same plan")
}

// SameTime is the reason of an alternative that is slower in no part of the step.
const SameTime = "the same time"

// Reason returns what makes an alternative worse: the memory that it lacks, or the part of the step that grows most.
func (d *Document) Reason(a Alternative) string {
	if a.NoFit != nil {
		return overText(a.NoFit, a.Plan.PP > 1)
	}
	if a.IsRiskier {
		return d.riskText(&a.Predict)
	}
	s := grownParts(a.Predict.Time, d.Predict.Time)
	if a.Plan.PP > 1 && a.Plan.Zero == 3 && d.Plan.Zero < 3 && a.Predict.StepS > d.Predict.StepS {
		s = fmt.Sprintf("gathers for each of %d micro-batches: ", a.Plan.MicroBatches) + s
	}
	return s
}

// mainReason returns the reason without what the alternative gains in turn.
func (d *Document) mainReason(a Alternative) string {
	s := d.Reason(a)
	if a.NoFit == nil {
		s, _, _ = strings.Cut(s, ", ")
	}
	return s
}

// overText returns by how much a plan does not fit: "14.0 GiB over, activations, stage 3".
func overText(n *search.NoFit, hasStages bool) string {
	s := quantity.Bytes(n.OverBytes) + " over, " + n.Part
	if hasStages {
		s += fmt.Sprintf(", stage %d", n.Stage)
	}
	return s
}

// riskText returns why a plan that is faster than the chosen one is not recommended.
func (d *Document) riskText(p *costmodel.Predict) string {
	if search.Pressure(p.MemoryBytes) > search.Pressure(d.Predict.MemoryBytes) {
		return "less memory free: " + usedMemory(p.MemoryBytes)
	}
	return "less simple"
}

// usedMemory returns the memory of a plan and the memory that it may use: "71.0 of 71.2 GiB".
func usedMemory(m costmodel.Memory) string {
	unit := func(size string) string { return size[strings.LastIndexByte(size, ' '):] }
	total, capacity := quantity.Bytes(m.Total), quantity.Bytes(m.Capacity)
	if unit(total) == unit(capacity) {
		total = strings.TrimSuffix(total, unit(total))
	}
	return total + " of " + capacity
}

// grownParts names the parts of the step that make the difference: the one that grows most, and the other one that
// changes most, if that change is more than a tenth of the first.
func grownParts(t, from costmodel.Time) string {
	var first, second string
	var largest, next float64
	change := func(name string) float64 { return float64(t.Part(name) - from.Part(name)) }
	for _, name := range costmodel.TimeParts {
		if by := change(name); by > largest {
			first, largest = name, by
		}
	}
	if first == "" {
		return SameTime
	}
	for _, name := range costmodel.TimeParts {
		if by := change(name); name != first && math.Abs(by) > math.Abs(next) {
			second, next = name, by
		}
	}
	s := first + " +" + quantity.Seconds(largest)
	if math.Abs(next) > largest/10 {
		sign := ""
		if next > 0 {
			sign = "+"
		}
		s += ", " + second + " " + sign + quantity.Seconds(next)
	}
	return s
}
