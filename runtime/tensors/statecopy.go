package tensors

import (
	"cmp"
	"slices"
	"sync"

	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/program"
)

// StateCopy is memory for a copy of the tensors that a checkpoint has, so that the copy can be written while training
// changes the ranks' arenas. Each rank copies the parts that it saves, in the types in which its arena has them.
type StateCopy struct {
	Stores // of the copies
	spans  [][]copySpan
}

// copySpan is a range of bytes that is copied.
type copySpan struct{ from, to, bytes int }

// NewStateCopy returns memory for copies of the stores' state.
func (s *Stores) NewStateCopy() *StateCopy {
	c := &StateCopy{Stores: Stores{All: slices.Clone(s.All), Team: s.Team, InBackground: s.InBackground}}
	for _, r := range s.Mine {
		packed, spans := r.packState()
		packed.Arena = alignedBytes(packed.Stage.Arena.Size)
		c.All[r.ID] = packed
		c.Mine, c.spans = append(c.Mine, packed), append(c.spans, spans)
	}
	return c
}

// StateCopyBytes returns the size of the copies of all ranks.
func StateCopyBytes(p *program.Program, mesh comm.Mesh) (total int64) {
	for id := range mesh.Size() {
		r := layOut(p, mesh, id)
		packed, _ := r.packState()
		total += int64(packed.Stage.Arena.Size)
	}
	return total
}

// packState returns a store, without memory, that has only the regions from which this rank saves tensors, and what is
// copied to it.
func (s *Store) packState() (*Store, []copySpan) {
	packed, stage := *s, *s.Stage
	packed.Stage, stage.Arena, packed.Arena = &stage, program.Arena{}, nil
	ts := Of(s.Data, s.Coord)
	var spans []copySpan
	for _, k := range append(momentKinds(s.Data), weightKind(s.Data)) {
		region := k.region(&stage.Arena)
		for i := range ts {
			if !k.isSaved(s, &ts[i]) {
				continue
			}
			if lo, hi, _ := k.piece(s, &ts[i]); lo == hi {
				continue
			}
			if region.Size == 0 {
				*region = program.Region{Offset: stage.Arena.Size, Size: k.region(&s.Stage.Arena).Size}
				stage.Arena.Size += (region.Size + arenaAlign - 1) &^ (arenaAlign - 1)
			}
			lo, hi, from := k.piece(s, &ts[i])
			_, _, to := k.piece(&packed, &ts[i])
			spans = append(spans, copySpan{from, to, (hi - lo) * k.elem.Size()})
		}
	}
	return &packed, join(spans)
}

// join sorts spans and joins those that touch or overlap.
func join(spans []copySpan) (joined []copySpan) {
	slices.SortFunc(spans, func(a, b copySpan) int { return cmp.Compare(a.from, b.from) })
	for _, s := range spans {
		n := len(joined) - 1
		if n < 0 || s.from > joined[n].from+joined[n].bytes || s.from-joined[n].from != s.to-joined[n].to {
			joined = append(joined, s)
			continue
		}
		joined[n].bytes = max(joined[n].bytes, s.from+s.bytes-joined[n].from)
	}
	return joined
}

// copyPiece is how many bytes a thread copies at a time.
const copyPiece = 4 << 20

// Take copies the state of a rank of this process with a number of threads.
func (c *StateCopy) Take(r *Store, threads int) {
	i := r.ID - c.Mine[0].ID
	to := c.Mine[i].Arena
	pieces := make(chan copySpan)
	var copying sync.WaitGroup
	for range threads {
		copying.Go(func() {
			for p := range pieces {
				copy(to[p.to:p.to+p.bytes], r.Arena[p.from:])
			}
		})
	}
	for _, s := range c.spans[i] {
		for at := 0; at < s.bytes; at += copyPiece {
			pieces <- copySpan{s.from + at, s.to + at, min(copyPiece, s.bytes-at)}
		}
	}
	close(pieces)
	copying.Wait()
}
