package search

import (
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// order is an order of a plan's axes, with how many ranks neighbours on each are apart.
type order struct {
	name       string
	index      int // among those of the axes
	tp, dp, pp int
	cp         int // likewise, 1 where the order has none
}

// ordersOf are those of a family that pins allow.
func (f *family) ordersOf() []order {
	if f.orders == nil {
		for _, name := range f.names {
			f.orders = append(f.orders, orderOf(f.plan, name))
		}
	}
	return f.orders
}

// orderOf is an order by its name.
func orderOf(plan ir.Plan, name string) order {
	plan.AxisOrder = name
	return order{name: name, index: orderIndex(name), tp: stride(&plan, "tp"), dp: stride(&plan, "dp"), pp: stride(&plan, "pp"), cp: stride(&plan, "cp")}
}

// orders are how many there are: of tp, dp and pp, and where cp is among them, which comes before dp.
const orders = 32

// orderIndex tells orders apart by which of dp and pp come before tp, and which of them before the other; and by which of
// tp and pp come before cp.
func orderIndex(name string) (n int) {
	for i, pair := range [5][2]string{{"dp", "tp"}, {"pp", "tp"}, {"pp", "dp"}, {"tp", "cp"}, {"pp", "cp"}} {
		if at := strings.Index(name, pair[0]); at >= 0 && at < strings.Index(name, pair[1]) {
			n |= 1 << i
		}
	}
	return n
}

// costsOf are those of layers.
func (s *searcher) costsOf(f *family, b *blocks, o *order) []layerCost {
	if f.costs == nil {
		f.costs = make([][]familyCosts, orders)
	}
	at := &f.costs[o.index]
	for i := range *at {
		if c := &(*at)[i]; c.blocks == b && c.perhaps == "" {
			return c.costs
		}
	}
	c := s.newCosts(f, b, o)
	*at = append(*at, familyCosts{blocks: b, costs: c})
	return c
}

// familyCosts are the costs of a family's layers where it recomputes in one way.
type familyCosts struct {
	blocks  *blocks
	perhaps string // at most: as if some of them may be recomputed in this way
	costs   []layerCost
}

// anyKind stands for all choices of what is recomputed.
const anyKind = "any"

// floorCosts are what layers cost at least, whether they are recomputed or not. In one piece a backward pass that makes
// forward values again takes no less than one that does not; in two it may, since their second part gathers once more
// what the first has gathered, and recomputed layers have no second part.
func (s *searcher) floorCosts(f *family, a *again, each bool, o *order) []layerCost {
	b := s.blocksOf(f, a, each)
	plain := s.costsOf(f, b, o)
	if !f.splits || a.kind == "none" || a.groups {
		return plain
	}
	for _, c := range f.costs[o.index] {
		if c.blocks == b && c.perhaps == a.kind {
			return c.costs
		}
	}
	out := slices.Clone(plain)
	kinds := []string{a.kind}
	if a.kind == anyKind {
		kinds = []string{"selective", "full"}
	}
	for _, kind := range kinds {
		costs := s.costsOf(f, s.blocksOf(f, &again{kind: kind, split: a.split, least: 1, most: 1}, each), o)
		for i := range out {
			if costs[i].sums.rematForward > 0 {
				out[i].sums.perhaps(&costs[i].sums)
			}
		}
	}
	f.costs[o.index] = append(f.costs[o.index], familyCosts{b, a.kind, out})
	return out
}

// perhaps makes the costs no more than those of the recomputed layer: each pass, and all together.
func (c *costSums) perhaps(of *costSums) {
	all := min(c.forward+c.backward+c.weights, of.rematForward+of.rematBackward)
	c.forward, c.backward = min(c.forward, of.rematForward), min(c.backward, of.rematBackward)
	c.weights = max(0, all-c.forward-c.backward)
}

func (s *searcher) newCosts(f *family, b *blocks, o *order) []layerCost {
	k := blockCost{b, [2]int{o.tp, o.cp}}
	if c := s.blockCosts[k]; c != nil {
		return c
	}
	plan := f.plan
	plan.AxisOrder = o.name
	c := s.costs(&plan, b.base.key, b.base.profile, b.micro)
	s.blockCosts[k] = c
	return c
}

// blockCost is what the costs of layers are found by: where tensor and context parallel ranks are is the strides of tp and
// cp.
type blockCost struct {
	blocks  *blocks
	strides [2]int
}

// work is a pass's own seconds and what its stream moves.
type work struct{ own, moved costmodel.Seconds }

// bound is what a pass takes at least; slows is by how much compute is slower beside what moves. It grows with both.
func (w work) bound(overlap bool, slows costmodel.Seconds) costmodel.Seconds {
	if overlap {
		return max(w.own, w.moved) + slows*min(w.own, w.moved)
	}
	return w.own + w.moved
}

// kindFloor is at most what passes over a kind of chunk take.
type kindFloor struct{ forward, backward, weights costmodel.Seconds }

// kindFloor of chunks the first layers of which are recomputed. What moves is nil where nothing does.
func (c *chunkKind) floor(costs []layerCost, move []moved, layers, every int, f *family, ends func(int) bool, overlap bool, slows costmodel.Seconds) (out kindFloor) {
	var forward, backward work
	var first costmodel.Seconds
	for i := range c.runs {
		r := &c.runs[i]
		l := &costs[r.segment]
		n, k := costmodel.Seconds(r.count), costmodel.Seconds(0)
		if layers > 0 && !ends(r.segment) {
			again := min(layers, r.count)
			layers -= again
			k = costmodel.Seconds(again)
		}
		forward.own += (n - k) * l.sums.forward
		backward.own += (n - k) * l.sums.backward
		out.weights += (n - k) * l.sums.weights
		if every > 1 {
			forward.own += k * l.sums.forward
			backward.own += k * (l.sums.forward + l.sums.backward + l.sums.weights)
		} else {
			forward.own += k * l.sums.rematForward
			backward.own += k * l.sums.rematBackward
		}
		if move != nil {
			m := &move[r.segment]
			first = max(first, m.fetch)
			forward.moved += n * m.fetch
			backward.moved += n * (m.fetch + m.scatter)
		}
	}
	if f.plan.VPP == 1 { // the first layer's parameters are there
		forward.moved -= first
		backward.moved -= first
	}
	out.forward = forward.bound(overlap, slows)
	if f.splits { // either part may be the one that moves gradients
		out.backward = backward.own
		return out
	}
	out.backward = backward.bound(overlap, slows)
	return out
}

// moves are what layers gather and scatter at least: as if each were one bucket without padding.
func (s *searcher) movesOf(f *family, of sharding, o *order) []moved {
	if of.zero < 2 {
		return nil
	}
	b := s.base(f.plan)
	k := moveKey{b, of.zero >= 3, o.dp, o.cp, of.group}
	if m := s.layerMoves[k]; m != nil {
		return m
	}
	place := s.shardPlace(f.plan.CP, o, of.group)
	prec, c := &f.plan.Precision, s.problem.Cluster
	out := make([]moved, len(b.elems))
	for i, n := range b.elems {
		if n == 0 {
			continue
		}
		out[i].scatter = c.CollectiveTime(ir.OpReduceScatter, place, costmodel.Bytes(n*prec.Reduce.Size()))
		if of.zero >= 3 {
			out[i].fetch = c.CollectiveTime(ir.OpAllGather, place, costmodel.Bytes(n*prec.Params.Size()))
		}
	}
	s.layerMoves[k] = out
	return out
}

// moveKey is what the moves of layers depend on.
type moveKey struct {
	base                    *base
	fetches                 bool
	stride, strideCP, group int
}

// shardPlace is where the ranks are that share a copy of the state: all of cp, and of dp what is left of the group.
func (s *searcher) shardPlace(cp int, o *order, group int) costmodel.Placement {
	k := [4]int{cp, o.cp, o.dp, group}
	if p, ok := s.places[k]; ok {
		return p
	}
	m := ir.Mesh{Atoms: []ir.Atom{{Name: "before", Size: o.dp}, {Name: "inner", Size: group}}}
	axes := []ir.Axis{"inner"}
	if cp > 1 {
		m.Atoms = []ir.Atom{{Name: "before", Size: o.cp}, {Name: "cp", Size: cp}, {Name: "between", Size: o.dp / (o.cp * cp)}, {Name: "inner", Size: group / cp}}
		axes = append(axes, "cp")
	}
	p := s.problem.Cluster.Place(m, axes)
	s.places[k] = p
	return p
}

// message is what a stage's output takes to the next: of a family and an order of its axes one.
func (s *searcher) message(f *family, stream int, o *order) costmodel.Seconds {
	for len(f.messages) <= o.index {
		f.messages = append(f.messages, 0)
	}
	at := &f.messages[o.index]
	if *at == 0 {
		*at = s.newMessage(f, stream, o)
	}
	return *at
}

func (s *searcher) newMessage(f *family, stream int, o *order) costmodel.Seconds {
	if f.plan.PP == 1 {
		return 0
	}
	if s.problem.engine().Scattered && !f.plan.SP {
		stream /= f.plan.TP
	}
	k := [2]int{stream, o.pp*1<<20 + f.plan.PP}
	if t, ok := s.messages[k]; ok {
		return t
	}
	m := ir.Mesh{Atoms: []ir.Atom{{Name: "before", Size: o.pp}, {Name: "pp", Size: f.plan.PP}}}
	t := s.problem.Cluster.SendTime(m, "pp", costmodel.Bytes(stream))
	s.messages[k] = t
	return t
}

// floor is at most what the step of a family's plan takes that recomputes n blocks or more. still leaves out what ZeRO moves.
func (s *searcher) floor(f *family, of sharding, a *again, n int, o *order) costmodel.Seconds {
	return s.closed(f, of, a, n, o, s.floorCosts(f, a, f.splits && of.zero >= 2, o))
}

// closed is the closed form of a step, a lower bound of its simulation: the passes as costmodel.Floor has them, with what
// layers cost; beside them the step's overhead, and the update of the fullest stage.
func (s *searcher) closed(f *family, of sharding, a *again, n int, o *order, costs []layerCost) costmodel.Seconds {
	stream := s.blocksOf(f, a, f.splits && of.zero >= 2).stream
	var move []moved
	if !of.still {
		move = s.movesOf(f, of, o)
	}
	fr := s.frame(f)
	layers, every := a.numbers(n)
	overlap, slows := s.overlap[min(of.zero, 1)], costmodel.Seconds(s.interferes())
	kinds := s.kindFloors[:0]
	through := costmodel.Seconds(0)
	for i := range fr.kinds {
		k := fr.kinds[i].floor(costs, move, layers, every, f, s.ends, overlap, slows)
		through += costmodel.Seconds(fr.kinds[i].count) * (k.forward + k.backward)
		kinds = append(kinds, k)
	}
	s.kindFloors = kinds
	message := s.message(f, stream, o)
	through += costmodel.Seconds(2*fr.sends) * message
	if of.still {
		once := s.device.OptimizerTime(f.plan.Precision, s.problem.Recipe, s.mostElems(f)/of.group)
		return (max(through, s.slowest(f, fr, message, nil, slows)) + s.device.StepOverhead() + once) * (1 - tie)
	}
	ends, once := s.settled(f, of, o), costmodel.Seconds(0)
	for i := range ends {
		once = max(once, ends[i].update)
	}
	if t := &fr.turns[0]; t.stage == 0 && !f.splits { // where the passes end
		through += ends[0].atLeast(max(ends[0].after, ends[0].last), slows)
	}
	return (max(through, s.slowest(f, fr, message, ends, slows)) + s.device.StepOverhead() + once) * (1 - tie)
}

// slowest is at most when the last stage has done all its passes and reduced its gradients: see [costmodel.Floor]. Of stages
// that are alike the last takes longest. A stage's last pass is the backward pass of its first chunk, or the second part of
// it; not before it begins do reductions.
func (s *searcher) slowest(f *family, fr *frame, message costmodel.Seconds, ends []settling, slows costmodel.Seconds) (best costmodel.Seconds) {
	kinds := s.kindFloors
	for i := range fr.turns {
		t := &fr.turns[i]
		st := &fr.stages[t.stage]
		work, head, tail := costmodel.Seconds(0), costmodel.Seconds(0), costmodel.Seconds(0)
		for _, c := range st.kinds {
			k := &kinds[c.kind]
			work += costmodel.Seconds(c.n) * (k.forward + k.backward + k.weights)
		}
		for _, c := range t.before {
			k, n := &kinds[c.kind], costmodel.Seconds(c.n)
			head += n * (k.forward + message)
			if !f.splits {
				tail += n * (k.backward + message)
			}
		}
		if ends != nil {
			pass := kinds[st.first].backward
			if f.splits {
				pass = kinds[st.first].weights
			}
			tail = max(tail, ends[i].atLeast(max(ends[i].after, ends[i].last, ends[i].beside-pass), slows))
		}
		best = max(best, head+costmodel.Seconds(f.plan.MicroBatches)*work+tail)
	}
	return best
}

// mostElems are the parameters of the stage that has most.
func (s *searcher) mostElems(f *family) int {
	if f.mostElems > 0 {
		return f.mostElems
	}
	b, fr := s.base(f.plan), s.frame(f)
	for i := range fr.stages {
		sum := 0
		for _, w := range fr.stages[i].walk {
			sum += w.count * b.elems[w.segment]
		}
		if last := len(fr.kindOf) - 1; i > 0 && slices.Contains(fr.stages[i].chunks, last) {
			sum += b.tied
		}
		f.mostElems = max(f.mostElems, sum)
	}
	return f.mostElems
}

// familyFloor is at most what any plan of a family takes that recomputes at least so many blocks in one way: as if nothing
// were moved, wherever tensor and context parallel ranks are.
func (s *searcher) familyFloor(f *family, a *again, n int) costmodel.Seconds {
	best := costmodel.Seconds(-1)
	orders := f.ordersOf()
	for i := range orders {
		o := &orders[i]
		if slices.ContainsFunc(orders[:i], func(x order) bool { return x.tp == o.tp && x.pp == o.pp && x.cp == o.cp }) {
			continue
		}
		for _, zero := range []int{0, 2} {
			if zero > 0 && !(f.splits && f.plan.Replicas() > 1) {
				continue
			}
			if t := s.floor(f, sharding{zero, f.plan.Replicas(), true}, a, n, o); best < 0 || t < best {
				best = t
			}
		}
	}
	return best
}
