package rank

import (
	"testing"

	"github.com/planc-dev/planc/runtime/program"
)

// placesRank is a rank of one chunk with two buffers; streams have 100 bytes.
func placesRank(c *program.Chunk) (*Rank, *chunk) {
	r := &Rank{Program: &Program{ProgramData: ProgramData{Stream: 100},
		Segments: []Segment{{SegmentData: SegmentData{Name: "embed",
			Output: true},
		},
			{SegmentData: SegmentData{Name: "block",
				Input:  true,
				Output: true},
			}},
	}}
	r.Stage = &program.Stage{Chunks: []program.Chunk{*c}}
	r.Stage.Arena.Activations.Offset = 1000
	r.exec = &executor{spare: spareMemory(r.Stage)}
	return r, &chunk{Chunk: c}
}

// layerPlace is where a layer of a run works, from the start of the second buffer; from spare on, from the start of the
// spare memory.
type layerPlace struct{ run, k, in, slot, out int }

const spare = 1 << 20

// Each layer's output is the next one's input; what is kept lies in the buffer, the rest behind all buffers.
func TestPlaces(t *testing.T) {
	embed := program.LayerRun{Count: 1, Stride: 20}
	groups := program.Chunk{Size: 600, Buffers: 2, Runs: []program.LayerRun{embed, // blocks save 40 bytes
		{Segment: 1, Count: 5, Offset: 20, Stride: 100, Every: 2, Inner: 140}, {Segment: 1, From: 5, Count: 1,
			Offset: 320, Stride: 140}}}
	// blocks save 20 bytes, a part of their input among them
	split := program.Chunk{Size: 180, Buffers: 2, Runs: []program.LayerRun{embed,
		{Segment: 1, Count: 3, Offset: 20, Stride: 20, Remat: true, Split: true}}}
	for _, x := range []struct {
		chunk  *program.Chunk
		places []layerPlace
	}{
		{&groups, []layerPlace{{0, 0, 0, 0, 20}, {1, 0, 20, spare, spare + 40}, {1, 1, spare + 40, spare + 140, 120},
			{1, 2, 120, spare, spare + 40},
			{1, 3, spare + 40, spare + 140, 220}, {1, 4, 220, spare, 320}, {2, 0, 320, 420, 500}}},
		{&split, []layerPlace{{0, 0, 0, 0, spare}, {1, 0, spare, 20, spare + 100},
			{1, 1, spare + 100, 40, spare}, {1, 2, spare, 60, 80}}},
	} {
		r, c := placesRank(x.chunk)
		buffer := 1000 + c.Size
		from := func(at int) int {
			if at >= r.exec.spare {
				return at - r.exec.spare + spare
			}
			return at - buffer
		}
		for _, p := range x.places {
			got := layerPlace{p.run, p.k, from(inputOffset(r, c, buffer, p.run, p.k)), from(slotOffset(r, c, buffer,
				p.run, p.k)), from(inputOffset(r, c, buffer, p.run, p.k+1))}
			if got != p {
				t.Errorf("%+v, want %+v", got, p)
			}
		}
	}
}
