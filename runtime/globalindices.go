package runtime

import (
	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/rng"
)

// Version2 is asserted by generated code, so that code of another version does not compile.
const Version2 = true

// FirstRow returns the index in the global batch of the first row of this rank's micro-batch m.
func FirstRow(r *rank.Rank, m int) int {
	b := &r.Program.Batch
	return (m*b.Replicas + r.Replica()) * b.MicroBatch
}

// DropoutKey returns the key of one dropout of one layer in the current step. It does not depend on micro-batch and
// rank, because elements are numbered within the global batch.
func DropoutKey(r *rank.Rank, segment, layer, key int) uint64 {
	return rng.Key(r.Seed, uint64(r.StepID), uint64(segment), uint64(layer), uint64(key))
}

// DropoutRate returns p while training, else 0.
func DropoutRate(r *rank.Rank, p float64) float64 {
	if r.Training {
		return p
	}
	return 0
}

// LocalRange returns the start of this rank's part of a dim, and how many of its width elements are not padding.
func LocalRange(r *rank.Rank, group, width, size int) (lo, n int) {
	lo = Index(r, group) * width
	return lo, min(max(size-lo, 0), width)
}

// Iota fills ids with the global indices of a rank's part of a dim, plus offset.
func Iota(ids []int32, at cpu.Where, offset int) {
	for i := range ids {
		ids[i] = int32(at.Of(i) + offset)
	}
}

// DocumentIota fills ids, a row of n positions for each sample, with the positions' indices within their documents,
// plus offset. starts are the documents' first positions, for all size positions of each sample.
func DocumentIota(ids, starts []int32, at cpu.Where, n, size, offset int) {
	for i := range ids {
		p := at.Of(i % n)
		ids[i] = int32(p+offset) - starts[i/n*size+p]
	}
}

// Zigzag returns the position of a rank's part of a dim that a group splits in the zigzag order of n parts: at most two
// runs.
func Zigzag(r *rank.Rank, group, n, size int) cpu.Where { return ShiftedZigzag(r, group, n, size, 0) }

// ShiftedZigzag is Zigzag for the part that the rank holds after parts have moved by a number of ranks.
func ShiftedZigzag(r *rank.Rank, group, n, size, by int) (w cpu.Where) {
	g, runs := r.CommGroup(group), 0
	comm.Parts((g.Index()+g.Size()-by)%g.Size(), g.Size(), size, n, func(at, width int) {
		switch runs {
		case 0:
			w = cpu.Where{At: at, Half: width}
		case 1:
			w.Then = at
		default:
			panic("runtime: a part of a zigzag dim is more than two runs")
		}
		runs++
	})
	if runs == 1 {
		w.Half = 0
	}
	return w
}

// CapIDs limits ids to at most most.
func CapIDs(ids []int32, limit int) {
	for i, id := range ids {
		ids[i] = min(id, int32(limit))
	}
}

// Concat concatenates rows of a and of b in dst. b has one row for each times rows of a, [outer, times, ...].
func Concat[T any](dst, a, b []T, outer, times, width, more int) {
	for i := range outer {
		for range times {
			copy(dst, a[:width])
			copy(dst[width:], b[i*more:][:more])
			dst, a = dst[width+more:], a[width:]
		}
	}
}

// SliceFrom copies to dst [outer, ...] the elements of src [outer, n] from index at.
func SliceFrom[T any](dst, src []T, outer, n, at int) {
	width := len(dst) / outer
	for i := range outer {
		copy(dst[i*width:][:width], src[i*n+at:])
	}
}

// Select sets dst[o,j] = src[o,at,j] for src [outer, n, inner].
func Select[T any](dst, src []T, outer, n, inner, at int) {
	for o := range outer {
		copy(dst[o*inner:(o+1)*inner], src[(o*n+at)*inner:])
	}
}
