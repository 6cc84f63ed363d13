package runtime

import "github.com/planc-dev/planc/runtime/comm"

// BucketPart is a bucket as a device's jobs want it: how much of it is this rank's, who else has a part in it, and
// where it lies, in bytes of the arena.
type BucketPart struct {
	Elems, First, Mine       int    // elements of the bucket; of this rank's part, by its first in the bucket
	Reduce, Ends, Shard, Sum string // names of lines, "" where there is none; see [StartReduce]

	// of all gradients and of this rank's part; where Each, Grads is of the buffer of the job under way
	Grads, MyGrads              int
	Params, MyParams            int      // likewise of parameters, where Fetch
	ShardedGrads, ShardedParams bool     // see [Bucket]
	Counts                      bool     // this rank's part counts in the gradient's norm
	Squares                     []Extent // of gradients, whose sum of squares that is
	Updates                     []Update
}

// Extent is elements of the arena, from a byte on.
type Extent struct{ At, N int }

// Update is a run of this rank's part that the optimizer treats alike, in bytes of the arena.
type Update struct {
	First, N                 int // elements, the first by its number in the flat space
	Param, Grad              int
	Master, Moment1, Moment2 int // -1 where there is none
	Decay                    bool
	// whose numbers move against experts' loads; nil: those that move by their gradient
	Load    *Param
	Numbers *Numbers // of its elements, where those are rounded by chance
}

// BucketPart describes bucket i as it is now.
func (r *Rank) BucketPart(i int) BucketPart {
	b, spec, p := &r.buckets[i], &r.Stage.Buckets[i], r.Program
	out := BucketPart{Elems: spec.Elems, First: b.lo - spec.Offset, Mine: b.hi - b.lo, ShardedGrads: spec.ShardedGrads,
		ShardedParams: spec.ShardedParams, Counts: b.countsInNorm,
		MyGrads: r.gradAt(i, b.lo), MyParams: r.paramAt(i, b.lo), Grads: b.scatterAt, Params: b.fetchAt}
	if !spec.ShardedGrads {
		out.Grads = r.gradAt(i, spec.Offset)
	}
	if !spec.ShardedParams {
		out.Params = r.paramAt(i, spec.Offset)
	}
	for _, l := range []struct {
		to    *string
		group *comm.Group
		name  string
	}{{&out.Reduce, b.reduce, overlapLine(p.atoms(spec.Reduce))}, {&out.Ends, b.ends, endsLine},
		{&out.Shard, b.shard, overlapLine(p.atoms(spec.Shard))}, {&out.Sum, b.sum, overlapLine(p.sumOnly(spec))}} {
		if l.group != nil {
			*l.to = l.name
		}
	}
	lo := b.lo
	for _, s := range b.spans {
		out.Updates = append(out.Updates, r.updatesOf(i, s)...)
		if s.load != nil { // loads of experts are no gradients
			out.Squares = append(out.Squares, Extent{r.gradAt(i, lo), s.lo - lo})
			lo = s.hi
		}
	}
	out.Squares = append(out.Squares, Extent{r.gradAt(i, lo), b.hi - lo})
	return out
}

// update says where a run of a bucket's part lies.
func (r *Rank) update(i int, s span) Update {
	a, types, state := &r.Stage.Arena, r.Program.TensorTypes(), r.Stage.Buckets[i].State+s.lo-r.buckets[i].lo
	at := func(g Region, e Elem) int {
		if g.Size == 0 {
			return -1
		}
		return g.Offset + state*e.Size()
	}
	return Update{First: s.lo, N: s.hi - s.lo, Param: r.paramAt(i, s.lo), Grad: r.gradAt(i, s.lo), Decay: s.decay,
		Load:   s.load,
		Master: at(a.Master, types.Master), Moment1: at(a.Moment1, types.Moments),
		Moment2: at(a.Moment2, types.Moments)}
}
