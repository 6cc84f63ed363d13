package runtime

// layer is one layer of a chunk.
type layer struct {
	segment, index int
	seg            *Segment
	run, k         int       // which of the chunk's runs, and of its layers
	refs           []layerAt // of seg.Refs
	fetch, scatter []bucketAt

	forward, backward func(*Rank, *Block)
	weights           func(*Rank, *Block) // what backward leaves to a pass of its own; nil: nothing
}

// visit is a layer in the order of a backward pass; again, to run its forward function once more.
type visit struct {
	*layer
	recompute bool
}

// layerAt is where a run of parameters lies: byte offsets in the arena or, of a bucket that is fetched or scattered, in
// the buffer whose turn it is.
type layerAt struct{ bucket, param, grad int }

// bucketAt is a bucket and where it begins in a buffer, in bytes.
type bucketAt struct{ bucket, at int }

// newLayers lists a chunk's layers with what they use.
func (r *Rank) newLayers(c *Chunk) []*layer {
	var out []*layer
	for i := range c.Runs {
		run := &c.Runs[i]
		for k := range run.Count {
			l := &layer{segment: run.Segment, index: run.From + k, seg: &r.Program.Segments[run.Segment], run: i, k: k}
			l.forward, l.backward, l.weights = l.seg.functions(run)
			r.locate(l)
			out = append(out, l)
		}
	}
	return out
}

// reversed is the order of a backward pass: the layers from the last on. Before a group whose saved values were not
// kept comes its forward pass again.
func reversed(c *Chunk, layers []*layer) []visit {
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

// nextVisitedLayer is likewise the layer of the visit that follows.
func nextVisitedLayer(visits []visit, i int, next *layer) *layer {
	if i+1 < len(visits) {
		return visits[i+1].layer
	}
	return next
}

// locate finds the runs of parameters that a layer refers to. Those of buckets that are gathered lie in the buffer one
// behind the other.
func (r *Rank) locate(l *layer) {
	types := r.Program.types()
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
			at.param += r.paramAt(i, b.Offset)
		}
		at.grad = (offset - b.Offset) * gradSize
		if b.ShardedGrads {
			l.scatter = append(l.scatter, bucketAt{i, scattered})
			at.grad += scattered
			scattered += (b.Elems*gradSize + 63) &^ 63
		} else {
			at.grad += r.gradAt(i, b.Offset)
		}
		l.refs = append(l.refs, at)
	}
}

// run is the bucket that has a layer's run of a class, and where it begins in the flat space, in elements.
func runOf(s *Stage, ref Ref, index int) (bucket, offset int) {
	for i := range s.Buckets {
		for _, p := range s.Buckets[i].Pieces {
			if s.Buckets[i].Class == ref.Class && p.Segment == ref.Segment && p.Layer == index {
				return i, p.Offset
			}
		}
	}
	panic("runtime: a layer's parameters lie in no bucket")
}

// doubleBuffer are two buffers that blocks use in turn.
type doubleBuffer struct {
	at, size int
	current  int       // of gathered parameters the buffer in use, of gradients the next one
	users    [2]*layer // whose buckets are, or come to be, in each buffer
}

func newTurns(at, size int) doubleBuffer { return doubleBuffer{at: at, size: size} }

// buffer is where a buffer begins.
func (t *doubleBuffer) buffer(i int) int { return t.at + i*t.size }

// invalidate makes what lies in the buffers stale.
func (t *doubleBuffer) invalidate() { t.users = [2]*layer{} }

// applySettings waits for the jobs of both buffers, the older first.
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
				r.wait(b.bucket, kind)
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

// waitFetched returns where a layer's gathered parameters begin, when they are there. Those of the layer that follows
// begin to come into the other buffer, which the layer before this one has left. What is there already, since the layer
// before was this one, is not gathered again.
func waitFetched[F Float](r *Rank, l, follows *layer) int {
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
		r.taint(t.buffer(1-t.current), t.size)
		for _, b := range l.fetch {
			r.wait(b.bucket, fetching)
		}
	}
	if follows != nil && follows != l && len(follows.fetch) > 0 {
		startFetch[F](r, follows, 1-t.current)
	}
	return t.buffer(t.current)
}

// startFetch begins to gather a layer's parameters into a buffer.
func startFetch[F Float](r *Rank, l *layer, into int) {
	t := &r.exec.fetch
	t.users[into] = l
	for _, b := range l.fetch {
		r.buckets[b.bucket].fetchAt = t.buffer(into) + b.at
		r.start(b.bucket, fetching)
	}
}

// beginScatter clears a buffer for a layer's gradients, once what was scattered from it has gone.
func beginScatter[F Float](r *Rank, l *layer) {
	t := &r.exec.scatter
	if len(l.scatter) == 0 {
		return
	}
	t.waitBuffer(r, t.current, scattering)
	at := t.buffer(t.current)
	r.zero(at, t.size)
	b := &r.exec.block
	for i := range l.refs {
		if r.Stage.Buckets[l.refs[i].bucket].ShardedGrads {
			b.Grads[i] += at
		}
	}
}

// endScatter begins to scatter a layer's gradients, and gives the buffer's turn to the other.
func endScatter[F Float](r *Rank, l *layer) {
	t := &r.exec.scatter
	if len(l.scatter) == 0 {
		return
	}
	for _, b := range l.scatter {
		k := &r.buckets[b.bucket]
		if k.pending[scattering] { // a tied parameter's, of the block before
			r.wait(b.bucket, scattering)
		}
		k.scatterAt = t.buffer(t.current) + b.at
		r.start(b.bucket, scattering)
	}
	t.users[t.current] = l
	t.current = 1 - t.current
}
