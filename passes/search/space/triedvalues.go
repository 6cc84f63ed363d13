package space

import (
	"slices"
	"strconv"

	"github.com/planc-dev/planc/ir"
)

// MinOwnPositions is the least number of positions per rank for which cp is tried without a pin. With shorter parts,
// cp gains nothing that dp, tp and recomputation do not give more cheaply, and there are many such plans.
const MinOwnPositions = 8192

// ContextKinds returns the values of cp_kind that the engine supports for a plan with cp above 1.
func (p *Problem) ContextKinds(plan ir.Plan) (out []string) {
	for _, plan.CPKind = range ir.ContextKinds[1:] {
		if p.Runs(&plan, "cp_kind") {
			out = append(out, plan.CPKind)
		}
	}
	return out
}

// MaxSplitExperts is the largest number of experts per block for which etp is tried without a pin. Models with more
// experts have narrow ones, and their parts are too narrow for efficient GEMMs, while ep has enough experts for many
// ranks.
const MaxSplitExperts = 16

// MoESlacks returns the pinned capacity factors, or the default.
func (p *Problem) MoESlacks(usual float64) []float64 {
	texts, pinned := p.Pins["moe_slack"]
	if !pinned {
		return []float64{usual}
	}
	var out []float64
	for _, t := range texts {
		if v, err := strconv.ParseFloat(t, 64); err == nil {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Obeys reports whether a plan breaks none of the degree rules that concern a key.
func Obeys(plan *ir.Plan, key string, set *RuleContext) bool {
	for _, rules := range [][]Rule{degreeRules, contextRules, expertRules, set.engine} {
		for i := range rules {
			if r := &rules[i]; r.Key == key && !r.OK(plan, set) {
				return false
			}
		}
	}
	return true
}

// Schedules are all schedules of the search, in its order.
var Schedules = []string{"none", "1f1b", "gpipe", "interleaved", "zb-h1", "zb-v"}

// Schedules returns the schedules that are possible with a plan's chunks, or those that pins request.
func (p *Problem) Schedules(plan *ir.Plan) []string {
	if vs, pinned := p.Pins["schedule"]; pinned {
		return vs
	}
	var out []string
	for _, name := range Schedules {
		plan.Schedule = name
		// only on request: the gradients of experts are computed in their rounds and cannot be delayed
		if plan.Splits() && HasExperts(plan) && !p.PricedEngine().SplitsExperts {
			continue
		}
		if stageRules[0].OK(plan, nil) && ChunksMatchSchedule(plan) && (plan.PP == 1 || knownSchedule(name)) &&
			p.Runs(plan, "schedule") {
			out = append(out, name)
		}
	}
	return out
}

// MicroBatches returns the micro-batch sizes for which a replica's share is a pinned number of micro-batches. If none
// is, it returns all that divide the share, so that there is a plan to report.
func (p *Problem) MicroBatches(share int) []int {
	all := Divisors(share)
	var out []int
	for _, n := range all {
		if p.Pins.Allows("micro_batches", strconv.Itoa(share/n)) {
			out = append(out, n)
		}
	}
	if len(out) == 0 {
		return all
	}
	return out
}

// HasExperts reports whether a plan is of a model with experts.
func HasExperts(p *ir.Plan) bool { return p.MoESlack > 0 }

// chunksMatchSchedule reports whether a plan's schedule allows its number of chunks per stage.
func ChunksMatchSchedule(p *ir.Plan) bool { return stageRules[2].OK(p, nil) }
