package planner

import (
	"cmp"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/passes/search/price"
)

// Lever is a change of the hardware or the job, and by which fraction more tokens per second would be trained on.
type Lever struct {
	Name    string         `json:"name"`
	Set     map[string]any `json:"set"`
	Speedup float64        `json:"speedup"`
	Plan    *Plan          `json:"plan"` // the best plan with the change; null if none fits

	Best    *search.Priced `json:"-"` // that plan with its prediction; nil if none fits
	Experts price.Experts  `json:"-"` // how it places experts
}

// Binding is the resource that keeps the plan from being faster.
type Binding struct {
	Resource   string `json:"resource"`    // MemoryBinding, or the part of the step that takes most of the time
	SlackBytes int64  `json:"slack_bytes"` // free memory of a device; negative if the plan does not fit
}

// MemoryBinding is the binding resource if more memory would make the plan faster.
const MemoryBinding = "memory"

// LeastGain is the fraction below which a lever counts as gaining nothing.
const LeastGain = 0.0005

// bindingResource returns what keeps the plan from being faster. That is memory if the plan does not fit, or if more
// memory gains more than the levers on the largest part of the step; otherwise it is that part.
func (d *Document) bindingResource() string {
	t := d.Predict.Time
	largest := slices.MaxFunc(costmodel.TimeParts, func(a, b string) int { return cmp.Compare(t.Part(a), t.Part(b)) })
	memory, tried := d.Lever(MemoryBinding)
	best, hasBest := d.StrongestLever(largest)
	switch {
	case !d.Fits, !tried && !hasBest && d.FasterUnfit() >= 0:
		return MemoryBinding
	case tried && memory.Speedup >= LeastGain && (!hasBest || memory.Speedup >= best.Speedup):
		return MemoryBinding
	}
	return largest
}

// Lever returns a lever by its name.
func (d *Document) Lever(name string) (Lever, bool) {
	for _, l := range d.Levers {
		if l.Name == name {
			return l, true
		}
	}
	return Lever{}, false
}

// leversOfPart are the levers that act on a part of a step.
var leversOfPart = map[string][]string{"compute": {"flops", "memory_bandwidth"}, "recompute": {MemoryBinding},
	"tp_comm": {"link", "network"},
	"dp_comm": {"network", "link"}, "pp_comm": {"network", "link"}, "pp_bubble": {"batch"},
	"expert_again": {"flops", "memory_bandwidth"},
	"expert_empty": {"flops", "memory_bandwidth"}, "optimizer": {"memory_bandwidth"}}

// StrongestLever returns the lever that gains most of those that act on a part of the step; ok is false if none gains.
func (d *Document) StrongestLever(part string) (best Lever, ok bool) {
	for _, name := range leversOfPart[part] {
		if l, tried := d.Lever(name); tried && l.Speedup >= LeastGain && (!ok || l.Speedup > best.Speedup) {
			best, ok = l, true
		}
	}
	return best, ok
}

// FasterUnfit returns the index of the alternative that lacks the least memory of those that would be faster than the
// chosen plan; -1 if there is none.
func (d *Document) FasterUnfit() int {
	return slices.IndexFunc(d.Alternatives, func(a Alternative) bool {
		return a.NoFit != nil && a.Predict.StepS < d.Predict.StepS
	})
}
