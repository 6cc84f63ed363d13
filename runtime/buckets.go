package runtime

import (
	"fmt"

	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/num"
)

// bucket is one rank's view of a Bucket.
type bucket struct {
	reduce, ends, shard, sum *comm.Group // on the communication line; nil: none, or a group of one
	lo, hi                   int         // the part of the flat space whose optimizer state is here
	countsInNorm             bool        // this rank's part counts in the gradient's norm
	spans                    []span      // parameters in [lo, hi)
	tensors                  []tensor    // whose elements they are, where those are rounded by chance

	scatterAt, fetchAt int // byte offsets of the buffers that a scattering and a fetching job work in

	pending [kinds]bool          // by kind: started, not waited for
	done    [kinds]chan struct{} // by kind: one token a finished job
}

// span is a run of parameters that the optimizer treats alike.
type span struct {
	lo, hi int // in elements of the flat space
	decay  bool
	load   *Param // whose numbers move against experts' loads; nil: those that move by their gradient
}

// job is work for a rank's communication line.
type job struct {
	bucket int
	kind   int
}

const (
	reducing = iota
	gathering
	scattering
	fetching
	kinds
)

// StartReduce begins the reduction of a bucket's gradient on the rank's communication line: summed over Reduce, and
// over both ends of the pipeline where both have it; then, where the bucket is sharded, summed and scattered over
// Shard, so that this rank's 1/n of the bucket is right, in place; then that is summed over the atoms of Sum that Shard
// lacks. WaitReduce ends it. Buckets are reduced in the order in which they are started, which must be the same on all
// ranks.
func StartReduce(r *Rank, bucket int) { r.start(bucket, reducing) }

// WaitReduce returns when the bucket's reduction is done. No gradient of the bucket may be touched before.
func WaitReduce(r *Rank, bucket int) { r.wait(bucket, reducing) }

// StartGather begins to gather a bucket's updated parameters from the ranks of Shard, as StartReduce does.
func StartGather(r *Rank, bucket int) { r.start(bucket, gathering) }

// WaitGather returns when the bucket's parameters are whole.
func WaitGather(r *Rank, bucket int) { r.wait(bucket, gathering) }

// jobsOf is what a job of each kind does, by how the program stores what it works on. A rank asks once: a function of a
// type parameter is made anew wherever it is named.
func jobsOf[F Float](t Types) [kinds]func(*Rank, int) error {
	return [kinds]func(*Rank, int) error{
		reducing:   forType(t.Grads, reduceStored[num.BF16], reduceStored[num.F16], reduceStored[F]),
		scattering: forType(t.Grads, scatterStored[num.BF16], scatterStored[num.F16], scatterStored[F]),
		gathering:  forType(t.Params, gatherStored[num.BF16], gatherStored[num.F16], gatherStored[F]),
		fetching:   forType(t.Params, fetchStored[num.BF16], fetchStored[num.F16], fetchStored[F]),
	}
}

// forType is the function for numbers of type e, full where they are the kernels'.
func forType(e Elem, bf16, f16, full func(*Rank, int) error) func(*Rank, int) error {
	switch e {
	case BF16:
		return bf16
	case F16:
		return f16
	}
	return full
}

// reduceStored reduces gradients however they are stored. Where they are reduced in a narrower type, each rank's part
// is rounded to that before, and each sum after: the numbers are those that would come of sending them so.
func reduceStored[S num.Stored](r *Rank, i int) error {
	b, spec := &r.buckets[i], &r.Stage.Buckets[i]
	mine := View[S](r, r.gradAt(i, b.lo), b.hi-b.lo)
	whole := mine
	if !spec.ShardedGrads {
		whole = View[S](r, r.gradAt(i, spec.Offset), spec.Elems)
	}
	roundToReduce(r.Program, whole)
	for _, g := range []*comm.Group{b.reduce, b.ends} {
		if g == nil {
			continue
		}
		if err := comm.AllReduce(g, whole, Sum); err != nil {
			return err
		}
		roundToReduce(r.Program, whole)
	}
	if b.shard != nil && !spec.ShardedGrads {
		if err := comm.ReduceScatter(b.shard, mine, whole, 1, len(mine)); err != nil {
			return err
		}
		roundToReduce(r.Program, mine)
	}
	if b.sum == nil {
		return nil
	}
	if err := comm.AllReduce(b.sum, mine, Sum); err != nil {
		return err
	}
	roundToReduce(r.Program, mine)
	return nil
}

// roundToReduce rounds gradients to the type in which they are reduced, if that is another.
func roundToReduce[S num.Stored](p *Program, x []S) {
	wide, ok := any(x).([]float32)
	if !ok {
		return
	}
	switch p.types().Reduce {
	case BF16:
		for i, v := range wide {
			wide[i] = num.RoundBF16(v)
		}
	case F16:
		for i, v := range wide {
			wide[i] = num.RoundF16(v)
		}
	}
}

// scatterStored sums a micro-batch's gradients of the bucket, whole at byte offset at, over Shard, and adds this rank's
// part to what it has.
func scatterStored[S num.Stored](r *Rank, i int) error {
	b, spec := &r.buckets[i], &r.Stage.Buckets[i]
	whole := View[S](r, b.scatterAt, spec.Elems)
	mine := whole[b.lo-spec.Offset : b.hi-spec.Offset]
	if b.shard != nil {
		roundToReduce(r.Program, whole)
		if err := comm.ReduceScatter(b.shard, mine, whole, 1, len(mine)); err != nil {
			return err
		}
		roundToReduce(r.Program, mine)
	}
	Accumulate(View[S](r, r.gradAt(i, b.lo), len(mine)), mine)
	return nil
}

// gatherStored makes the bucket whole in the region of parameters.
func gatherStored[S num.Stored](r *Rank, i int) error {
	b, spec := &r.buckets[i], &r.Stage.Buckets[i]
	if b.shard == nil {
		return nil
	}
	whole := View[S](r, r.paramAt(i, spec.Offset), spec.Elems)
	mine := whole[b.lo-spec.Offset : b.hi-spec.Offset]
	return comm.AllGather(b.shard, whole, mine, 1, len(mine), len(whole))
}

// fetchStored makes the bucket whole at byte offset fetchAt.
func fetchStored[S num.Stored](r *Rank, i int) error {
	b, spec := &r.buckets[i], &r.Stage.Buckets[i]
	whole, mine := View[S](r, b.fetchAt, spec.Elems), View[S](r, r.paramAt(i, b.lo), b.hi-b.lo)
	if b.shard == nil {
		copy(whole, mine)
		return nil
	}
	return comm.AllGather(b.shard, whole, mine, 1, len(mine), len(whole))
}

// gradAt is the byte offset of the gradient of an element of bucket i, numbered as in the flat space.
func (r *Rank) gradAt(i, elem int) int {
	b := &r.Stage.Buckets[i]
	first := b.Offset
	if b.ShardedGrads {
		first = r.buckets[i].lo
	}
	return r.Stage.Arena.Grads.Offset + (b.Grads+elem-first)*r.Program.types().Grads.Size()
}

// paramAt is the byte offset of a parameter of bucket i, numbered as in the flat space.
func (r *Rank) paramAt(i, elem int) int {
	b := &r.Stage.Buckets[i]
	first := b.Offset
	if b.ShardedParams {
		first = r.buckets[i].lo
	}
	return r.Stage.Arena.Params.Offset + (b.Params+elem-first)*r.Program.types().Params.Size()
}

func (r *Rank) start(i, kind int) {
	b := &r.buckets[i]
	if b.pending[kind] {
		panic(fmt.Sprintf("runtime: bucket %d was started twice", i))
	}
	b.pending[kind] = true
	if b.isNoop(kind) {
		return
	}
	if r.Device != nil {
		r.Device.Start(i, Job(kind))
		return
	}
	select {
	case r.jobs <- job{i, kind}:
	case <-r.world.Done():
		check(r.world.Err())
	}
}

func (r *Rank) wait(i, kind int) {
	b := &r.buckets[i]
	if !b.pending[kind] {
		panic(fmt.Sprintf("runtime: bucket %d was waited for and not started", i))
	}
	b.pending[kind] = false
	if b.isNoop(kind) {
		return
	}
	if r.Device != nil {
		r.Device.Wait(i, Job(kind))
		return
	}
	select {
	case <-b.done[kind]:
	case <-r.world.Done():
		check(r.world.Err())
	}
}

// isNoop says whether the job would move nothing.
func (b *bucket) isNoop(kind int) bool {
	switch kind {
	case reducing:
		return b.reduce == nil && b.ends == nil && b.sum == nil && b.shard == nil
	case gathering:
		return b.shard == nil
	}
	return false
}

// serve is the communication line: it runs jobs until the channel closes or the world fails.
func (r *Rank) serve() {
	defer func() {
		if x := recover(); x != nil {
			r.world.Fail(rankError(r.ID, x))
		}
	}()
	for j := range r.jobs {
		if err := r.kinds[j.kind](r, j.bucket); err != nil {
			r.world.Fail(err)
			return
		}
		r.buckets[j.bucket].done[j.kind] <- struct{}{}
	}
}
