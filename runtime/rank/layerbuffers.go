package rank

import (
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/tensors"
)

// layer is one layer of a chunk.
type layer struct {
	segment, index int
	seg            *Segment
	run, k         int       // index of the chunk's run, and of the layer in it
	refs           []layerAt // of seg.Refs
	fetch, scatter []bucketAt

	forward, backward func(*Rank, *Block)
	weights           func(*Rank, *Block) // second part of a split backward pass; nil: none
}

// visit is a step of a backward pass: a layer's backward function, or its forward function if it is recomputed.
type visit struct {
	*layer
	recompute bool
}

// layerAt is the position of a run of parameters: byte offsets in the arena, or in the current buffer for a bucket that
// is fetched or scattered.
type layerAt struct{ bucket, param, grad int }

// bucketAt is a bucket and its byte offset in a buffer.
type bucketAt struct{ bucket, at int }

// newLayers returns a chunk's layers with what they use.
func newLayers(r *Rank, c *program.Chunk) []*layer {
	var out []*layer
	for i := range c.Runs {
		run := &c.Runs[i]
		for k := range run.Count {
			l := &layer{segment: run.Segment, index: run.From + k, seg: &r.Program.Segments[run.Segment], run: i, k: k}
			l.forward, l.backward, l.weights = l.seg.functions(run)
			locateParams(r, l)
			out = append(out, l)
		}
	}
	return out
}

// reversed returns the order of a backward pass: the layers from last to first. A group whose values were not saved is
// recomputed before it.
func reversed(c *program.Chunk, layers []*layer) []visit {
	var out []visit
	for i := len(layers) - 1; i >= 0; i-- {
		l := layers[i]
		run := &c.Runs[l.run]
		if run.Every > 0 && (l.k == run.Count-1 || (l.k+1)%run.Every == 0) {
			first, _ := groupOf(run, l.k)
			for _, g := range layers[i-(l.k-first) : i+1] {
				out = append(out, visit{g, true})
			}
		}
		out = append(out, visit{l, false})
	}
	return out
}

// nextLayer is the layer that follows layer i, next behind the last.
func nextLayer(layers []*layer, i int, next *layer) *layer {
	if i+1 < len(layers) {
		return layers[i+1]
	}
	return next
}

// nextVisitedLayer returns the layer of the visit after visit i; next after the last.
func nextVisitedLayer(visits []visit, i int, next *layer) *layer {
	if i+1 < len(visits) {
		return visits[i+1].layer
	}
	return next
}

// locateParams finds the parameter runs that a layer uses. Those of gathered buckets are consecutive in the buffer.
func locateParams(r *Rank, l *layer) {
	types := r.Program.TensorTypes()
	paramSize, gradSize := types.Params.Size(), types.Grads.Size()
	gathered, scattered := 0, 0
	for _, ref := range l.seg.Refs {
		index := 0
		if ref.Segment == l.segment {
			index = l.index
		}
		i, offset := runOf(r.Stage, ref, index)
		b := &r.Stage.Buckets[i]
		at := layerAt{bucket: i}
		at.param = (offset - b.Offset) * paramSize
		if b.ShardedParams {
			l.fetch = append(l.fetch, bucketAt{i, gathered})
			at.param += gathered
			gathered += (b.Elems*paramSize + 63) &^ 63
		} else {
			at.param += r.ParamAt(i, b.Offset)
		}
		at.grad = (offset - b.Offset) * gradSize
		if b.ShardedGrads {
			l.scatter = append(l.scatter, bucketAt{i, scattered})
			at.grad += scattered
			scattered += (b.Elems*gradSize + 63) &^ 63
		} else {
			at.grad += r.GradAt(i, b.Offset)
		}
		l.refs = append(l.refs, at)
	}
}

// runOf returns the bucket that has a layer's run of a class, and the run's start in the flat space, in elements.
func runOf(s *program.Stage, ref program.Ref, index int) (bucket, offset int) {
	for i := range s.Buckets {
		for _, p := range s.Buckets[i].Pieces {
			if s.Buckets[i].Class == ref.Class && p.Segment == ref.Segment && p.Layer == index {
				return i, p.Offset
			}
		}
	}
	panic("runtime: a layer's parameters lie in no bucket")
}

// doubleBuffer is two buffers that blocks use alternately.
type doubleBuffer struct {
	at, size int
	current  int       // for gathered parameters the buffer in use, for gradients the next one
	users    [2]*layer // layer whose buckets are in each buffer, or on their way to it
}

func newTurns(at, size int) doubleBuffer { return doubleBuffer{at: at, size: size} }

// buffer returns the offset of a buffer.
func (t *doubleBuffer) buffer(i int) int { return t.at + i*t.size }

// invalidate marks the content of both buffers as invalid.
func (t *doubleBuffer) invalidate() { t.users = [2]*layer{} }

// waitBoth waits for the jobs of both buffers, the older first.
func (t *doubleBuffer) waitBoth(r *Rank, kind int) {
	for i := range 2 {
		t.waitBuffer(r, (t.current+i)%2, kind)
	}
}

// waitBuffer waits for the jobs of a buffer.
func (t *doubleBuffer) waitBuffer(r *Rank, i, kind int) {
	if l := t.users[i]; l != nil {
		for _, b := range l.jobs(kind) {
			if r.buckets[b.bucket].pending[kind] {
				waitJob(r, b.bucket, kind)
			}
		}
		t.users[i] = nil
	}
}

func (l *layer) jobs(kind int) []bucketAt {
	if kind == fetching {
		return l.fetch
	}
	return l.scatter
}

// waitFetched waits for a layer's gathered parameters and returns their offset. It also starts to gather those of the
// layer that follows into the other buffer, which the previous layer no longer needs. Parameters that are already in
// the buffer are not gathered again.
func waitFetched[F tensors.Float](r *Rank, l, follows *layer) int {
	t := &r.exec.fetch
	if len(l.fetch) == 0 {
		return 0
	}
	if t.users[t.current] != l {
		t.current = 1 - t.current
		if t.users[t.current] != l {
			startFetch[F](r, l, t.current)
		}
		t.users[1-t.current] = nil
		taint(r, t.buffer(1-t.current), t.size)
		for _, b := range l.fetch {
			waitJob(r, b.bucket, fetching)
		}
	}
	if follows != nil && follows != l && len(follows.fetch) > 0 {
		startFetch[F](r, follows, 1-t.current)
	}
	return t.buffer(t.current)
}

// startFetch starts to gather a layer's parameters into a buffer.
func startFetch[F tensors.Float](r *Rank, l *layer, into int) {
	t := &r.exec.fetch
	t.users[into] = l
	for _, b := range l.fetch {
		r.buckets[b.bucket].fetchAt = t.buffer(into) + b.at
		startJob(r, b.bucket, fetching)
	}
}

// beginScatter clears a buffer for a layer's gradients, after its previous content has been scattered.
func beginScatter[F tensors.Float](r *Rank, l *layer) {
	t := &r.exec.scatter
	if len(l.scatter) == 0 {
		return
	}
	t.waitBuffer(r, t.current, scattering)
	at := t.buffer(t.current)
	zeroBytes(r, at, t.size)
	b := &r.exec.block
	for i := range l.refs {
		if r.Stage.Buckets[l.refs[i].bucket].ShardedGrads {
			b.Grads[i] += at
		}
	}
}

// endScatter starts to scatter a layer's gradients and switches to the other buffer.
func endScatter[F tensors.Float](r *Rank, l *layer) {
	t := &r.exec.scatter
	if len(l.scatter) == 0 {
		return
	}
	for _, b := range l.scatter {
		k := &r.buckets[b.bucket]
		if k.pending[scattering] { // the previous block's, for a tied parameter
			waitJob(r, b.bucket, scattering)
		}
		k.scatterAt = t.buffer(t.current) + b.at
		startJob(r, b.bucket, scattering)
	}
	t.users[t.current] = l
	t.current = 1 - t.current
}
