package rank

// taint fills bytes of the arena with ones, which are NaN in every floating-point type.
func taint(r *Rank, at, n int) {
	if !r.poison {
		return
	}
	free := r.Arena[at : at+n]
	for i := range free {
		free[i] = 0xff
	}
}

// taintWork fills the workspace, except the gradients of the residual stream at its end.
func taintWork(r *Rank) {
	w := r.Stage.Arena.Workspace
	taint(r, w.Offset, w.Size-2*r.Program.Stream)
}

// taintOthers fills the parts of a bucket's parameters that other ranks have updated.
func taintOthers(r *Rank, i int) {
	b, spec := &r.buckets[i], &r.Stage.Buckets[i]
	size := r.Program.TensorTypes().Params.Size()
	taint(r, r.ParamAt(i, spec.Offset), (b.Lo-spec.Offset)*size)
	taint(r, r.ParamAt(i, b.Hi), (spec.Offset+spec.Elems-b.Hi)*size)
}
