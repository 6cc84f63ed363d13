package runtime

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/planc-dev/planc/runtime/tensors"
)

// overwriting is bigram whose backward pass writes the gradient of b in the first micro-batch, as its segment then
// says.
func overwriting() *Program {
	p := bigram[float32](2, 1)
	s := &p.Segments[0]
	s.Refs, s.FirstWrites = []Ref{{Segment: 0, Class: 1}, {Segment: 0, Class: 0}}, []FirstWrite{{Ref: 1, Elems: vocab}}
	add := s.Backward
	s.Backward = func(r *Rank, b *Block) {
		if b.Micro == 0 {
			clear(View[float32](r, b.Grads[1], vocab))
		}
		add(r, b)
	}
	return p
}

// What a segment writes is not cleared; what lies beside it is: the other parameter, and the bucket's padding.
func TestClearedGradients(t *testing.T) {
	p := overwriting()
	r := &Rank{Program: p, Store: tensors.Store{Data: &p.ProgramData, Stage: &p.Stages[0]},
		jobQueue: jobQueue{buckets: make([]bucket, 2)}}
	c, err := newChunk(r, &p.Stages[0].Chunks[0])
	must(t, err)
	g := p.Stages[0].Arena.Grads
	b := g.Offset + 4*vocabPad
	if got, want := clearedParts(r, []*chunk{c}), []part{{g.Offset, b},
		{b + 4*vocab, g.Offset + g.Size}}; !reflect.DeepEqual(got, want) {
		t.Errorf("cleared are %v, want %v", got, want)
	}
	p.Stages[0].Buckets[0].ShardedGrads = true // then a buffer is written, and the region only added to
	if got, want := clearedParts(r, []*chunk{c}), []part{{g.Offset, g.Offset + g.Size}}; !reflect.DeepEqual(got, want) {
		t.Errorf("cleared of a bucket that is scattered are %v, want %v", got, want)
	}
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
