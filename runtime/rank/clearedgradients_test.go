package rank

import (
	"reflect"
	"testing"

	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/tensors"
)

// Gradients that a segment writes first are not cleared. The other parameter and the padding of the bucket are.
func TestClearedGradients(t *testing.T) {
	const width, padded = 11, 128 // elements of a parameter, and of its bucket
	p := &Program{
		ProgramData: ProgramData{Elem: program.F32, Stages: []program.Stage{{
			Chunks: []program.Chunk{{Runs: []program.LayerRun{{Count: 1}}, Buffers: 1}},
			Buckets: []program.Bucket{
				{Offset: padded, Params: padded, Grads: padded, Elems: padded,
					Pieces: []program.Piece{{Offset: padded}}},
				{Class: 1, Elems: padded, Pieces: []program.Piece{{}}}},
			Arena: program.Arena{Grads: program.Region{Offset: 1024, Size: 1024}}}}},
		Segments: []Segment{{SegmentData: SegmentData{Refs: []program.Ref{{Class: 1}, {}},
			FirstWrites: []program.FirstWrite{{Ref: 1, Elems: width}}}}},
	}
	r := &Rank{Program: p, Store: tensors.Store{Data: &p.ProgramData, Stage: &p.Stages[0]},
		jobQueue: jobQueue{buckets: make([]bucket, 2)}}
	c, err := newChunk(r, &p.Stages[0].Chunks[0])
	if err != nil {
		t.Fatal(err)
	}
	g := p.Stages[0].Arena.Grads
	b := g.Offset + 4*padded
	if got, want := clearedParts(r, []*chunk{c}), []part{{g.Offset, b},
		{b + 4*width, g.Offset + g.Size}}; !reflect.DeepEqual(got, want) {
		t.Errorf("cleared are %v, want %v", got, want)
	}
	p.Stages[0].Buckets[0].ShardedGrads = true // then a buffer is written, and the region only added to
	if got, want := clearedParts(r, []*chunk{c}), []part{{g.Offset, g.Offset + g.Size}}; !reflect.DeepEqual(got, want) {
		t.Errorf("cleared of a bucket that is scattered are %v, want %v", got, want)
	}
}
