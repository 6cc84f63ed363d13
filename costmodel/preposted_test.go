package costmodel

import (
	"testing"

	"github.com/planc-dev/planc/ir"
)

// gpipe is a pipeline of chunks, each on a stage, that runs all forward passes first.
func gpipe(micro int, preposted bool, chunks ...ChunkTime) *Pipeline {
	p := &Pipeline{Timetable: &ir.Timetable{Micro: micro}, Chunks: chunks, Preposted: preposted}
	for i := range chunks {
		p.Timetable.Chunks = append(p.Timetable.Chunks, []int{i})
		p.Timetable.Do = append(p.Timetable.Do, warmTurns(micro, micro))
	}
	return p
}

// A message of 6 s is sent at 2 s, but its receive is posted when the receiver's previous pass begins, at 7 s. So it
// arrives at 13 s, 2 s after that pass has ended.
func TestPrepostedReceiveWaitsForThePreviousPass(t *testing.T) {
	for _, preposted := range []bool{false, true} {
		line, err := gpipe(2, preposted, ChunkTime{Forward: 1, SendOutput: 6}, ChunkTime{Forward: 4}).Simulate()
		if err != nil {
			t.Fatal(err)
		}
		want := map[bool]Seconds{false: 11, true: 13}[preposted]
		if f := line.Stages[1]; f[0].Start != 7 || f[1].Start != want {
			t.Errorf("preposted %v: passes start at %v and %v, want 7 and %v", preposted, f[0].Start, f[1].Start, want)
		}
	}
}

// The receiver of gradients takes 5 s for each pass, the sender 1 s. The fourth pass of the sender waits for the buffer
// of the second gradient: until the receiver needs it or, if receives are preposted, no longer than it is transferred.
func TestPrepostedReceiveFreesTheSendBuffer(t *testing.T) {
	for _, preposted := range []bool{false, true} {
		line, err := gpipe(4, preposted, ChunkTime{Backward: 5}, ChunkTime{Backward: 1}).Simulate()
		if err != nil {
			t.Fatal(err)
		}
		want := map[bool]Seconds{false: 2, true: 0}[preposted]
		spans := line.Stages[1]
		if last := spans[len(spans)-1]; last.Wait != want {
			t.Errorf("preposted %v: the last backward pass waits %v, want %v", preposted, last.Wait, want)
		}
	}
}

// A pass first copies its message, which is part of the pipeline's communication. Gradients are ready later by as much.
func TestPassCopiesItsMessage(t *testing.T) {
	c := Chunk{Runs: []Layers{{Count: 2, Forward: Cost{Compute: 1}, Backward: Cost{Compute: 2}}}}
	plain := c.Pass(ir.Backward, true)
	c.CopyInput, c.CopyGrad = 0.25, 0.5
	forward, backward := c.Pass(ir.Forward, true), c.Pass(ir.Backward, true)
	if forward.Messages != 0.25 || forward.Total() != 2.25 || backward.Messages != 0.5 || backward.Total() != 4.5 {
		t.Errorf("passes %+v and %+v", forward, backward)
	}
	for i, d := range backward.done {
		if d.at != plain.done[i].at+0.5 {
			t.Errorf("layer %d has its gradients at %v, without copies at %v", d.layer, d.at, plain.done[i].at)
		}
	}
}
