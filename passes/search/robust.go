package search

import (
	"github.com/planc-dev/planc/costmodel"
)

// The recommended plan is the one of least risk among those that predictions do not tell from the fastest. It is found
// after the fastest, in what the hunt for that has left: best first by what is known of the risk of a family's, a
// branch's or a member's plans at least. So few of the plans within the window are looked at, and none that may have
// less risk is left out.

// node is a part of the space that waits for its turn, or a plan: then number is what is solved of it.
type node struct {
	risk
	entry
	number int
	plan   bool // member with number; else all that is below
	timed  bool // floor is the plan's step
}

// before tells whether a node has its turn before another. Of equals, parts come before plans that may not be the best
// of them.
func (n *node) before(o *node) bool {
	if c := n.risk.compare(&o.risk); c != 0 {
		return c < 0
	}
	return n.floor < o.floor || n.floor == o.floor && (!n.timed && o.timed || n.timed == o.timed && n.order < o.order)
}

// window is a hunt that goes on among the plans that predictions do not tell from the fastest.
type window struct {
	*hunt
	limit  costmodel.Seconds // no plan of it takes longer
	nodes  []node            // a binary heap
	priced map[int]bool      // members, by their place
}

// robust is the plan of least risk that takes no longer than the limit, which the fastest does not.
func (h *hunt) robust(limit costmodel.Seconds) point {
	w := &window{hunt: h, limit: limit, priced: map[int]bool{}}
	h.s.ahead.limit(limit)
	for i := range h.fits {
		w.priced[h.fits[i].place] = true
		w.member(h.fits[i].member, h.fits[i].time)
	}
	for _, m := range h.passed {
		w.member(m, m.floor)
	}
	w.drain()
	for ; len(h.rest) > 0 && h.rest[0].floor <= limit; h.rest = h.rest[1:] {
		f := h.sp.families[h.rest[0].place]
		if h.keep.family != nil && !h.keep.family(f) || !h.counts && h.s.hopeless(h.sp.problem, f) {
			continue
		}
		w.push(node{risk: risk{parts: simplicity(&f.plan)}, entry: entry{floor: h.rest[0].floor, order: f.first,
			family: f}, number: unranked})
	}
	return w.first()
}

// unranked marks families that the hunt for the fastest did not come to.
const unranked = -1

// first is the plan whose turn comes first, and of those as fast with the same risk the first in the space.
func (w *window) first() point {
	chosen, ok := node{}, false
	for len(w.nodes) > 0 {
		if ok && (w.nodes[0].risk.compare(&chosen.risk) > 0 || w.nodes[0].floor > chosen.floor*(1+tie)) {
			break
		}
		switch n := w.pop(); {
		case !n.timed:
			w.look(&n)
		case !ok:
			chosen, ok = n, true
		case n.order < chosen.order || n.order == chosen.order && n.number < chosen.number:
			n.floor = chosen.floor // of the fastest, which it is within a tie of
			chosen = n
		}
	}
	best := chosen.member.point
	best.n = chosen.number
	return best
}

// look takes a part of the space apart, or simulates a plan.
func (w *window) look(n *node) {
	w.watch()
	switch {
	case n.plan:
		w.simulate(n)
	case n.member != nil:
		w.numbers(n)
	case n.branch != nil:
		w.members(n.branch)
	case n.number == unranked:
		w.refine(n.family, n.floor)
	case n.family.floor == 0:
		w.bound(n.family)
		w.hunt.push(n.family)
	case w.raised(n):
		return
	default:
		w.branches(n.family)
	}
	w.drain()
}

// raised queues a family again if its plans have more memory pressure than was known.
func (w *window) raised(n *node) bool {
	least := w.s.least(w.sp.problem, n.family)
	if least > w.s.capacity {
		return false // branches counts them
	}
	p := w.s.pressure(least)
	if p <= n.pressure {
		return false
	}
	n.pressure = p
	w.push(*n)
	return true
}

// drain moves what the hunt has queued to the nodes.
func (w *window) drain() {
	for len(w.queue) > 0 {
		e := w.queue.pop()
		switch {
		case e.floor > w.limit:
		case e.member != nil:
			w.member(e.member, e.floor)
		case e.branch != nil:
			plan := e.branch.family.plan
			plan.Recompute = e.branch.again.kind
			w.push(node{risk: risk{parts: simplicity(&plan)}, entry: e})
		default:
			w.push(node{risk: risk{parts: simplicity(&e.family.plan)}, entry: e})
		}
	}
}

// member queues a member, with the least memory that it can do with.
func (w *window) member(m *member, floor costmodel.Seconds) {
	if floor > w.limit {
		return
	}
	plan := m.plan()
	n := node{risk: risk{parts: simplicity(&plan)}, entry: entry{floor: floor, order: m.place, member: m}}
	n.pressure = w.least(m)
	w.push(n)
}

// least is the least memory pressure of a member with any number.
func (w *window) least(m *member) int {
	if !m.again.groups { // more recomputed blocks need no more memory
		return w.pressureAt(m, m.again.most)
	}
	least := w.pressureAt(m, m.n)
	for n := m.n + 1; n <= m.again.most && least > 0; n++ {
		least = min(least, w.pressureAt(m, n))
	}
	return least
}

// pressureAt is a member's memory pressure with a number; more than any where it does not fit.
func (w *window) pressureAt(m *member, n int) int {
	w.s.keep(&w.s.kept, m.family, m.again, n, m.each())
	bytes := w.s.most(m.family, &w.s.kept, w.s.row(m.family, *m.of).needs)
	if bytes > w.s.capacity {
		return 1 << 20
	}
	return w.s.pressure(bytes)
}

// pressure is that of an arena of so many bytes that fits.
func (s *searcher) pressure(bytes int) int { return pressure(int64(s.capacity-bytes), s.usable) }

// numbers queues the plan of a member that is the fastest with the node's memory pressure, and the member again with
// more.
func (w *window) numbers(n *node) {
	m := n.member
	if w.s.faster(m) {
		for i := m.n; i <= m.again.most; i++ {
			if p := w.pressureAt(m, i); p < 1<<20 {
				w.plan(m, i, p)
			}
		}
		return
	}
	number := w.leastNumber(m, n.pressure)
	w.plan(m, number, n.pressure)
	if number > m.n {
		more := *n
		more.pressure++
		w.push(more)
	}
}

// leastNumber is the least number with which a member has no more than some memory pressure; there is one.
func (w *window) leastNumber(m *member, pressure int) int {
	low, high := m.n, m.again.most
	if m.again.groups {
		for low < high && w.pressureAt(m, low) > pressure {
			low++
		}
		return low
	}
	for low < high {
		if mid := (low + high) / 2; w.pressureAt(m, mid) <= pressure {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// plan queues a plan if its bounds are within the limit.
func (w *window) plan(m *member, number, pressure int) {
	p := m.point
	p.n = number
	floor := w.s.pipelined(&p)
	if floor > w.limit {
		return
	}
	plan := p.plan()
	w.push(node{risk: risk{pressure, simplicity(&plan)}, entry: entry{floor: floor, order: m.place, member: m},
		number: number, plan: true})
}

// simulate finds a plan's step.
func (w *window) simulate(n *node) {
	p := n.member.point
	p.n = n.number
	n.floor, n.timed = w.s.price(&p).time, true
	w.n.Simulated++
	if !w.priced[n.order] {
		w.priced[n.order] = true
		w.n.Priced++
	}
	if n.floor <= w.limit {
		w.push(*n)
	}
}

// push adds a node; pop takes the first.
func (w *window) push(n node) {
	w.nodes = append(w.nodes, n)
	i := len(w.nodes) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !w.nodes[i].before(&w.nodes[up]) {
			break
		}
		w.nodes[i], w.nodes[up] = w.nodes[up], w.nodes[i]
		i = up
	}
}

func (w *window) pop() node {
	all := w.nodes
	first := all[0]
	all[0] = all[len(all)-1]
	all = all[:len(all)-1]
	for i := 0; ; {
		down := 2*i + 1
		if down >= len(all) {
			break
		}
		if right := down + 1; right < len(all) && all[right].before(&all[down]) {
			down = right
		}
		if !all[down].before(&all[i]) {
			break
		}
		all[i], all[down] = all[down], all[i]
		i = down
	}
	w.nodes = all
	return first
}

// Other is the plan that would be recommended if the problem preferred otherwise, and what it would prefer then; ok is
// false where that is the recommended one, or where that was given.
func (r *Result) Other() (a Alternative, prefer string, ok bool) {
	other := r.Fastest
	prefer = PreferFastest
	if r.Best.Plan == r.Fastest.Plan {
		other, prefer = r.Robust, PreferRobust
	} else if r.Best.Plan != r.Robust.Plan {
		return a, "", false
	}
	if other.Plan == r.Best.Plan {
		return a, "", false
	}
	return Alternative{Plan: other.Plan, Predict: other.Predict, SlowerBy: slowerBy(other.Predict, r.Best.Predict)},
		prefer, true
}
