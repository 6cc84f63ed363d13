package search

import (
	"cmp"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/price"
)

// The recommended plan is the one of least risk among those that predictions cannot tell from the fastest. This
// search runs after the search for the fastest, on what that has left in its queue: best first, by a lower bound of
// the risk of the plans of a family, branch or member. So it examines few of the plans in the window, and skips none
// that may have less risk.

// riskNode is a part of the space that is queued, or a plan with a recompute count.
type riskNode struct {
	risk
	entry
	number int
	// the node is a plan: its member with number; otherwise everything below
	isPlan    bool
	simulated bool // floor is the plan's step
}

// before reports whether a node precedes another. Of equal nodes, parts precede plans, which may not be the best of
// their part.
func (n *riskNode) before(o *riskNode) bool {
	if c := n.risk.compare(&o.risk); c != 0 {
		return c < 0
	}
	return n.floor < o.floor || n.floor == o.floor && (!n.simulated && o.simulated || n.simulated == o.simulated &&
		n.order < o.order)
}

// riskWindow continues a search among the plans that predictions cannot tell from the fastest.
type riskWindow struct {
	*bestFirst
	limit  costmodel.Seconds // longest step
	nodes  []riskNode        // a binary heap
	priced map[int]bool      // members, by their index
}

// robust returns the plan of least risk whose step is within the limit; the fastest plan is.
func (h *bestFirst) robust(limit costmodel.Seconds) price.Candidate {
	w := &riskWindow{bestFirst: h, limit: limit, priced: map[int]bool{}}
	h.s.LimitPrecompile(limit)
	for i := range h.fits {
		w.priced[h.fits[i].index] = true
		w.queueMember(h.fits[i].member, h.fits[i].time)
	}
	for _, m := range h.slower {
		w.queueMember(m, m.Floor)
	}
	w.drainQueue()
	for ; len(h.pending) > 0 && h.pending[0].floor <= limit; h.pending = h.pending[1:] {
		f := h.space.families[h.pending[0].index]
		if h.filter.family != nil && !h.filter.family(f) {
			continue
		}
		w.push(riskNode{risk: risk{parts: simplicity(&f.Plan)}, entry: entry{floor: h.pending[0].floor, order: f.first,
			family: f}, number: unranked})
	}
	return w.first()
}

// unranked marks families that the search for the fastest did not reach.
const unranked = -1

// first returns the plan that precedes all others, and of those as fast with the same risk the first in the space.
func (w *riskWindow) first() price.Candidate {
	chosen, ok := riskNode{}, false
	for len(w.nodes) > 0 {
		if ok && (w.nodes[0].risk.compare(&chosen.risk) > 0 || w.nodes[0].floor > chosen.floor*(1+price.Tie)) {
			break
		}
		switch n := w.pop(); {
		case !n.simulated:
			w.expand(&n)
		case !ok:
			chosen, ok = n, true
		case n.order < chosen.order || n.order == chosen.order && n.number < chosen.number:
			n.floor = chosen.floor // the time of the fastest, which is within a tie
			chosen = n
		}
	}
	best := chosen.member.Candidate
	best.N = chosen.number
	return best
}

// expand splits a part of the space, or simulates a plan.
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

// requeueUnderPressure queues a family again if its plans have more memory pressure than was known, and reports
// whether it did.
func (w *riskWindow) requeueUnderPressure(n *riskNode) bool {
	least := w.s.MinBytes(w.space.problem, &n.family.Family)
	if least > w.s.ArenaCapacity() {
		return false // queueBranches counts them
	}
	p := w.s.pressure(least)
	if p <= n.pressure {
		return false
	}
	n.pressure = p
	w.push(*n)
	return true
}

// drainQueue moves the queue of the best-first search to the nodes.
func (w *riskWindow) drainQueue() {
	for len(w.queue) > 0 {
		e := w.queue.pop()
		switch {
		case e.floor > w.limit:
		case e.member != nil:
			w.queueMember(e.member, e.floor)
		case e.branch != nil:
			plan := e.branch.family.Plan
			plan.Recompute = e.branch.recompute.Kind
			w.push(riskNode{risk: risk{parts: simplicity(&plan)}, entry: e})
		default:
			w.push(riskNode{risk: risk{parts: simplicity(&e.family.Plan)}, entry: e})
		}
	}
}

// queueMember queues a member with its least memory pressure.
func (w *riskWindow) queueMember(m *member, floor costmodel.Seconds) {
	if floor > w.limit {
		return
	}
	plan := m.Plan()
	n := riskNode{risk: risk{parts: simplicity(&plan)}, entry: entry{floor: floor, order: m.index, member: m}}
	n.pressure = w.minPressure(m)
	w.push(n)
}

// minPressure returns the least memory pressure of a member over all recompute counts.
func (w *riskWindow) minPressure(m *member) int {
	if !m.Recompute.Grouped { // more recomputed blocks never need more memory
		return w.pressureAt(m, m.Recompute.MaxN)
	}
	least := w.pressureAt(m, m.N)
	for n := m.N + 1; n <= m.Recompute.MaxN && least > 0; n++ {
		least = min(least, w.pressureAt(m, n))
	}
	return least
}

// pressureAt returns a member's memory pressure with a recompute count; it is very large if the plan does not fit.
func (w *riskWindow) pressureAt(m *member, n int) int {
	p := m.Candidate
	p.N = n
	bytes := w.s.ArenaBytes(&p)
	if bytes > w.s.ArenaCapacity() {
		return 1 << 20
	}
	return w.s.pressure(bytes)
}

// pressure returns the memory pressure of an arena that fits.
func (s *searcher) pressure(bytes int) int {
	return pressure(int64(s.ArenaCapacity()-bytes), s.UsableBytes())
}

// queueCounts queues the fastest plan of a member with the node's memory pressure, and the member again with more.
func (w *riskWindow) queueCounts(n *riskNode) {
	m := n.member
	if w.s.RecomputeIsFaster(&m.Candidate) {
		for i := m.N; i <= m.Recompute.MaxN; i++ {
			if p := w.pressureAt(m, i); p < 1<<20 {
				w.queuePlan(m, i, p)
			}
		}
		return
	}
	number := w.leastNumber(m, n.pressure)
	w.queuePlan(m, number, n.pressure)
	if number > m.N {
		more := *n
		more.pressure++
		w.push(more)
	}
}

// leastNumber returns the smallest recompute count with which a member has at most some memory pressure. One exists.
func (w *riskWindow) leastNumber(m *member, pressure int) int {
	low, high := m.N, m.Recompute.MaxN
	if m.Recompute.Grouped {
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
	p := m.Candidate
	p.N = number
	floor := w.s.SimulatedBound(&p)
	if floor > w.limit {
		return
	}
	plan := p.Plan()
	w.push(riskNode{risk: risk{pressure, simplicity(&plan)}, entry: entry{floor: floor, order: m.index, member: m},
		number: number, isPlan: true})
}

// simulate computes a plan's step.
func (w *riskWindow) simulate(n *riskNode) {
	p := n.member.Candidate
	p.N = n.number
	n.floor, n.simulated = w.s.Price(&p).Time, true
	w.counts.Simulated++
	if !w.priced[n.order] {
		w.priced[n.order] = true
		w.counts.Priced++
	}
	if n.floor <= w.limit {
		w.push(*n)
	}
}

// push adds a node.
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

// pop removes and returns the first node.
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

// Other returns the plan that would be recommended with the other preference, and that preference. ok is false if it
// is the recommended plan, or if the recommended plan was given.
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

// Apart is the fraction of a step up to which two predictions cannot tell which plan is faster.
//
// Measured on pairs of published plans for one question (tools/validate/rows, all sources, 2026-11-24;
// docs/validation.md): how often the plan that is predicted to be faster was faster, where chance is 50 %.
//
//	difference    correct
//	0.5 to 2 %    56 % of 421 pairs
//	1.5 to 2 %    52 %
//	2 to 5 %      61 % of 727 pairs
//	5 to 10 %     71 %
//	above 20 %    98 %
const Apart = 0.02

// ampleFree is the fraction of the usable memory that a plan without memory pressure leaves free. Such a plan fits
// even if its predicted memory is too low by the median error on published runs, 7.8 % (docs/validation.md).
const ampleFree = 0.08

// Pressure returns how much memory a plan lacks to leave ampleFree, in hundredths of the usable memory, rounded up; 0
// if it leaves that much.
func Pressure(m costmodel.Memory) int { return pressure(m.Capacity-m.Total, m.Capacity) }

// pressure computes Pressure from the free and the usable bytes.
func pressure(free, usable int64) int {
	lacks := int64(ampleFree*float64(usable)) - free
	if lacks <= 0 {
		return 0
	}
	step := max(1, usable/100)
	return int((lacks + step - 1) / step)
}

// mechanisms is the number of figures that describe how simple a plan is.
const mechanisms = 10

// risk orders plans that predictions cannot rank: by memory pressure, then by simplicity. Of equal ones, the faster
// is taken, then the first in the space.
type risk struct {
	pressure int
	parts    [mechanisms]int
}

// compare orders by risk.
func (r *risk) compare(o *risk) int {
	return cmp.Or(cmp.Compare(r.pressure, o.pressure), slices.Compare(r.parts[:], o.parts[:]))
}

// simplicity returns the mechanisms that a user must understand, each as a number that grows with its complexity. Of
// two plans, the one with the smaller first differing number is simpler.
func simplicity(p *ir.Plan) [mechanisms]int {
	recompute := slices.Index([]string{"none", "selective", "full"}, p.Recompute)
	return [mechanisms]int{p.PP, p.VPP, bit(p.Splits()), p.CP, p.TP, p.ETP, recompute, p.Zero,
		bit(p.Zero > 0 && p.ZeroGroup < p.Replicas()), p.EP}
}

// bit returns 1 for true.
func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// riskOf returns the risk of a plan with its prediction.
func riskOf(p *Priced) risk {
	return risk{Pressure(p.Predict.MemoryBytes), simplicity(&p.Plan)}
}

// Riskier reports whether an alternative is faster than the chosen plan by less than predictions can tell, and has
// more risk.
func (a *Alternative) Riskier(chosen Priced) bool {
	if a.NoFit != nil || a.SlowerBy >= 0 || a.SlowerBy < -Apart {
		return false
	}
	x, y := riskOf(&Priced{Plan: a.Plan, Predict: a.Predict}), riskOf(&chosen)
	return x.compare(&y) > 0
}
