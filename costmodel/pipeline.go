package costmodel

import "github.com/planc-dev/planc/ir"

// Pipeline is a step's micro-batches on all stages, in times.
type Pipeline struct {
	Timetable *ir.Timetable
	Chunks    []ChunkTime // in the model's order
}

// ChunkTime is how long a chunk's passes over a micro-batch take, and until what it hands on is there. Sends run beside
// compute.
type ChunkTime struct {
	Forward, Backward Seconds
	Weights           Seconds // of a split backward: what Backward does not hold
	SendOutput        Seconds // to the chunk after it
	SendGradient      Seconds // to the chunk before it
}

// UnitTimes are chunks whose forward takes 1 and whose backward takes 2, in two parts where it is split; sends take no
// time.
func UnitTimes(plan ir.Plan) []ChunkTime {
	t := ChunkTime{Forward: 1, Backward: 2}
	if plan.Splits() {
		t.Backward, t.Weights = 1, 1
	}
	out := make([]ChunkTime, plan.PP*plan.VPP)
	for i := range out {
		out[i] = t
	}
	return out
}

// Span is when a stage does an action; for Wait of that, at its end, it waits for a buffer to send from.
type Span struct {
	ir.Step
	Start, End, Wait Seconds
}

// Timeline is a simulated step, from its first forward pass to its last pass.
type Timeline struct {
	Stages [][]Span // of each stage in order, without the update
	End    Seconds  // of the last
}

// Work is how long a stage computes.
func (t *Timeline) Work(stage int) Seconds {
	sum := Seconds(0)
	for _, s := range t.Stages[stage] {
		sum += s.End - s.Start - s.Wait
	}
	return sum
}

// Bubble is how long a stage waits until the last one has done its passes, since the updates of all begin together.
func (t *Timeline) Bubble(stage int) Seconds { return t.End - t.Work(stage) }

// Waits is how long a stage waits between its own first and last pass.
func (t *Timeline) Waits(stage int) Seconds {
	spans := t.Stages[stage]
	return spans[len(spans)-1].End - spans[0].Start - t.Work(stage)
}

// BubbleFraction is the part of a stage's time that it waits.
func (t *Timeline) BubbleFraction(stage int) float64 { return float64(t.Bubble(stage) / t.End) }
