package search

import (
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
)

// The bounds come from one profile for each (tp, sp), of micro-batch 1, whose flops, bytes and slots are lines over the
// micro-batch. Partitioning does not depend on the micro-batch: the delayed partials that it compares in bytes
// either all have the batch dim or end in accumulators. So the lines are exact up to alignment, and the floors
// leave out only what is positive: exposed bucket communication, alignment, and temporaries.

// baseKey is the profile that bounds a plan.
func baseKey(p ir.Plan) profileKey {
	k := keyOf(p)
	k.micro = 1
	return k
}

// base is a profile of micro-batch 1 with its slopes.
type base struct {
	*profile
	saved  map[*ir.Segment]int // bytes that grow with the micro-batch, of a layer of each variant of a segment
	stream int                 // bytes of a block's input
	elems  []int               // parameters of a layer of each segment of the model, on one rank
	tied   int                 // those of the last segment that the first one owns
}

func (s *searcher) base(plan ir.Plan) *base {
	k := baseKey(plan)
	if b := s.bases[k]; b != nil {
		return b
	}
	b := &base{profile: s.profile(k), saved: map[*ir.Segment]int{}}
	if s.slopes(b); !s.problem.engine().Own {
		b.savedSlopes()
	}
	for i, seg := range b.prog.Model.Segments {
		b.elems = append(b.elems, 0)
		for _, w := range seg.Forward.Weights() {
			n := w.Type.LocalElems(b.prog.Mesh)
			if w.Param.Tied == "" {
				b.elems[i] += n
			} else {
				b.tied += n
			}
		}
	}
	s.bases[k] = b
	return b
}

// slopes measures all lines at micro-batch 2 and puts the program back.
func (s *searcher) slopes(b *base) {
	m := b.prog.Mesh
	dp := b.prog.Plan.DP
	resize(b.prog, 2*dp)
	for i, seg := range b.prog.Model.Variants() {
		sp := &b.segs[i]
		for _, f := range []struct {
			at *funcProfile
			f  *ir.Func
		}{{&sp.forward, seg.Forward}, {&sp.backward, seg.Backward}, {&sp.weights, seg.Weights}} {
			two := scan(f.f, m)
			if !s.problem.engine().Own { // which come with their slopes
				continue
			}
			for j := range f.at.ops {
				f.at.ops[j].slope = f.at.ops[j].at.Slope(&two.ops[j].at)
			}
			for j := range f.at.comms {
				f.at.comms[j].slope = float64(two.comms[j].what.Bytes - f.at.comms[j].what.Bytes)
			}
		}
	}
	resize(b.prog, dp)
	for _, seg := range b.prog.Model.Variants() {
		if x := seg.Forward.Value(passes.StreamName); x != nil {
			b.stream = x.Type.LocalBytes(m)
		}
		for _, v := range append(slotValues(seg.Forward, seg.Forward.Inputs), slotValues(seg.Backward, nil)...) {
			if v.Type.Has(ir.Batch) {
				b.saved[seg] += v.Type.LocalBytes(m)
			}
		}
	}
}

// slotValues are the values that a function, or what it takes, adds to the layer's slot.
func slotValues(f *ir.Func, inputs []*ir.Value) []*ir.Value {
	var vs []*ir.Value
	add := func(all []*ir.Value) {
		for _, v := range all {
			if v.Place.Region == ir.PlaceSlot {
				vs = append(vs, v)
			}
		}
	}
	add(inputs)
	for _, n := range f.Nodes {
		if !n.Op.View() {
			add(n.Outs)
		}
	}
	return vs
}

// resize sets the batch dim of all values.
func resize(p *ir.Program, size int) {
	for _, s := range p.Model.Variants() {
		for _, f := range s.Funcs() {
			passes.Resize(f, ir.Batch, size)
			for _, n := range f.Nodes {
				passes.Resize(&ir.Func{Nodes: n.Body}, ir.Batch, size)
			}
		}
	}
}

// stretch is some layers of a segment of the model in a chunk.
type stretch struct{ segment, count int }

// cut is the layers of a family's chunks.
func (s *searcher) cut(f *family) [][]stretch {
	if f.layers != nil {
		return f.layers
	}
	segs, split := s.problem.Model.Segments, f.counts
	out := make([][]stretch, len(split))
	f.layers = out
	at, used := 0, 0
	take := func(c, n int) {
		for n > 0 {
			k := min(n, segs[at].Count-used)
			out[c] = append(out[c], stretch{at, k})
			n -= k
			if used += k; used == segs[at].Count {
				at, used = at+1, 0
			}
		}
	}
	for c, n := range split {
		if c == 0 && s.dims.Embed {
			take(c, 1)
		}
		take(c, n)
		if c == len(split)-1 && s.dims.Head {
			take(c, 1)
		}
	}
	return out
}

// ends tells whether a segment is the embedding or the head.
func (s *searcher) ends(segment int) bool {
	return segment == 0 && s.dims.Embed || segment == len(s.problem.Model.Segments)-1 && s.dims.Head
}

// flightKey is what the micro-batches in flight depend on.
type flightKey struct {
	schedule       string
	pp, vpp, micro int
}

// flights are the activation buffers of each chunk, in the model's order. Schedules are periodic: after the warm-up, which
// is at most 3·pp micro-batches of each chunk, a turn of pp of them repeats, so that 4·pp show all there is.
func (s *searcher) flights(p *ir.Plan) []int {
	k := flightKey{p.Schedule, p.PP, p.VPP, p.MicroBatches}
	if p.Schedule != "gpipe" {
		k.micro = min(k.micro, 4*p.PP)
	}
	if f := s.inFlight[k]; f != nil {
		return f
	}
	short := *p
	short.MicroBatches = k.micro
	out := make([]int, p.PP*p.VPP)
	next := make([]int, p.PP)
	each := make([][]int, p.PP)
	for st := range each {
		each[st] = s.problem.engine().InFlight(&short, st, passes.InFlight(short, st))
	}
	for c := range out {
		st := p.StageOf(c)
		out[c] = each[st][next[st]]
		next[st]++
	}
	s.inFlight[k] = out
	return out
}

// stateFloor is at most what each stage of a family needs for parameters, gradients and the optimizer, and for what ZeRO
// moves, and for what does not depend on what is kept: streams and the batch.
func (s *searcher) stateFloor(f *family, of sharding) []int {
	p, b := &f.plan, s.base(f.plan)
	prec := p.Precision
	parts := f.stageElems(s, b)
	fixed := batchRegion(*p, b.profile) + 2*b.stream*p.MicroBatch
	if p.PP > 1 {
		fixed += 2 * b.stream * p.MicroBatch
	}
	params, grads, group := 1, 1, of.group
	if of.zero >= 2 {
		grads = group
	}
	if of.zero >= 3 {
		params = group
	}
	out := make([]int, p.PP)
	for st := range out {
		n, largest := parts[st].elems, parts[st].largest
		out[st] = fixed + n/params*prec.Params.Size() + n/grads*prec.Grads.Size() + n/group*(s.problem.Recipe.Moments()*prec.Moments.Size()+prec.MasterSize())
		if of.zero >= 2 {
			out[st] += 2 * largest * prec.Grads.Size()
		}
		if of.zero >= 3 {
			out[st] += 2 * largest * prec.Params.Size()
		}
	}
	if p.PP > 1 && p.VPP == 1 {
		out[0] -= 2 * b.stream * p.MicroBatch // which sends no gradients
	}
	return out
}

// stageElems is what a stage holds: parameters of one rank, and those of its largest layer.
type stageElems struct{ elems, largest int }

func (f *family) stageElems(s *searcher, b *base) []stageElems {
	if f.holds != nil {
		return f.holds
	}
	out := make([]stageElems, f.plan.PP)
	f.holds = out
	for c, runs := range s.cut(f) {
		e := &out[f.plan.StageOf(c)]
		for _, r := range runs {
			e.elems += r.count * b.elems[r.segment]
			e.largest = max(e.largest, b.elems[r.segment])
		}
	}
	if last := f.plan.StageOf(len(f.counts) - 1); last != 0 {
		out[last].elems += b.tied
	}
	return out
}

// keptFloor is at most what each stage of a family keeps for backward passes, where blocks are recomputed so. How a
// backward pass is split depends on whether gradients are scattered after each micro-batch.
func (s *searcher) keptFloor(f *family, a again, n int) []int {
	out := s.keptOf(f, a, n, 0)
	if f.plan.Splits() && f.plan.DP > 1 {
		for st, kept := range s.keptOf(f, a, n, 2) {
			out[st] = min(out[st], kept)
		}
	}
	return out
}

func (s *searcher) keptOf(f *family, a again, n, zero int) []int {
	plan := f.plan
	a.set(&plan, n)
	plan.Zero = zero
	b := s.base(plan)
	micro := plan.MicroBatch
	buffers := s.flights(&plan)
	out, spare := make([]int, plan.PP), make([]int, plan.PP)
	for c, runs := range s.cut(f) {
		st, size := plan.StageOf(c), 0
		left := plan.RecomputeLayers
		for _, r := range runs {
			seg := b.prog.Model.Segments[r.segment]
			input := r.segment > 0 || !s.dims.Embed
			first := 0
			if !s.ends(r.segment) {
				first = min(left, r.count)
				left -= first
			}
			for _, part := range []ir.Run{{Count: first, Remat: plan.RecomputeEvery == 1, Split: a.split, Every: every(&plan)}, {Count: r.count - first}} {
				if part.Count == 0 {
					continue
				}
				saved := b.saved[seg]
				if part.Remat {
					saved = b.saved[seg.Remat]
				}
				spare[st] = max(spare[st], passes.LayoutRun(&part, saved, b.stream, input))
				size += part.Kept() * part.Stride
			}
		}
		if c < len(f.counts)-1 {
			size += b.stream
		}
		out[st] += buffers[c] * size * micro
	}
	for st := range out {
		out[st] += spare[st] * micro
	}
	return out
}

// groupFloor is keptFloor for any choice of what is recomputed: of all blocks of a chunk one input is kept.
func (s *searcher) groupFloor(f *family) []int {
	plan := &f.plan
	b, buffers := s.base(*plan), s.flights(plan)
	out := make([]int, plan.PP)
	for c, runs := range s.cut(f) {
		size := 0
		for _, r := range runs {
			switch {
			case !s.ends(r.segment):
				size += b.stream
			case r.segment == 0:
				size += b.saved[b.prog.Model.Segments[0]]
			default:
				size += b.stream + b.saved[b.prog.Model.Segments[r.segment]]
			}
		}
		out[plan.StageOf(c)] += buffers[c] * size * plan.MicroBatch
	}
	return out
}

func every(p *ir.Plan) int {
	if p.RecomputeEvery > 1 {
		return p.RecomputeEvery
	}
	return 0
}

// fullest is the largest sum of two floors.
func fullest(a, b []int) int {
	most := 0
	for i := range a {
		most = max(most, a[i]+b[i])
	}
	return most
}

// floorTime is at most what the passes of a family take with some state sharded and blocks recomputed, in one order of the
// axes; with the step's overhead, and the update of the fullest stage.
func (s *searcher) floorTime(f *family, of sharding, a again, n int, order string) costmodel.Seconds {
	plan := f.plan
	if a.kind != anyKind {
		a.set(&plan, n)
	}
	plan.Zero, plan.ZeroGroup, plan.AxisOrder = of.zero, of.group, order
	b := s.base(plan)
	costs := s.floorCosts(&plan, a)
	fl := s.passFloor(&plan)
	var move mover
	if !of.still {
		move = s.moveFloor(&plan, b)
	}
	overlap := s.overlaps(of.zero)
	for c, runs := range s.cut(f) {
		var w chunkWork
		left, first := plan.RecomputeLayers, costmodel.Seconds(0)
		for _, r := range runs {
			again := 0
			if !s.ends(r.segment) {
				again = min(left, r.count)
				left -= again
			}
			w.add(&costs[r.segment], &move, b.elems[r.segment], r.count, again, plan.RecomputeEvery > 1)
			first = max(first, move.fetch(b.elems[r.segment]))
		}
		if plan.VPP == 1 { // the first layer's parameters are there
			w.forward.moved -= first
			w.backward.moved -= first
		}
		fl.Forward[c] = w.forward.bound(overlap)
		if fl.Weights != nil { // either part may be the one that moves gradients
			fl.Backward[c], fl.Weights[c] = w.backward.own, w.weights
			continue
		}
		fl.Backward[c] = w.backward.bound(overlap)
	}
	return (fl.Seconds() + s.onceFloor(f, of, b)) * (1 - tie)
}

// anyKind stands for all choices of what is recomputed.
const anyKind = "any"

// floorCosts are what layers cost at least, whether they are recomputed or not. In one piece a backward pass that makes
// forward values again takes no less than one that does not; in two it may, since their second part gathers once more
// what the first has gathered, and recomputed layers have no second part.
func (s *searcher) floorCosts(plan *ir.Plan, a again) []layerCost {
	k := baseKey(*plan)
	plain := s.costs(plan, k, s.base(*plan).profile, plan.MicroBatch)
	if !plan.Splits() || a.kind == "none" || a.groups {
		return plain
	}
	key := costKey{k, plan.MicroBatch, stride(plan, "tp")}
	key.profile.again = "perhaps " + a.kind
	if c := s.layerCosts[key]; c != nil {
		return c
	}
	out := slices.Clone(plain)
	kinds := []string{a.kind}
	if a.kind == anyKind {
		kinds = []string{"selective", "full"}
	}
	for _, kind := range kinds {
		of := *plan
		of.Recompute, of.RecomputeLayers, of.RecomputeSplit = kind, 1, a.split
		costs := s.costs(&of, baseKey(of), s.base(of).profile, plan.MicroBatch)
		for i := range out {
			if costs[i].rematForward.Sum() > 0 {
				out[i].perhaps(&costs[i])
			}
		}
	}
	s.layerCosts[key] = out
	return out
}

// perhaps makes the costs no more than those of the recomputed layer: each pass, and all together.
func (c *layerCost) perhaps(of *layerCost) {
	f, b := min(c.forward.Sum(), of.rematForward.Sum()), min(c.backward.Sum(), of.rematBackward.Sum())
	all := min(c.sum(), of.rematForward.Sum()+of.rematBackward.Sum())
	c.forward, c.backward, c.weights = costmodel.Cost{Compute: f}, costmodel.Cost{Compute: b}, costmodel.Cost{Compute: max(0, all-f-b)}
}

// work is a pass's own seconds and what its stream moves.
type work struct{ own, moved costmodel.Seconds }

func (w work) bound(overlap bool) costmodel.Seconds {
	if overlap {
		return max(w.own, w.moved)
	}
	return w.own + w.moved
}

// chunkWork is a chunk's passes.
type chunkWork struct {
	forward, backward work
	weights           costmodel.Seconds
}

// add adds layers, the first again of which are recomputed, in groups or by themselves.
func (w *chunkWork) add(c *layerCost, m *mover, elems, count, again int, groups bool) {
	n, k := costmodel.Seconds(count), costmodel.Seconds(again)
	f, b := c.forward.Sum(), c.backward.Sum()
	w.forward.own += (n - k) * f
	w.backward.own += (n - k) * b
	w.weights += (n - k) * c.weights.Sum()
	if groups {
		w.forward.own += k * f
		w.backward.own += k * (f + b + c.weights.Sum())
	} else if again > 0 {
		w.forward.own += k * c.rematForward.Sum()
		w.backward.own += k * c.rematBackward.Sum()
	}
	w.forward.moved += n * m.fetch(elems)
	w.backward.moved += n * (m.fetch(elems) + m.scatter(elems))
}

// mover prices what ZeRO moves for a layer, at least: as if it were one bucket without padding.
type mover struct {
	cluster             *costmodel.Cluster
	place               costmodel.Placement
	fetches, scatters   bool
	paramSize, gradSize int
}

func (m *mover) fetch(elems int) costmodel.Seconds {
	if !m.fetches || elems == 0 {
		return 0
	}
	return m.cluster.CollectiveTime(ir.OpAllGather, m.place, costmodel.Bytes(elems*m.paramSize))
}

func (m *mover) scatter(elems int) costmodel.Seconds {
	if !m.scatters || elems == 0 {
		return 0
	}
	return m.cluster.CollectiveTime(ir.OpReduceScatter, m.place, costmodel.Bytes(elems*m.gradSize))
}

func (s *searcher) moveFloor(plan *ir.Plan, b *base) mover {
	m := mover{cluster: s.problem.Cluster, fetches: plan.Zero >= 3, scatters: plan.Zero >= 2, paramSize: plan.Precision.Params.Size(), gradSize: plan.Precision.Reduce.Size()}
	if m.scatters {
		m.place = s.shardPlace(plan)
	}
	return m
}

// shardPlace is where the ranks are that share a copy of the state.
func (s *searcher) shardPlace(plan *ir.Plan) costmodel.Placement {
	at := stride(plan, "dp")
	k := [2]int{at, plan.ZeroGroup}
	if p, ok := s.places[k]; ok {
		return p
	}
	m := ir.Mesh{Atoms: []ir.Atom{{Name: "before", Size: at}, {Name: "inner", Size: plan.ZeroGroup}}}
	p := s.problem.Cluster.Place(m, []ir.Axis{"inner"})
	s.places[k] = p
	return p
}

// passFloor is a bound without its passes.
func (s *searcher) passFloor(plan *ir.Plan) *costmodel.Floor {
	n := plan.PP * plan.VPP
	f := &costmodel.Floor{Micro: plan.MicroBatches, Forward: make([]costmodel.Seconds, n), Backward: make([]costmodel.Seconds, n),
		StageOf: make([]int, n), Stages: plan.PP}
	if plan.Splits() {
		f.Weights = make([]costmodel.Seconds, n)
	}
	for c := range n {
		f.StageOf[c] = plan.StageOf(c)
	}
	return f
}

// onceFloor is at most what a step does once.
func (s *searcher) onceFloor(f *family, of sharding, b *base) costmodel.Seconds {
	most := 0
	for _, e := range f.stageElems(s, b) {
		most = max(most, e.elems)
	}
	return s.device.StepOverhead() + s.device.OptimizerTime(f.plan.Precision, s.problem.Recipe, most/of.group)
}

// familyFloor is at most what any plan of a family takes that recomputes at least so many blocks in one way: as if nothing
// were moved, wherever tensor parallel ranks are.
func (s *searcher) familyFloor(f *family, a again, n int) costmodel.Seconds {
	best := costmodel.Seconds(-1)
	var seen []int
	for _, order := range axisOrders(&f.plan, s.problem.Cluster.Nodes) {
		plan := f.plan
		plan.AxisOrder = order
		at := stride(&plan, "tp")
		if slices.Contains(seen, at) {
			continue
		}
		seen = append(seen, at)
		for _, zero := range []int{0, 2} {
			if zero > 0 && !(f.plan.Splits() && f.plan.DP > 1) {
				continue
			}
			if t := s.floorTime(f, sharding{zero, f.plan.DP, true}, a, n, order); best < 0 || t < best {
				best = t
			}
		}
	}
	return best
}
