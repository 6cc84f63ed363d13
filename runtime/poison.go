package runtime

// Poison fills memory whose content nobody may use with NaN, at every point where it falls free: activations after the
// backward pass, gradients before a step, the workspace before each block, gathered parameters that a block has left,
// parts of parameters that are about to be gathered. A program that reads any of it then trains to NaN. For tests and
// diagnosis: it costs a pass over that memory.
func Poison() Option { return func(o *options) { o.poison = true } }

// taint fills bytes of the arena with ones, which are NaN in every element type.
func (r *Rank) taint(at, n int) {
	if !r.poison {
		return
	}
	free := r.Arena[at : at+n]
	for i := range free {
		free[i] = 0xff
	}
}

// taintWork fills the workspace but for the gradients of the stream at its end.
func (r *Rank) taintWork() {
	w := r.Stage.Arena.Workspace
	r.taint(w.Offset, w.Size-2*r.Program.Stream)
}

// taintOthers fills the parts of a bucket's parameters that other ranks have updated.
func (r *Rank) taintOthers(i int) {
	b, spec := &r.buckets[i], &r.Stage.Buckets[i]
	size := r.Program.types().Params.Size()
	r.taint(r.paramAt(i, spec.Offset), (b.lo-spec.Offset)*size)
	r.taint(r.paramAt(i, b.hi), (spec.Offset+spec.Elems-b.hi)*size)
}
