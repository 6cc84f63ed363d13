package search

import (
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// order is an order of a plan's axes, with how many ranks neighbours on each are apart.
type order struct {
	name       string
	place      int // among those of its family
	tp, dp, pp int
	cp         int // likewise, 1 where the order has none

	message costmodel.Seconds // between stages; below 0: not known yet
}

// ordersOf are those of a family that pins allow.
func (f *family) ordersOf() []order {
	if f.looked().orders == nil {
		f.orders = f.cell.looked().orders
	}
	if f.orders == nil {
		f.orders = make([]order, 0, len(f.names))
		for i, name := range f.names {
			o := orderOf(f.plan, name)
			o.place = i
			f.orders = append(f.orders, o)
		}
		f.cell.orders = f.orders
	}
	return f.orders
}

// orderOf is an order by its name.
func orderOf(plan ir.Plan, name string) order {
	plan.AxisOrder = name
	return order{name: name, message: -1, tp: stride(&plan, "tp"), dp: stride(&plan, "dp"), pp: stride(&plan, "pp"),
		cp: stride(&plan, "cp")}
}

// work is a pass's own seconds and what its stream moves.
type work struct{ own, moved costmodel.Seconds }

// bound is what a pass takes at least. It grows with both.
func (w work) bound(overlap bool, beside costmodel.Contention) costmodel.Seconds {
	if overlap {
		return w.own + beside.Added(w.own, w.moved, max(0, w.moved-w.own))
	}
	return w.own + w.moved
}

// kindFloor is at most what passes over a kind of chunk take.
type kindFloor struct{ forward, backward, weights costmodel.Seconds }

// kindFloor of chunks the first layers of which are recomputed. What moves is nil where nothing does.
func (c *chunkKind) floor(costs []costSums, move []moved, layers, every int, f *family, overlap bool,
	beside costmodel.Contention) (out kindFloor) {
	var forward, backward work
	var first costmodel.Seconds
	for i := range c.runs {
		r := &c.runs[i]
		l := &costs[r.segment]
		n, k := costmodel.Seconds(r.count), costmodel.Seconds(0)
		if layers > 0 && !r.end {
			again := min(layers, r.count)
			layers -= again
			k = costmodel.Seconds(again)
		}
		forward.own += (n - k) * l.forward
		backward.own += (n - k) * l.backward
		out.weights += (n - k) * l.weights
		if every > 1 {
			forward.own += k * l.forward
			backward.own += k * (l.forward + l.backward + l.weights)
		} else {
			forward.own += k * l.rematForward
			backward.own += k * l.rematBackward
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
	out.forward = forward.bound(overlap, beside)
	if f.splits { // either part may be the one that moves gradients
		out.backward = backward.own
		return out
	}
	out.backward = backward.bound(overlap, beside)
	return out
}

// message is what a stage's output takes to the next: of a family and an order of its axes one.
func (s *searcher) message(f *family, stream int, o *order) costmodel.Seconds {
	if o.message < 0 {
		o.message = s.newMessage(f, stream, o)
	}
	return o.message
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

// floor is at most what the step of a family's plan takes that recomputes n blocks or more. still leaves out what ZeRO
// moves.
func (s *searcher) floor(f *family, of sharding, a *again, n int, o *order) costmodel.Seconds {
	return s.closed(f, of, a, n, o, s.floorCosts(f, a, f.splits && of.zero >= 2, o))
}

// closed is the closed form of a step, a lower bound of its simulation: the passes as costmodel.Floor has them, with
// what layers cost; beside them the step's overhead, and the update of the fullest stage.
func (s *searcher) closed(f *family, of sharding, a *again, n int, o *order, costs []costSums) costmodel.Seconds {
	stream := s.blocksOf(f, a, f.splits && of.zero >= 2).stream
	var end *ending
	var move []moved
	if !of.still {
		end = s.endingOf(f, of, o)
		move = end.move
	}
	fr := s.frame(f)
	layers, every := a.numbers(n)
	overlap, beside := s.overlap[min(of.zero, 1)], s.contends(of.zero)
	slows := costmodel.Seconds(beside.Slows)
	kinds := s.kindFloors[:0]
	through := costmodel.Seconds(0)
	for i := range fr.kinds {
		k := fr.kinds[i].floor(costs, move, layers, every, f, overlap, beside)
		through += costmodel.Seconds(fr.kinds[i].count) * (k.forward + k.backward)
		kinds = append(kinds, k)
	}
	s.kindFloors = kinds
	message := s.message(f, stream, o)
	through += costmodel.Seconds(2*fr.sends) * message
	if of.still {
		once := s.device.OptimizerTime(f.plan.Precision, s.problem.Recipe, s.mostOwned(f))
		return (max(through, s.slowest(f, fr, message, nil, slows)) + s.device.StepOverhead() + once) * (1 - tie)
	}
	if t := &fr.turns[0]; t.stage == 0 && !f.splits { // where the passes end
		through += end.settled[0].atLeast(max(end.settled[0].after, end.settled[0].last), slows)
	}
	return (max(through, s.slowest(f, fr, message, end.settled, slows)) + s.device.StepOverhead() +
		end.update) * (1 - tie)
}

// slowest is at most when the last stage has done all its passes and reduced its gradients: see [costmodel.Floor]. Of
// stages that are alike the last takes longest. A stage's last pass is the backward pass of its first chunk, or the
// second part of it; not before it begins do reductions.
func (s *searcher) slowest(f *family, fr *frame, message costmodel.Seconds, ends []settling,
	slows costmodel.Seconds) (best costmodel.Seconds) {
	kinds := s.kindFloors
	for i := range fr.turns {
		t := &fr.turns[i]
		work, head, tail := costmodel.Seconds(0), costmodel.Seconds(0), costmodel.Seconds(0)
		for _, c := range t.kinds {
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
			pass := kinds[t.first].backward
			if f.splits {
				pass = kinds[t.first].weights
			}
			tail = max(tail, ends[i].atLeast(max(ends[i].after, ends[i].last, ends[i].beside-pass), slows))
		}
		best = max(best, head+costmodel.Seconds(f.plan.MicroBatches)*work+tail)
	}
	return best
}

// mostOwned is of how many parameters the ranks of the stage that has most own the state at least, all replicas sharing
// it.
func (s *searcher) mostOwned(f *family) int {
	if f.looked().mostOwned > 0 {
		return f.mostOwned
	}
	b, fr, shared := s.baseOf(f.cell, &f.plan), s.frame(f), ownersOf(&f.plan, f.plan.Replicas())
	for i := range fr.stages {
		sum, experts := 0, 0
		for _, w := range fr.stages[i].walk {
			sum += w.count * b.elems[w.segment]
			experts += w.count * b.experts[w.segment]
		}
		if last := len(fr.kindOf) - 1; i > 0 && slices.Contains(fr.stages[i].chunks, last) {
			sum += b.tied
		}
		f.mostOwned = max(f.mostOwned, shared.least(sum, experts))
	}
	return f.mostOwned
}

// familyFloor is at most what any plan of a family takes that recomputes at least so many blocks in one way: as if
// nothing were moved, wherever tensor and context parallel ranks are.
func (s *searcher) familyFloor(f *family, a *again, n int) costmodel.Seconds {
	best := costmodel.Seconds(-1)
	orders := f.ordersOf()
	for i := range orders {
		o := &orders[i]
		if slices.ContainsFunc(orders[:i], func(x order) bool {
			return x.tp == o.tp && x.pp == o.pp && x.cp == o.cp && (x.dp == o.dp || f.plan.EP == 1)
		}) {
			continue
		}
		for _, zero := range []int{0, 2} {
			if zero > 0 && !(f.splits && f.plan.Replicas() > 1) {
				continue
			}
			if t := s.floor(f, sharding{zero: zero, group: f.plan.Replicas(), still: true}, a, n,
				o); best < 0 || t < best {
				best = t
			}
		}
	}
	return best
}
