package rank

import "slices"

// With ZeRO 1 and 2, each rank updates its part of the parameters at the end of a step. The all-gathers of the other
// parts begin with the next step, in the order in which its forward passes read the buckets, and overlap these passes:
// a layer waits only for the buckets that it reads. They are part of the next step, so that a device can replay it as
// a whole.

// paramGathers holds the buckets whose parameters are all-gathered after an update.
type paramGathers struct {
	order []int // in the order in which the forward passes read them
	due   bool  // other ranks have updated their parts since the last gather
	open  int   // gathers that the rank has started and not waited for
}

// newParamGathers finds the buckets of a stage.
func newParamGathers(r *Rank, chunks []*chunk) (g paramGathers) {
	add := func(i int) {
		b := &r.Stage.Buckets[i]
		if b.Shard >= 0 && !b.ShardedParams && !slices.Contains(g.order, i) {
			g.order = append(g.order, i)
		}
	}
	for _, c := range chunks {
		for _, l := range c.layers {
			for i := range l.refs {
				add(l.refs[i].bucket)
			}
		}
	}
	for i := range r.Stage.Buckets { // those that no layer reads
		add(i)
	}
	return g
}

// startGathers starts to gather all parameters. A device always does: its step must be the same whether or not
// something between two steps has gathered them.
func startGathers(r *Rank) {
	g := &r.exec.gathers
	if !g.due && r.Device == nil {
		return
	}
	for _, i := range g.order {
		StartGather(r, i)
	}
	g.due, g.open = false, len(g.order)
}

// waitLayerGathers waits for the parameters that a layer reads.
func waitLayerGathers(r *Rank, l *layer) {
	if r.exec.gathers.open == 0 {
		return
	}
	for i := range l.refs {
		waitOpenGather(r, l.refs[i].bucket)
	}
}

// waitGathers waits for all parameters.
func waitGathers(r *Rank) {
	if r.exec.gathers.open == 0 {
		return
	}
	for _, i := range r.exec.gathers.order {
		waitOpenGather(r, i)
	}
}

// waitOpenGather waits for a bucket's parameters if they are being gathered.
func waitOpenGather(r *Rank, bucket int) {
	if r.buckets[bucket].pending[gathering] {
		WaitGather(r, bucket)
		r.exec.gathers.open--
	}
}

// finishGathers gathers the parameters between two steps, if an update has made them outdated.
func finishGathers(r *Rank) {
	if r.exec.gathers.due {
		startGathers(r)
	}
	waitGathers(r)
}
