package passes

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// zeroBubbleH1 is 1F1B with a split backward pass (Qi et al. 2023, "Zero Bubble Pipeline Parallelism", schedule ZB-H1).
// Stage i delays the gradients of parameters by i micro-batches, and computes them while it would otherwise wait at the
// end of the step. No stage has more micro-batches in flight than the first stage of 1F1B, pp. With equal times of F, B
// and W a third of 1F1B's bubble remains.
func zeroBubbleH1(plan ir.Plan, stage int) []ir.Turn {
	t := &turnsOf{micro: plan.MicroBatches}
	t.repeat(plan.PP-1-stage, "F0")
	t.repeat(min(stage, plan.MicroBatches), "F0", "B0")
	t.repeat(plan.MicroBatches-stage, "F0", "B0", "W0")
	t.repeat(plan.MicroBatches-t.done["W0"], "W0")
	return t.out
}

// zeroBubbleV is the schedule ZB-V (Qi et al. 2024, "Pipeline Parallelism with Controllable Memory"). Each stage has a
// chunk on the way down the stages, 0, and one on the way back, 1, so that a micro-batch's forward pass starts and ends
// on the same stage. With equal times of F, B and W no stage waits once it has started, and no stage has more than 2·pp
// micro-batches of its half-sized chunks in flight, as much as the first stage of 1F1B. The two chunks have separate
// buffers, which adds at most one.
//
// It is defined for at least 2·pp-1 micro-batches; those that a step lacks are left out.
func zeroBubbleV(plan ir.Plan, stage int) []ir.Turn {
	p, n := plan.PP, max(plan.MicroBatches, 2*plan.PP-1)
	t := &turnsOf{micro: plan.MicroBatches}
	t.repeat(2*(p-stage)-1, "F0")
	t.repeat(stage, "F1", "F0")
	t.repeat(p-stage, "F1", "B1", "W1")
	t.repeat(n-t.asked["F0"], "F0", "B0", "W0", "F1", "B1", "W1")
	t.repeat(n-t.asked["F1"], "B0", "W0", "F1", "B1", "W1")
	t.repeat(stage, "B0", "B1")
	t.repeat(p-stage, "B0", "W0")
	t.repeat(n-t.asked["W1"], "W1")
	t.repeat(n-t.asked["W0"], "W0")
	return t.out
}

// turnsOf writes a schedule with at most one action of each kind per micro-batch.
type turnsOf struct {
	micro       int
	asked, done map[string]int
	out         []ir.Turn
}

// repeat adds actions, in the notation of schedules, a number of times: first as a turn while all of them remain, then
// those that remain.
func (t *turnsOf) repeat(times int, words ...string) {
	if t.asked == nil {
		t.asked, t.done = map[string]int{}, map[string]int{}
	}
	times = max(0, times)
	whole := times
	for _, w := range words {
		t.asked[w] += times
		whole = min(whole, t.micro-t.done[w])
	}
	t.turn(whole, words)
	for range times - whole {
		t.turn(1, slices.DeleteFunc(slices.Clone(words), func(w string) bool { return t.done[w] == t.micro }))
	}
}

// turn adds a turn of actions, all of which remain.
func (t *turnsOf) turn(times int, words []string) {
	if times == 0 || len(words) == 0 {
		return
	}
	turn := ir.Turn{Times: times}
	for _, w := range words {
		t.done[w] += times
		turn.Actions = append(turn.Actions, ir.Action{Kind: ir.ActionKind(w[0]), Chunk: int(w[1] - '0')})
	}
	t.out = append(t.out, turn)
}
