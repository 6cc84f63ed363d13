package search

import (
	"github.com/planc-dev/planc/costmodel"
)

// The recommended plan is the one of least risk among those that predictions do not tell from the fastest. It is found
// after the fastest, in what the hunt for that has left: best first by what is known of the risk of a family's, a
// branch's or a member's plans at least. So few of the plans within the window are looked at, and none that may have
// less risk is left out.

// riskNode is a part of the space that waits for its turn, or a plan: then number is what is solved of it.
type riskNode struct {
	risk
	entry
	number    int
	isPlan    bool // member with number; else all that is below
	simulated bool // floor is the plan's step
}

// before tells whether a node has its turn before another. Of equals, parts come before plans that may not be the best
// of them.
func (n *riskNode) before(o *riskNode) bool {
	if c := n.risk.compare(&o.risk); c != 0 {
		return c < 0
	}
	return n.floor < o.floor || n.floor == o.floor && (!n.simulated && o.simulated || n.simulated == o.simulated && n.order < o.order)
}

// riskWindow is a hunt that goes on among the plans that predictions do not tell from the fastest.
type riskWindow struct {
	*bestFirst
	limit  costmodel.Seconds // no plan of it takes longer
	nodes  []riskNode        // a binary heap
	priced map[int]bool      // members, by their place
}

// robust is the plan of least risk that takes no longer than the limit, which the fastest does not.
func (h *bestFirst) robust(limit costmodel.Seconds) candidate {
	w := &riskWindow{bestFirst: h, limit: limit, priced: map[int]bool{}}
	h.s.precompiler.limit(limit)
	for i := range h.fits {
		w.priced[h.fits[i].index] = true
		w.queueMember(h.fits[i].member, h.fits[i].time)
	}
	for _, m := range h.slower {
		w.queueMember(m, m.floor)
	}
	w.drainQueue()
	for ; len(h.pending) > 0 && h.pending[0].floor <= limit; h.pending = h.pending[1:] {
		f := h.space.families[h.pending[0].index]
		if h.filter.family != nil && !h.filter.family(f) || !h.countAll && h.s.cannotFit(h.space.problem, f) {
			continue
		}
		w.push(riskNode{risk: risk{parts: simplicity(&f.plan)}, entry: entry{floor: h.pending[0].floor, order: f.first,
			family: f}, number: unranked})
	}
	return w.first()
}

// unranked marks families that the hunt for the fastest did not come to.
const unranked = -1

// fastestFit is the plan whose turn comes first, and of those as fast with the same risk the first in the space.
func (w *riskWindow) first() candidate {
	chosen, ok := riskNode{}, false
	for len(w.nodes) > 0 {
		if ok && (w.nodes[0].risk.compare(&chosen.risk) > 0 || w.nodes[0].floor > chosen.floor*(1+tie)) {
			break
		}
		switch n := w.pop(); {
		case !n.simulated:
			w.expand(&n)
		case !ok:
			chosen, ok = n, true
		case n.order < chosen.order || n.order == chosen.order && n.number < chosen.number:
			n.floor = chosen.floor // of the fastest, which it is within a tie of
			chosen = n
		}
	}
	best := chosen.member.candidate
	best.n = chosen.number
	return best
}

// expand takes a part of the space apart, or simulates a plan.
func (w *riskWindow) expand(n *riskNode) {
	w.watch()
	switch {
	case n.isPlan:
		w.simulate(n)
	case n.member != nil:
		w.queueCounts(n)
	case n.branch != nil:
		w.queueMembers(n.branch)
	case n.number == unranked:
		w.queueRefined(n.family, n.floor)
	case n.family.floor == 0:
		w.boundFamily(n.family)
		w.bestFirst.queueFamily(n.family)
	case w.requeueUnderPressure(n):
		return
	default:
		w.queueBranches(n.family)
	}
	w.drainQueue()
}

// requeueUnderPressure queues a family again if its plans have more memory pressure than was known.
func (w *riskWindow) requeueUnderPressure(n *riskNode) bool {
	least := w.s.minBytes(w.space.problem, n.family)
	if least > w.s.arenaCapacity {
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

// drainQueue moves what the hunt has queued to the nodes.
func (w *riskWindow) drainQueue() {
	for len(w.queue) > 0 {
		e := w.queue.pop()
		switch {
		case e.floor > w.limit:
		case e.member != nil:
			w.queueMember(e.member, e.floor)
		case e.branch != nil:
			plan := e.branch.family.plan
			plan.Recompute = e.branch.recompute.kind
			w.push(riskNode{risk: risk{parts: simplicity(&plan)}, entry: e})
		default:
			w.push(riskNode{risk: risk{parts: simplicity(&e.family.plan)}, entry: e})
		}
	}
}

// queueMember queues a member, with the least memory that it can do with.
func (w *riskWindow) queueMember(m *member, floor costmodel.Seconds) {
	if floor > w.limit {
		return
	}
	plan := m.plan()
	n := riskNode{risk: risk{parts: simplicity(&plan)}, entry: entry{floor: floor, order: m.index, member: m}}
	n.pressure = w.minPressure(m)
	w.push(n)
}

// lowerTo is the least memory pressure of a member with any number.
func (w *riskWindow) minPressure(m *member) int {
	if !m.recompute.grouped { // more recomputed blocks need no more memory
		return w.pressureAt(m, m.recompute.maxN)
	}
	least := w.pressureAt(m, m.n)
	for n := m.n + 1; n <= m.recompute.maxN && least > 0; n++ {
		least = min(least, w.pressureAt(m, n))
	}
	return least
}

// pressureAt is a member's memory pressure with a number; more than any where it does not fit.
func (w *riskWindow) pressureAt(m *member, n int) int {
	w.s.measureActivations(&w.s.activationScratch, m.family, m.recompute, n, m.scattersEachMicro())
	bytes := w.s.peakBytes(m.family, &w.s.activationScratch, w.s.shardingCost(m.family, *m.sharding).stateMemory)
	if bytes > w.s.arenaCapacity {
		return 1 << 20
	}
	return w.s.pressure(bytes)
}

// pressure is that of an arena of so many bytes that fits.
func (s *searcher) pressure(bytes int) int {
	return pressure(int64(s.arenaCapacity-bytes), s.usableBytes)
}

// queueCounts queues the plan of a member that is the fastest with the node's memory pressure, and the member again with
// more.
func (w *riskWindow) queueCounts(n *riskNode) {
	m := n.member
	if w.s.recomputeIsFaster(m) {
		for i := m.n; i <= m.recompute.maxN; i++ {
			if p := w.pressureAt(m, i); p < 1<<20 {
				w.queuePlan(m, i, p)
			}
		}
		return
	}
	number := w.leastNumber(m, n.pressure)
	w.queuePlan(m, number, n.pressure)
	if number > m.n {
		more := *n
		more.pressure++
		w.push(more)
	}
}

// leastNumber is the least number with which a member has no more than some memory pressure; there is one.
func (w *riskWindow) leastNumber(m *member, pressure int) int {
	low, high := m.n, m.recompute.maxN
	if m.recompute.grouped {
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

// queuePlan queues a plan if its bounds are within the limit.
func (w *riskWindow) queuePlan(m *member, number, pressure int) {
	p := m.candidate
	p.n = number
	floor := w.s.simulatedBound(&p)
	if floor > w.limit {
		return
	}
	plan := p.plan()
	w.push(riskNode{risk: risk{pressure, simplicity(&plan)}, entry: entry{floor: floor, order: m.index, member: m},
		number: number, isPlan: true})
}

// simulate finds a plan's step.
func (w *riskWindow) simulate(n *riskNode) {
	p := n.member.candidate
	p.n = n.number
	n.floor, n.simulated = w.s.price(&p).time, true
	w.counts.Simulated++
	if !w.priced[n.order] {
		w.priced[n.order] = true
		w.counts.Priced++
	}
	if n.floor <= w.limit {
		w.push(*n)
	}
}

// queueFamily adds a node; pop takes the first.
func (w *riskWindow) push(n riskNode) {
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

func (w *riskWindow) pop() riskNode {
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
