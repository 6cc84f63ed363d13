package rank

import (
	"fmt"

	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/tensors"
	"github.com/planc-dev/planc/runtime/timeline"
)

// bucket is one rank's view of a Bucket.
type bucket struct {
	*tensors.Shard                                 // of the rank
	reduce, firstLast, shard, sum *comm.Group      // for the communication goroutine; nil: none, or a group of one
	countsInNorm                  bool             // this rank's part counts in the gradient norm
	spans                         []tensors.Span   // parameters in [lo, hi)
	tensors                       []tensors.Tensor // tensors in [lo, hi), if they are rounded stochastically

	scatterAt, fetchAt int // byte offsets of the buffers of scattering and fetching jobs

	pending [kinds]bool          // by kind: started and not waited for
	done    [kinds]chan struct{} // by kind: receives one token per finished job
}

// job is work for a rank's communication goroutine.
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

// Names of the jobs, and of waiting for them, in traces.
var (
	jobNames  = [kinds]string{"reduce", "gather", "scatter", "fetch"}
	waitNames = [kinds]string{"wait for reduce of", "wait for gather of", "wait for scatter of", "wait for fetch of"}
)

// StartReduce starts the reduction of a bucket's gradient on the rank's communication goroutine. The gradient is summed
// over Reduce, and over both ends of the pipeline if both have it. If the bucket is sharded, it is then
// reduce-scattered in place over Shard, so that only this rank's 1/n of the bucket is valid. That part is summed over
// the atoms of Sum that Shard lacks. WaitReduce ends it. Buckets are reduced in the order in which they are started,
// which must be the same on all ranks.
func StartReduce(r *Rank, bucket int) { startJob(r, bucket, reducing) }

// WaitReduce waits for the bucket's reduction. No gradient of the bucket may be accessed before it returns.
func WaitReduce(r *Rank, bucket int) { waitJob(r, bucket, reducing) }

// StartGather starts to gather a bucket's updated parameters from the ranks of Shard, on the communication goroutine.
func StartGather(r *Rank, bucket int) { startJob(r, bucket, gathering) }

// WaitGather waits until the bucket's parameters are complete.
func WaitGather(r *Rank, bucket int) { waitJob(r, bucket, gathering) }

// jobsOf returns the function of each kind of job for the types in which the program stores gradients and parameters. A
// rank calls it once, because each mention of a function with type parameters creates a new one.
func jobsOf[F tensors.Float](t program.Types) [kinds]func(*Rank, int) error {
	return [kinds]func(*Rank, int) error{
		reducing:   forType(t.Grads, reduceStored[num.BF16], reduceStored[num.F16], reduceStored[F]),
		scattering: forType(t.Grads, scatterStored[num.BF16], scatterStored[num.F16], scatterStored[F]),
		gathering:  forType(t.Params, gatherStored[num.BF16], gatherStored[num.F16], gatherStored[F]),
		fetching:   forType(t.Params, fetchStored[num.BF16], fetchStored[num.F16], fetchStored[F]),
	}
}

// forType returns the function for numbers of type e; full is the one for the kernels' type.
func forType(e program.Elem, bf16, f16, full func(*Rank, int) error) func(*Rank, int) error {
	switch e {
	case program.BF16:
		return bf16
	case program.F16:
		return f16
	}
	return full
}

// reduceStored reduces gradients of any storage type. If the program reduces in a narrower type, each rank's part is
// rounded to it before, and each sum after. The results equal those of sending that type.
func reduceStored[S num.Stored](r *Rank, i int) error {
	b, spec := &r.buckets[i], &r.Stage.Buckets[i]
	mine := tensors.View[S](&r.Store, r.GradAt(i, b.Lo), b.Hi-b.Lo)
	whole := mine
	if !spec.ShardedGrads {
		whole = tensors.View[S](&r.Store, r.GradAt(i, spec.Offset), spec.Elems)
	}
	roundToReduce(r.Program, whole)
	for _, g := range []*comm.Group{b.reduce, b.firstLast} {
		if g == nil {
			continue
		}
		if err := comm.AllReduce(g, whole, comm.Sum); err != nil {
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
	if err := comm.AllReduce(b.sum, mine, comm.Sum); err != nil {
		return err
	}
	roundToReduce(r.Program, mine)
	return nil
}

// roundToReduce rounds gradients to the type in which they are reduced, if that differs.
func roundToReduce[S num.Stored](p *Program, x []S) {
	wide, ok := any(x).([]float32)
	if !ok {
		return
	}
	switch p.TensorTypes().Reduce {
	case program.BF16:
		for i, v := range wide {
			wide[i] = num.RoundBF16(v)
		}
	case program.F16:
		for i, v := range wide {
			wide[i] = num.RoundF16(v)
		}
	}
}

// scatterStored reduce-scatters a micro-batch's gradients of the bucket, which are complete at scatterAt, over Shard,
// and adds this rank's part to its accumulated gradients.
func scatterStored[S num.Stored](r *Rank, i int) error {
	b, spec := &r.buckets[i], &r.Stage.Buckets[i]
	whole := tensors.View[S](&r.Store, b.scatterAt, spec.Elems)
	mine := whole[b.Lo-spec.Offset : b.Hi-spec.Offset]
	if b.shard != nil {
		roundToReduce(r.Program, whole)
		if err := comm.ReduceScatter(b.shard, mine, whole, 1, len(mine)); err != nil {
			return err
		}
		roundToReduce(r.Program, mine)
	}
	num.Accumulate(tensors.View[S](&r.Store, r.GradAt(i, b.Lo), len(mine)), mine)
	return nil
}

// gatherStored all-gathers the bucket in the parameter region.
func gatherStored[S num.Stored](r *Rank, i int) error {
	b, spec := &r.buckets[i], &r.Stage.Buckets[i]
	if b.shard == nil {
		return nil
	}
	whole := tensors.View[S](&r.Store, r.ParamAt(i, spec.Offset), spec.Elems)
	mine := whole[b.Lo-spec.Offset : b.Hi-spec.Offset]
	return comm.AllGather(b.shard, whole, mine, 1, len(mine), len(whole))
}

// fetchStored all-gathers the bucket at byte offset fetchAt.
func fetchStored[S num.Stored](r *Rank, i int) error {
	b, spec := &r.buckets[i], &r.Stage.Buckets[i]
	whole, mine := tensors.View[S](&r.Store, b.fetchAt, spec.Elems), tensors.View[S](&r.Store, r.ParamAt(i, b.Lo),
		b.Hi-b.Lo)
	if b.shard == nil {
		copy(whole, mine)
		return nil
	}
	return comm.AllGather(b.shard, whole, mine, 1, len(mine), len(whole))
}

// startJob starts a job of a bucket, which waitJob ends.
func startJob(r *Rank, i, kind int) {
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
		Check(r.world.Err())
	}
}

// waitJob waits for a job of a bucket.
func waitJob(r *Rank, i, kind int) {
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
	defer r.compute.End(beginPart(r, timeline.DPComm, waitNames[kind], "bucket", i))
	select {
	case <-b.done[kind]:
	case <-r.world.Done():
		Check(r.world.Err())
	}
}

// isNoop reports whether the job would not communicate.
func (b *bucket) isNoop(kind int) bool {
	switch kind {
	case reducing:
		return b.reduce == nil && b.firstLast == nil && b.sum == nil && b.shard == nil
	case gathering:
		return b.shard == nil
	}
	return false
}

// Serve is the communication goroutine: it runs jobs until the channel is closed or a rank fails.
func (r *Rank) Serve() {
	defer func() {
		if x := recover(); x != nil {
			r.world.Fail(PanicError(r.ID, x))
		}
	}()
	for j := range r.jobs {
		mark := r.communication.Begin(timeline.DPComm)
		if s := r.communication.Span(); s != nil {
			s.Kind, s.Object, s.At = jobNames[j.kind], "bucket", j.bucket
		}
		if err := r.kinds[j.kind](r, j.bucket); err != nil {
			r.world.Fail(err)
			return
		}
		r.communication.End(mark)
		r.buckets[j.bucket].done[j.kind] <- struct{}{}
	}
}
