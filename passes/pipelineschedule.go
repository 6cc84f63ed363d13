package passes

import (
	"fmt"

	"github.com/planc-dev/planc/ir"
)

// schedule orders each stage's work, and counts the micro-batches of each chunk between forward and backward (or its
// second part), each of which needs an activation buffer.
func schedule(p *ir.Program) error {
	if !HasSchedule(p.Plan.Schedule) {
		return fmt.Errorf("unknown schedule %q", p.Plan.Schedule)
	}
	for i := range p.Stages {
		s := &p.Stages[i]
		s.Schedule = Schedule(p.Plan, i)
		for c, n := range ir.InFlight(orders[p.Plan.Schedule](p.Plan, i), len(s.Chunks)) {
			s.Chunks[c].Buffers = n
		}
	}
	return nil
}

// Schedule returns the actions of a stage in a step. The plan's schedule must exist.
func Schedule(plan ir.Plan, stage int) []ir.Action { return ir.Actions(Turns(plan, stage)) }

// Turns is Schedule as repeated turns, whose number does not depend on the micro-batches.
func Turns(plan ir.Plan, stage int) []ir.Turn {
	return append(orders[plan.Schedule](plan, stage), ir.Turn{Actions: []ir.Action{{Kind: ir.Finish}}, Times: 1})
}

// HasSchedule reports whether there is a schedule of that name.
func HasSchedule(name string) bool { return orders[name] != nil }

// InFlight returns the number of buffers that each chunk of a stage needs under the plan's schedule, see [ir.InFlight].
func InFlight(plan ir.Plan, stage int) []int {
	if warmUp := warmUps[plan.Schedule]; warmUp != nil {
		out := make([]int, plan.VPP)
		out[0] = min(plan.MicroBatches, warmUp(plan, stage)+1)
		return out
	}
	return ir.InFlight(orders[plan.Schedule](plan, stage), plan.VPP)
}

// orders are the schedules: the turns of a stage, without the update.
var orders = map[string]func(plan ir.Plan, stage int) []ir.Turn{
	"none":        oneForwardOneBackward,
	"gpipe":       oneForwardOneBackward,
	"1f1b":        oneForwardOneBackward,
	"interleaved": interleaved,
	"zb-h1":       zeroBubbleH1,
	"zb-v":        zeroBubbleV,
}

// warmUps are the numbers of forward passes before the first backward pass, for schedules with one chunk per stage that
// alternate forward and backward: 0 for accumulation without a pipeline (none), all micro-batches for GPipe (Huang et
// al. 2019), and pp-1-stage for PipeDream-flush, 1F1B (Narayanan et al. 2021).
var warmUps = map[string]func(plan ir.Plan, stage int) int{
	"none":  func(ir.Plan, int) int { return 0 },
	"gpipe": func(plan ir.Plan, _ int) int { return plan.MicroBatches },
	"1f1b":  func(plan ir.Plan, stage int) int { return plan.PP - 1 - stage },
}

// oneForwardOneBackward runs a stage's warm-up, then alternates one forward and one backward, then runs the remaining
// backwards.
func oneForwardOneBackward(plan ir.Plan, stage int) []ir.Turn {
	return weave(plan.MicroBatches, warmUps[plan.Schedule](plan, stage), 1, func(int) int {
		return 0
	}, func(int) int {
		return 0
	})
}

// interleaved goes around the chunks in groups of pp micro-batches (Narayanan et al. 2021, section 2.2): a stage runs
// pp micro-batches of its first chunk, then of its second, and so on.
func interleaved(plan ir.Plan, stage int) []ir.Turn {
	round := plan.PP * plan.VPP
	forward := func(i int) int { return i % round / plan.PP }
	backward := func(i int) int { return plan.VPP - 1 - forward(i) }
	return weave(plan.MicroBatches*plan.VPP, 2*(plan.PP-1-stage)+(plan.VPP-1)*plan.PP, round, forward, backward)
}

// weave runs warmUp of n forwards, then alternates one forward and one backward, then runs the remaining backwards. f
// and b return their chunks, which repeat after round of them.
func weave(n, warmUp, round int, f, b func(int) int) (out []ir.Turn) {
	warmUp = min(warmUp, n)
	forward := func(to []ir.Action, i int) []ir.Action { return append(to, ir.Action{Kind: ir.Forward, Chunk: f(i)}) }
	backward := func(to []ir.Action, i int) []ir.Action { return append(to, ir.Action{Kind: ir.Backward, Chunk: b(i)}) }
	out = inTurns(out, 0, warmUp, round, forward)
	out = inTurns(out, warmUp, n, round, func(to []ir.Action, i int) []ir.Action {
		return backward(forward(to, i), i-warmUp)
	})
	return inTurns(out, n-warmUp, n, round, backward)
}

// inTurns adds the actions with numbers from from to to, which repeat after round of them. do appends the actions of
// one number.
func inTurns(out []ir.Turn, from, to, round int, do func([]ir.Action, int) []ir.Action) []ir.Turn {
	some := func(from, to int) []ir.Action {
		actions := make([]ir.Action, 0, 2*(to-from))
		for i := from; i < to; i++ {
			actions = do(actions, i)
		}
		return actions
	}
	if times := (to - from) / round; times > 0 {
		out = append(out, ir.Turn{Actions: some(from, from+round), Times: times})
		from += times * round
	}
	if from < to {
		out = append(out, ir.Turn{Actions: some(from, to), Times: 1})
	}
	return out
}
