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
	out := make([]int, plan.VPP)
	if warmUp := warmUps[plan.Schedule]; warmUp != nil {
		out[0] = min(plan.MicroBatches, warmUp(plan, stage)+1)
		return out
	}
	actions := orders[plan.Schedule](plan, stage)
	for c := range out {
		out[c] = ir.InFlight(actions, c)
	}
	return out
}

// orders are the schedules: what a stage does, without the update.
var orders = map[string]func(plan ir.Plan, stage int) []ir.Action{
	"none":        oneForwardOneBackward,
	"gpipe":       oneForwardOneBackward,
	"1f1b":        oneForwardOneBackward,
	"interleaved": interleaved,
	"zb-h1":       zeroBubbleH1,
	"zb-v":        zeroBubbleV,
}

// warmUps are the forward passes before the first backward one, of schedules of one chunk a stage that do a forward and a
// backward in turn: none is accumulation without a pipeline, all micro-batches GPipe (Huang et al. 2019), pp-1-stage
// PipeDream's flush (Narayanan et al. 2021).
var warmUps = map[string]func(plan ir.Plan, stage int) int{
	"none":  func(ir.Plan, int) int { return 0 },
	"gpipe": func(plan ir.Plan, _ int) int { return plan.MicroBatches },
	"1f1b":  func(plan ir.Plan, stage int) int { return plan.PP - 1 - stage },
}

// oneForwardOneBackward does a stage's warm-up, then a forward and a backward in turn, then the backwards that are left.
func oneForwardOneBackward(plan ir.Plan, stage int) []ir.Action {
	m := plan.MicroBatches
	f, b := make([]int, m), make([]int, m)
	return weave(f, b, warmUps[plan.Schedule](plan, stage))
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
	out := make([]ir.Action, 0, 2*len(f)+1) // room for what ends it
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
