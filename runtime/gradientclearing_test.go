package runtime

import (
	"bytes"
	"testing"

	"github.com/planc-dev/planc/runtime/rank"
)

// overwriting is bigram whose backward pass writes the gradient of b in the first micro-batch, as its segment then
// says.
func overwriting() *rank.Program {
	p := bigram[float32](2, 1)
	s := &p.Segments[0]
	s.Refs, s.FirstWrites = []Ref{{Segment: 0, Class: 1}, {Segment: 0, Class: 0}}, []FirstWrite{{Ref: 1, Elems: vocab}}
	add := s.Backward
	s.Backward = func(r *rank.Rank, b *rank.Block) {
		if b.Micro == 0 {
			clear(View[float32](r, b.Grads[1], vocab))
		}
		add(r, b)
	}
	return p
}

// A gradient that is written instead of cleared comes out the same; one that is neither is NaN with poison.
func TestWrittenGradients(t *testing.T) {
	clean, err := train(t, bigram[float32](2, 1), t.TempDir())
	must(t, err)
	written, err := train(t, overwriting(), t.TempDir(), Poison())
	must(t, err)
	if !bytes.Equal(weights(t, clean.Checkpoint), weights(t, written.Checkpoint)) {
		t.Error("other parameters where a gradient is written first")
	}
	p := bigram[float32](2, 1)
	p.Segments[0].Refs, p.Segments[0].FirstWrites = []Ref{{Segment: 0, Class: 1}, {Segment: 0, Class: 0}},
		[]FirstWrite{{Ref: 1, Elems: vocab}}
	res, err := train(t, p, t.TempDir(), Set("train.steps", 2), Poison())
	if err == nil && res.Skipped == 0 {
		t.Errorf("a gradient that nobody wrote or cleared: %d steps skipped, want 2", res.Skipped)
	}
}
