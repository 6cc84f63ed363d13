package rank

import (
	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/tensors"
)

// BucketPart describes a bucket for the jobs of a device: this rank's part, the communicators, and the positions in
// bytes of the arena.
type BucketPart struct {
	// elements of the bucket; first element and number of elements of this rank's part
	Elems, First, Mine            int
	Reduce, FirstLast, Shard, Sum string // names of lines, "" if there is none; see [StartReduce]

	// offsets of all gradients and of this rank's part; if ShardedGrads, Grads is the buffer of the current job
	Grads, MyGrads              int
	Params, MyParams            int      // the same for parameters and ShardedParams
	ShardedGrads, ShardedParams bool     // see [Bucket]
	Counts                      bool     // this rank's part counts in the gradient norm
	Squares                     []Extent // gradients whose sum of squares is this rank's contribution to the norm
	Updates                     []Update
}

// Extent is N elements of the arena from byte At.
type Extent struct{ At, N int }

// Update is a run of this rank's part that the optimizer treats alike, in bytes of the arena.
type Update struct {
	First, N                 int // number of the first element in the flat space, and number of elements
	Param, Grad              int
	Master, Moment1, Moment2 int // -1 if there is none
	Decay                    bool
	Rate                     float64 // factor of the learning rate
	// an expert bias that moves against the experts' loads; nil: parameters with gradients
	Load    *program.Param
	Numbers *tensors.Numbers // global numbers of its elements, if they are rounded stochastically
}

// BucketPart returns the description of bucket i in its current state.
func (r *Rank) BucketPart(i int) BucketPart {
	b, spec, p := &r.buckets[i], &r.Stage.Buckets[i], r.Program
	out := BucketPart{Elems: spec.Elems, First: b.Lo - spec.Offset, Mine: b.Hi - b.Lo, ShardedGrads: spec.ShardedGrads,
		ShardedParams: spec.ShardedParams, Counts: b.countsInNorm,
		MyGrads: r.GradAt(i, b.Lo), MyParams: r.ParamAt(i, b.Lo), Grads: b.scatterAt, Params: b.fetchAt}
	if !spec.ShardedGrads {
		out.Grads = r.GradAt(i, spec.Offset)
	}
	if !spec.ShardedParams {
		out.Params = r.ParamAt(i, spec.Offset)
	}
	for _, l := range []struct {
		to    *string
		group *comm.Group
		name  string
	}{{&out.Reduce, b.reduce, overlapLine(p.Atoms(spec.Reduce))}, {&out.FirstLast, b.firstLast, firstLastLine},
		{&out.Shard, b.shard, overlapLine(p.Atoms(spec.Shard))}, {&out.Sum, b.sum, overlapLine(p.SumOnly(spec))}} {
		if l.group != nil {
			*l.to = l.name
		}
	}
	lo := b.Lo
	for _, s := range b.spans {
		out.Updates = append(out.Updates, updatesOf(r, i, s)...)
		if s.Load != nil { // the experts' loads are not gradients
			out.Squares = append(out.Squares, Extent{r.GradAt(i, lo), s.Lo - lo})
			lo = s.Hi
		}
	}
	out.Squares = append(out.Squares, Extent{r.GradAt(i, lo), b.Hi - lo})
	return out
}

// updateOf returns the positions of a run of a bucket's part.
func updateOf(r *Rank, i int, s tensors.Span) Update {
	a, types, state := &r.Stage.Arena, r.Program.TensorTypes(), r.Stage.Buckets[i].State+s.Lo-r.Shards[i].Lo
	at := func(g program.Region, e program.Elem) int {
		if g.Size == 0 {
			return -1
		}
		return g.Offset + state*e.Size()
	}
	return Update{First: s.Lo, N: s.Hi - s.Lo, Param: r.ParamAt(i, s.Lo), Grad: r.GradAt(i, s.Lo), Decay: s.Decay,
		Rate: s.Rate, Load: s.Load,
		Master: at(a.Master, types.Master), Moment1: at(a.Moment1, types.Moments),
		Moment2: at(a.Moment2, types.Moments)}
}
