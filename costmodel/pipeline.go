package costmodel

import "github.com/planc-dev/planc/ir"

// Pipeline is a step's micro-batches on all stages, with times.
type Pipeline struct {
	Timetable *ir.Timetable
	Chunks    []ChunkTime // in the model's order
	// A message is transferred when it has been sent and the receiver's previous pass has begun, which posts the
	// receive; otherwise as soon as it has been sent.
	Preposted bool
}

// ChunkTime is the duration of a chunk's passes over a micro-batch and of its messages' transfers, which overlap
// compute.
type ChunkTime struct {
	Forward, Backward Seconds
	Weights           Seconds // second part of a split backward pass, which Backward does not include
	SendOutput        Seconds // to the next chunk
	SendGradient      Seconds // to the previous chunk
}

// UnitTimes returns chunks whose forward pass takes 1 and whose backward pass takes 2, in two parts if it is split.
// Sends take no time.
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

// Span is the time of a stage's action. During Wait, at the end of the action, the stage waits for a send buffer.
type Span struct {
	ir.Step
	Start, End, Wait Seconds
}

// Timeline is a simulated step, from its first forward pass to the end of its last pass.
type Timeline struct {
	Stages [][]Span // the spans of each stage in order, without the update
	End    Seconds  // end of the last pass
}

// Work returns how long a stage computes.
func (t *Timeline) Work(stage int) Seconds {
	sum := Seconds(0)
	for _, s := range t.Stages[stage] {
		sum += s.End - s.Start - s.Wait
	}
	return sum
}

// Bubble returns how long a stage waits until the last stage has finished its passes, because all updates start
// together.
func (t *Timeline) Bubble(stage int) Seconds { return t.End - t.Work(stage) }

// Waits returns how long a stage waits between its own first and last pass.
func (t *Timeline) Waits(stage int) Seconds {
	spans := t.Stages[stage]
	return spans[len(spans)-1].End - spans[0].Start - t.Work(stage)
}

// BubbleFraction returns the fraction of a stage's time in which it waits.
func (t *Timeline) BubbleFraction(stage int) float64 { return float64(t.Bubble(stage) / t.End) }
