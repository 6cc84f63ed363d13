package runtime

import (
	"fmt"
	goruntime "runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/planc-dev/planc/runtime/cpu"
)

// Where a rank of this CPU has several threads, its optimizer works beside the next step's forward pass: one is bound
// by memory, the other by arithmetic. A helper of the rank's team updates buckets in the order in which the pass reads
// them, and the rank's own thread, before it reads one, does what is left of it. What is done to each element is the
// same either way.

// updates are a rank's buckets that are updated beside the next step.
type updates struct {
	hyper   Hyper   // the rates of the step whose gradients they are
	clip    float64 // and its factor
	open    int     // buckets that the rank's thread has not waited for
	stale   int     // buckets whose gradients are the last step's
	buckets []*bucketUpdate
	order   []*bucketUpdate // as a forward pass reads them
	help    func()          // does pieces of any bucket until none is left
	piece   func(bucket int, s span)
	fault   atomic.Pointer[string] // of the first piece that panicked
}

// bucketUpdate is the update of one bucket, in pieces that any thread may do.
type bucketUpdate struct {
	open   bool // the rank's thread has not waited for it
	stale  bool // its gradients are the last step's
	pieces []span
	next   atomic.Int64
	done   atomic.Int64 // pieces
	bucket int
}

// pieceElems is how many elements a piece has at most. It is what one thread does of a kernel's call, so that vectors
// begin where they do when the whole bucket is updated in one.
const pieceElems = 1 << 14

// newUpdates prepares the rank's buckets to be updated beside the next step; nil if their state is not what kernels
// compute in.
func newUpdates[F Float](r *Rank) *updates {
	t := r.Program.types()
	if !isNative[F](t.Params) || !isNative[F](t.Grads) || !isNative[F](t.Moments) || r.Program.hasMaster() ||
		r.Program.StochasticRounding || r.poison {
		return nil
	}
	u := &updates{piece: func(bucket int, s span) { updatePiece[F](r, bucket, s) }}
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
		if !seen[i] { // no pass tells when it is read
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

// newBucketUpdate is nil for a bucket that is updated when its step ends: one that is gathered or fetched thereafter,
// or has numbers that no gradient moves.
func newBucketUpdate(r *Rank, i int) *bucketUpdate {
	b, spec := &r.buckets[i], &r.Stage.Buckets[i]
	if spec.Shard >= 0 || spec.ShardedParams || spec.ShardedGrads {
		return nil
	}
	out := &bucketUpdate{bucket: i}
	for _, s := range b.spans {
		if s.load != nil {
			return nil
		}
		for lo := s.lo; lo < s.hi; lo += pieceElems {
			out.pieces = append(out.pieces, span{lo: lo, hi: min(lo+pieceElems, s.hi), decay: s.decay})
		}
	}
	return out
}

// updatePiece updates a piece of a bucket.
func updatePiece[F Float](r *Rank, bucket int, s span) {
	u := updater[F]{r: r, types: r.Program.types(), hyper: &r.updates.hyper, clip: r.updates.clip}
	u.update(bucket, s.decay, s.lo, r.Stage.Buckets[bucket].State+s.lo-r.buckets[bucket].lo, s.hi-s.lo)
}

// postponeBucket opens a bucket's update, and tells whether it is one to be done beside the next step.
func (u *updates) postponeBucket(i int) bool {
	if u == nil || u.buckets[i] == nil {
		return false
	}
	b := u.buckets[i]
	b.open, b.stale = true, true
	u.open++
	u.stale++
	b.done.Store(0)
	b.next.Store(0) // from here on others may work on it
	return true
}

// work does pieces of a bucket until none is left to take.
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

// do does a piece. One that panics is done too, or the rank would wait for it without end; the rank takes the panic on.
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

// end returns when all pieces of a bucket are done.
func (u *updates) end(b *bucketUpdate) {
	u.work(b)
	for b.done.Load() != int64(len(b.pieces)) {
		goruntime.Gosched()
	}
}

// finishUpdates returns when a bucket's parameters are updated.
func (r *Rank) finishUpdate(b *bucketUpdate) {
	if b == nil || !b.open {
		return
	}
	r.updates.end(b)
	b.open = false
	r.updates.open--
	if f := r.updates.fault.Load(); f != nil {
		panic(*f)
	}
}

// clearBucket makes those of a bucket's gradients zero that are added to, not written first.
func (r *Rank) clearBucket(i int) {
	spec := &r.Stage.Buckets[i]
	lo := r.Stage.Arena.Grads.Offset + spec.Grads*r.Program.types().Grads.Size()
	hi := lo + r.gradElems(i)*r.Program.types().Grads.Size()
	for _, p := range r.exec.cleared {
		p = (part{max(p.lo, lo), min(p.hi, hi)})
		if p.lo < p.hi {
			r.zero(p.lo, p.hi-p.lo)
		}
	}
}

// gradElems is how many gradients of a bucket the rank's region of them has.
func (r *Rank) gradElems(i int) int {
	if r.Stage.Buckets[i].ShardedGrads {
		return r.buckets[i].hi - r.buckets[i].lo
	}
	return r.Stage.Buckets[i].Elems
}

// finishLayerUpdates settles the buckets that a layer reads.
func (r *Rank) finishLayerUpdates(l *layer) {
	if r.updates == nil || r.updates.open == 0 {
		return
	}
	for i := range l.refs {
		r.finishUpdate(r.updates.buckets[l.refs[i].bucket])
	}
}

// finishUpdates settles all buckets. The gradients stay as they are.
func (r *Rank) finishUpdates() {
	if r.updates == nil || r.updates.open == 0 {
		return
	}
	for _, b := range r.updates.order {
		r.finishUpdate(b)
	}
}

// readyGradients settles all buckets and makes their gradients ready for a backward pass.
func (r *Rank) readyGradients() {
	r.finishUpdates()
	if r.updates == nil || r.updates.stale == 0 {
		return
	}
	for _, b := range r.updates.order {
		if b.stale {
			b.stale = false
			r.clearBucket(b.bucket)
		}
	}
	r.updates.stale = 0
}

// enableOverlap prepares a rank that has several threads of this CPU to postpone updates.
func (r *Rank) enableOverlap(threads int) {
	if r.Device != nil || threads < 2 {
		return
	}
	if r.Program.Elem == F64 {
		r.updates = newUpdates[float64](r)
	} else {
		r.updates = newUpdates[float32](r)
	}
}

// finishUpdate settles all ranks of this process. Whoever reads their parameters or optimizer state between steps calls
// it.
func (c *crew) finishUpdates() error {
	for _, r := range c.mine {
		if r.updates != nil && r.updates.open > 0 {
			return c.do((*Rank).finishUpdates)
		}
	}
	return nil
}

// waitUpdates returns when no update is under way any more, also where a rank has failed.
func (c *crew) waitUpdates() {
	for _, r := range c.mine {
		if r.updates == nil {
			continue
		}
		for _, b := range r.updates.order {
			if b.open {
				r.updates.end(b)
			}
		}
	}
}

// beginStep has a helper begin with the updates that were postponed.
func (u *updates) begin(rank int) {
	if u != nil && u.open > 0 {
		cpu.Overlap(rank, &u.help)
	}
}
