package passes

import (
	"fmt"

	"github.com/planc-dev/planc/ir"
)

// schedule orders each stage's work and counts the micro-batches of each chunk that are between forward and backward, or
// its second part: those need an activation buffer each.
func schedule(p *ir.Program) error {
	if !HasSchedule(p.Plan.Schedule) {
		return fmt.Errorf("no schedule %q", p.Plan.Schedule)
	}
	for i := range p.Stages {
		s := &p.Stages[i]
		s.Schedule = Schedule(p.Plan, i)
		for c := range s.Chunks {
			s.Chunks[c].Buffers = ir.InFlight(s.Schedule, c)
		}
	}
	return nil
}

// Schedule is what a stage does in a step of a plan whose schedule there is.
func Schedule(plan ir.Plan, stage int) []ir.Action {
	return append(orders[plan.Schedule](plan, stage), ir.Action{Kind: ir.Finish})
}

// HasSchedule tells whether there is a schedule of that name.
func HasSchedule(name string) bool { return orders[name] != nil }

// InFlight is how many buffers each chunk of a stage needs under the plan's schedule, see [ir.InFlight].
func InFlight(plan ir.Plan, stage int) []int {
	actions := orders[plan.Schedule](plan, stage)
	out := make([]int, plan.VPP)
	for c := range out {
		out[c] = ir.InFlight(actions, c)
	}
	return out
}

// orders are the schedules: what a stage does, without the update.
var orders = map[string]func(plan ir.Plan, stage int) []ir.Action{
	"none": func(plan ir.Plan, _ int) []ir.Action { return oneForwardOneBackward(plan.MicroBatches, 0) },
	"gpipe": func(plan ir.Plan, _ int) []ir.Action {
		return oneForwardOneBackward(plan.MicroBatches, plan.MicroBatches)
	},
	"1f1b": func(plan ir.Plan, stage int) []ir.Action {
		return oneForwardOneBackward(plan.MicroBatches, plan.PP-1-stage)
	},
	"interleaved": interleaved,
	"zb-h1":       zeroBubbleH1,
	"zb-v":        zeroBubbleV,
}

// oneForwardOneBackward does warmUp forward passes, then a forward and a backward in turn, then the backwards that are
// left. Warm-up 0 is accumulation without a pipeline, all micro-batches GPipe (Huang et al. 2019), pp-1-stage
// PipeDream's flush (Narayanan et al. 2021).
func oneForwardOneBackward(m, warmUp int) []ir.Action {
	f, b := make([]int, m), make([]int, m)
	return weave(f, b, warmUp)
}

// interleaved goes round the chunks in groups of pp micro-batches (Narayanan et al. 2021, section 2.2): a stage runs
// pp micro-batches of its first chunk, then of its second, and so on.
func interleaved(plan ir.Plan, stage int) []ir.Action {
	n := plan.MicroBatches * plan.VPP
	f, b := make([]int, n), make([]int, n)
	for i := range n {
		chunk := i % (plan.PP * plan.VPP) / plan.PP
		f[i], b[i] = chunk, plan.VPP-1-chunk
	}
	return weave(f, b, 2*(plan.PP-1-stage)+(plan.VPP-1)*plan.PP)
}

// weave does warmUp of the forwards, then one forward and one backward in turn, then the rest of the backwards. f and b
// are the chunks in order.
func weave(f, b []int, warmUp int) []ir.Action {
	warmUp = min(warmUp, len(f))
	var out []ir.Action
	for _, c := range f[:warmUp] {
		out = append(out, ir.Action{Kind: ir.Forward, Chunk: c})
	}
	for i, c := range f[warmUp:] {
		out = append(out, ir.Action{Kind: ir.Forward, Chunk: c}, ir.Action{Kind: ir.Backward, Chunk: b[i]})
	}
	for _, c := range b[len(f)-warmUp:] {
		out = append(out, ir.Action{Kind: ir.Backward, Chunk: c})
	}
	return out
}
