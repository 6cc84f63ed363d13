package passes

import (
	"fmt"

	"github.com/planc-dev/planc/ir"
)

// schedule orders each stage's work and counts the micro-batches of each chunk that are between forward and backward,
// or its second part: those need an activation buffer each.
func schedule(p *ir.Program) error {
	if !HasSchedule(p.Plan.Schedule) {
		return fmt.Errorf("no schedule %q", p.Plan.Schedule)
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

// Schedule is what a stage does in a step of a plan whose schedule there is.
func Schedule(plan ir.Plan, stage int) []ir.Action { return ir.Actions(Turns(plan, stage)) }

// Turns is Schedule as what is done again and again: so many of them whatever the micro-batches are.
func Turns(plan ir.Plan, stage int) []ir.Turn {
	return append(orders[plan.Schedule](plan, stage), ir.Turn{Actions: []ir.Action{{Kind: ir.Finish}}, Times: 1})
}

// HasSchedule tells whether there is a schedule of that name.
func HasSchedule(name string) bool { return orders[name] != nil }

// InFlight is how many buffers each chunk of a stage needs under the plan's schedule, see [ir.InFlight].
func InFlight(plan ir.Plan, stage int) []int {
	if warmUp := warmUps[plan.Schedule]; warmUp != nil {
		out := make([]int, plan.VPP)
		out[0] = min(plan.MicroBatches, warmUp(plan, stage)+1)
		return out
	}
	return ir.InFlight(orders[plan.Schedule](plan, stage), plan.VPP)
}

// orders are the schedules: what a stage does, without the update.
var orders = map[string]func(plan ir.Plan, stage int) []ir.Turn{
	"none":        oneForwardOneBackward,
	"gpipe":       oneForwardOneBackward,
	"1f1b":        oneForwardOneBackward,
	"interleaved": interleaved,
	"zb-h1":       zeroBubbleH1,
	"zb-v":        zeroBubbleV,
}

// warmUps are the forward passes before the first backward one, of schedules of one chunk a stage that do a forward and
// a backward in turn: none is accumulation without a pipeline, all micro-batches GPipe (Huang et al. 2019), pp-1-stage
// PipeDream's flush (Narayanan et al. 2021).
var warmUps = map[string]func(plan ir.Plan, stage int) int{
	"none":  func(ir.Plan, int) int { return 0 },
	"gpipe": func(plan ir.Plan, _ int) int { return plan.MicroBatches },
	"1f1b":  func(plan ir.Plan, stage int) int { return plan.PP - 1 - stage },
}

// oneForwardOneBackward does a stage's warm-up, then a forward and a backward in turn, then the backwards that are
// left.
func oneForwardOneBackward(plan ir.Plan, stage int) []ir.Turn {
	return weave(plan.MicroBatches, warmUps[plan.Schedule](plan, stage), 1, func(int) int {
		return 0
	}, func(int) int {
		return 0
	})
}

// interleaved goes round the chunks in groups of pp micro-batches (Narayanan et al. 2021, section 2.2): a stage runs
// pp micro-batches of its first chunk, then of its second, and so on.
func interleaved(plan ir.Plan, stage int) []ir.Turn {
	round := plan.PP * plan.VPP
	forward := func(i int) int { return i % round / plan.PP }
	backward := func(i int) int { return plan.VPP - 1 - forward(i) }
	return weave(plan.MicroBatches*plan.VPP, 2*(plan.PP-1-stage)+(plan.VPP-1)*plan.PP, round, forward, backward)
}

// weave does warmUp of n forwards, then one forward and one backward in turn, then the rest of the backwards. f and b
// are their chunks, which are the same again after round of them.
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

// inTurns adds what is done from one number to another, the same after round of them. do adds what is done at a number.
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
