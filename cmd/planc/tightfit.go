package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
)

// sureFit is the probability to fit below which a plan is called tight: two deviations.
const sureFit = 0.975

// roomDoc is there where a plan may not fit after all: the best plan with more room.
type roomDoc struct {
	FitProbability float64 `json:"fit_probability"` // of the chosen plan
	// by which predictions of such a plan's memory may be off
	MarginBytes int64   `json:"margin_bytes"`
	Headroom    float64 `json:"headroom"` // objective.headroom that keeps the margin free
	// fits with a probability of 0.975 and more; null if none does
	Plan     map[string]any     `json:"plan"`
	Predict  *costmodel.Predict `json:"predict"`
	SlowerBy *float64           `json:"slower_by"`

	plan ir.Plan
}

// room looks for a plan with more room where the chosen one's prediction and its margin do not both fit into a device.
func (a *app) room(j *loaded, d *document, found *decision) error {
	p := found.Best.Predict
	if !d.Fits || p.FitProbability >= sureFit {
		return nil
	}
	device := j.Hardware.GPU.Memory()
	most := surelyFits(costmodel.EngineOf(j.Train.Engine), p.MemoryBytes, device)
	headroom := math.Ceil(1000*(1-float64(most)/float64(device))) / 1000
	d.Room = &roomDoc{FitProbability: p.FitProbability, MarginBytes: int64(device) - most, Headroom: headroom}
	var best search.Priced
	ok := false
	err := a.runSearches(func() error {
		best, ok = search.Roomier(j.Problem(), headroom)
		return nil
	})
	if err != nil || !ok {
		return err
	}
	slower := costmodel.SixDigits(float64(best.Predict.StepS/p.StepS) - 1)
	d.Room.Plan, d.Room.Predict, d.Room.SlowerBy, d.Room.plan = best.Plan.JSON(), &best.Predict, &slower, best.Plan
	return nil
}

// surelyFits is the most memory that fits into a device with that probability, its parts in the proportions of m: the
// uncertainty is the engine's, or the room that is asked for would be less than what the probability is short of.
func surelyFits(e *costmodel.Engine, m costmodel.Memory, device costmodel.Bytes) int64 {
	low, high := int64(0), int64(device)
	for high-low > 1<<20 {
		middle := (low + high) / 2
		m.Total = middle
		if e.FitProbability(m, device) >= sureFit {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// roomSentence says how sure the fit is, and what the next plan with room costs.
func (d *document) roomSentence() string {
	r := d.Room
	s := fmt.Sprintf("p %.2f to fit into the %s of a %s: memory may be off by %s.", r.FitProbability,
		size(d.head.memory), d.head.device, size(r.MarginBytes))
	if !d.head.isMemoryMeasured {
		s = strings.TrimSuffix(s, ".") + ", as assumed."
	}
	if r.Plan == nil {
		return s + fmt.Sprintf(" No plan fits with objective.headroom %v.", r.Headroom)
	}
	return s + fmt.Sprintf(" With --set objective.headroom=%v the best is %s: %s, %s.", r.Headroom, differences(r.plan,
		d.head.chosen), signed(*r.SlowerBy), size(r.Predict.MemoryBytes.Total))
}
