package rank

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/tensors"
	"github.com/planc-dev/planc/runtime/timeline"
)

// If a rank on this CPU has several threads, its optimizer update overlaps the next step's forward pass: the update is
// bound by memory, the forward pass by arithmetic. A helper thread of the rank updates buckets in the order in which
// the forward pass reads them. Before the rank's own thread reads a bucket, it finishes the rest of that bucket. The
// arithmetic on each element is the same in both cases.

// updates holds the bucket updates of a rank that overlap the next step.
type updates struct {
	hyper   Hyper   // hyperparameters of the step that computed the gradients
	clip    float64 // clip factor of that step
	open    int     // buckets that the rank's thread has not waited for
	stale   int     // buckets that hold the gradients of the last step
	buckets []*bucketUpdate
	order   []*bucketUpdate // in the order in which a forward pass reads them
	help    func()          // updates pieces of all buckets until none is left
	piece   func(bucket int, s tensors.Span)
	fault   atomic.Pointer[string] // panic of the first piece that failed
}

// bucketUpdate is the update of one bucket, in pieces that any thread may process.
type bucketUpdate struct {
	open   bool // the rank's thread has not waited for it
	stale  bool // it holds the gradients of the last step
	pieces []tensors.Span
	next   atomic.Int64
	done   atomic.Int64 // finished pieces
	bucket int
}

// pieceElems is the maximum number of elements of a piece. A kernel's call gives one thread the same number, so that
// vectors begin at the same elements as when the whole bucket is updated in one call.
const pieceElems = 1 << 14

// newUpdates prepares the rank's buckets for updates that overlap the next step. It returns nil if their state is not
// stored in the type that kernels compute in.
func newUpdates[F tensors.Float](r *Rank) *updates {
	t := r.Program.TensorTypes()
	if !tensors.IsNative[F](t.Params) || !tensors.IsNative[F](t.Grads) || !tensors.IsNative[F](t.Moments) ||
		r.Program.HasMaster() || r.Program.StochasticRounding || r.poison {
		return nil
	}
	u := &updates{piece: func(bucket int, s tensors.Span) { updatePiece[F](r, bucket, s) }}
	for i := range r.buckets {
		u.buckets = append(u.buckets, newBucketUpdate(r, i))
	}
	seen := make([]bool, len(u.buckets))
	for _, c := range r.exec.chunks {
		for _, l := range c.layers {
			for _, f := range l.refs {
				if b := u.buckets[f.bucket]; b != nil && !seen[f.bucket] {
					seen[f.bucket] = true
					u.order = append(u.order, b)
				}
			}
		}
	}
	for i := range u.buckets {
		if !seen[i] { // it is unknown when a pass reads it
			u.buckets[i] = nil
		}
	}
	u.help = func() {
		for _, b := range u.order {
			u.work(b)
		}
	}
	return u
}

// newBucketUpdate returns nil for a bucket that must be updated at the end of its step: one that is gathered after the
// update, or has numbers that are not updated by gradients.
func newBucketUpdate(r *Rank, i int) *bucketUpdate {
	b, spec := &r.buckets[i], &r.Stage.Buckets[i]
	if spec.Shard >= 0 || spec.ShardedParams || spec.ShardedGrads {
		return nil
	}
	out := &bucketUpdate{bucket: i}
	for _, s := range b.spans {
		if s.Load != nil {
			return nil
		}
		for lo := s.Lo; lo < s.Hi; lo += pieceElems {
			piece := s
			piece.Lo, piece.Hi = lo, min(lo+pieceElems, s.Hi)
			out.pieces = append(out.pieces, piece)
		}
	}
	return out
}

// updatePiece updates a piece of a bucket.
func updatePiece[F tensors.Float](r *Rank, bucket int, s tensors.Span) {
	u := updater[F]{r: r, types: r.Program.TensorTypes(), hyper: &r.updates.hyper, clip: r.updates.clip}
	u.update(bucket, &s, s.Lo, r.Stage.Buckets[bucket].State+s.Lo-r.Shards[bucket].Lo, s.Hi-s.Lo)
}

// postponeBucket makes a bucket's update available to overlap the next step, and reports whether that is possible.
func (u *updates) postponeBucket(i int) bool {
	if u == nil || u.buckets[i] == nil {
		return false
	}
	b := u.buckets[i]
	b.open, b.stale = true, true
	u.open++
	u.stale++
	b.done.Store(0)
	b.next.Store(0) // from here on, the helper may work on it
	return true
}

// work updates pieces of a bucket until none is left to claim.
func (u *updates) work(b *bucketUpdate) {
	n := int64(len(b.pieces))
	for b.next.Load() < n {
		i := b.next.Add(1) - 1
		if i >= n {
			return
		}
		u.do(b, i)
	}
}

// do updates a piece. A piece that panics also counts as done, so that the rank does not wait forever. The rank then
// panics itself.
func (u *updates) do(b *bucketUpdate, i int64) {
	defer func() {
		if x := recover(); x != nil {
			text := fmt.Sprintf("%v\n%s", x, debug.Stack())
			u.fault.CompareAndSwap(nil, &text)
		}
		b.done.Add(1)
	}()
	u.piece(b.bucket, b.pieces[i])
}

// end waits until all pieces of a bucket are done.
func (u *updates) end(b *bucketUpdate) {
	u.work(b)
	for b.done.Load() != int64(len(b.pieces)) {
		goruntime.Gosched()
	}
}

// finishUpdate waits until a bucket's parameters are updated.
func finishUpdate(r *Rank, b *bucketUpdate) {
	if b == nil || !b.open {
		return
	}
	end := beginPart(r, timeline.Optimizer, "finish update", "bucket", b.bucket)
	r.updates.end(b)
	r.compute.End(end)
	b.open = false
	r.updates.open--
	if f := r.updates.fault.Load(); f != nil {
		panic(*f)
	}
}

// clearBucket zeroes the gradients of a bucket that are added to without being written first.
func clearBucket(r *Rank, i int) {
	spec := &r.Stage.Buckets[i]
	lo := r.Stage.Arena.Grads.Offset + spec.Grads*r.Program.TensorTypes().Grads.Size()
	hi := lo + gradElems(r, i)*r.Program.TensorTypes().Grads.Size()
	for _, p := range r.exec.cleared {
		p = (part{max(p.lo, lo), min(p.hi, hi)})
		if p.lo < p.hi {
			zeroBytes(r, p.lo, p.hi-p.lo)
		}
	}
}

// gradElems returns the number of gradients of a bucket in the rank's arena.
func gradElems(r *Rank, i int) int {
	if r.Stage.Buckets[i].ShardedGrads {
		return r.Shards[i].Hi - r.Shards[i].Lo
	}
	return r.Stage.Buckets[i].Elems
}

// finishLayerUpdates finishes the updates of the buckets that a layer reads.
func finishLayerUpdates(r *Rank, l *layer) {
	if r.updates == nil || r.updates.open == 0 {
		return
	}
	for i := range l.refs {
		finishUpdate(r, r.updates.buckets[l.refs[i].bucket])
	}
}

// FinishUpdates finishes the updates of all buckets, and gathers their parameters. The gradients stay as they are.
func (r *Rank) FinishUpdates() {
	finishGathers(r)
	if r.updates == nil || r.updates.open == 0 {
		return
	}
	for _, b := range r.updates.order {
		finishUpdate(r, b)
	}
}

// readyGradients finishes all updates and prepares the gradients for a backward pass.
func readyGradients(r *Rank) {
	r.FinishUpdates()
	if r.updates == nil || r.updates.stale == 0 {
		return
	}
	for _, b := range r.updates.order {
		if b.stale {
			b.stale = false
			clearBucket(r, b.bucket)
		}
	}
	r.updates.stale = 0
}

// EnableOverlap lets a rank with several threads on this CPU postpone its updates.
func (r *Rank) EnableOverlap(threads int) {
	if r.Device != nil || threads < 2 {
		return
	}
	if r.Program.Elem == program.F64 {
		r.updates = newUpdates[float64](r)
	} else {
		r.updates = newUpdates[float32](r)
	}
}

// HasUpdates reports whether updates, or gathers of updated parameters, overlap the next step.
func (r *Rank) HasUpdates() bool {
	return r.updates != nil && r.updates.open > 0 || r.exec.gathers.due
}

// WaitUpdates waits until no update is running, even if a rank has failed.
func (r *Rank) WaitUpdates() {
	if r.updates == nil {
		return
	}
	for _, b := range r.updates.order {
		if b.open {
			r.updates.end(b)
		}
	}
}

// begin starts the helper on the postponed updates.
func (u *updates) begin(rank int) {
	if u != nil && u.open > 0 {
		cpu.Overlap(rank, &u.help)
	}
}
