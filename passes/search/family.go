package search

import (
	"math"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// branch is the plans of a family that recompute in one way. How many blocks are recomputed is solved.
type branch struct {
	family  *family
	again   again
	first   int // where its plans begin in the space
	size    int
	over    int // bytes that it lacks at least, with the state that is smallest
	n       int // the least number that the bounds of memory allow any plan of it
	floor   costmodel.Seconds
	members []member // once it has grown
}

// member is a plan of a branch with its bounds.
type member struct {
	branch *branch
	order  int // in the space
	of     sharding
	axes   string
	n      int // the least number that the bound of its memory allows
	over   int // bytes by which the bound of its memory exceeds the device
	floor  costmodel.Seconds
}

// plan is the member's with a number of recomputed blocks.
func (m *member) plan(n int) ir.Plan {
	p := m.branch.family.plan
	m.branch.again.set(&p, n)
	p.Zero, p.ZeroGroup, p.AxisOrder = m.of.zero, m.of.group, m.axes
	return p
}

// open lists a family's branches.
func (s *searcher) open(p *Problem, f *family) []*branch {
	if f.branches != nil {
		return f.branches
	}
	shardings := p.shardings(f.plan.DP)
	f.states = make([][]int, len(shardings))
	var smallest []int
	for i, of := range shardings {
		f.states[i] = s.stateFloor(f, of)
		if smallest == nil {
			smallest = slices.Clone(f.states[i])
		}
		for st, n := range f.states[i] {
			smallest[st] = min(smallest[st], n)
		}
	}
	agains := p.recomputes(&f.plan, slices.Max(f.counts))
	for i, a := range agains {
		b := &branch{family: f, again: a, size: f.size / len(agains)}
		b.first = f.first + i*b.size
		if b.n, b.over = s.fewest(f, a, smallest, map[int][]int{}); b.over == 0 {
			b.floor = max(f.floor, s.familyFloor(f, a, b.n))
		}
		f.branches = append(f.branches, b)
	}
	return f.branches
}

// grow lists a branch's plans.
func (s *searcher) grow(p *Problem, b *branch) []member {
	if b.members != nil {
		return b.members
	}
	f := b.family
	kept := map[int][]int{}
	for i, of := range p.shardings(f.plan.DP) {
		m := member{branch: b, of: of}
		m.n, m.over = s.fewest(f, b.again, f.states[i], kept)
		for _, m.axes = range p.orders(&f.plan) {
			m.order = b.first + len(b.members)
			if m.over == 0 {
				m.floor = s.floorTime(f, of, b.again, m.n, m.axes)
			}
			b.members = append(b.members, m)
		}
	}
	return b.members
}

// fewest is the least number of recomputed blocks with which the bound of the memory fits, and else the most, with the bytes
// that it lacks. More blocks need no more memory; the blocks of a group do not shrink it one by one, so that they are
// tried in turn.
func (s *searcher) fewest(f *family, a again, state []int, kept map[int][]int) (n, over int) {
	lacks := func(n int) int {
		if kept[n] == nil {
			kept[n] = s.keptFloor(f, a, n)
		}
		return max(0, fullest(state, kept[n])-s.capacity)
	}
	if a.groups {
		best := 0
		for n := a.least; n <= a.most; n++ {
			if l := lacks(n); l == 0 {
				return n, 0
			} else if best == 0 || l < over {
				best, over = n, l
			}
		}
		return best, over
	}
	if over = lacks(a.most); over > 0 {
		return a.most, over
	}
	low, high := a.least, a.most
	for low < high {
		if mid := (low + high) / 2; lacks(mid) == 0 {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low, 0
}

// solve is a member's plan with the least number with which it fits, and else the plan with the most.
func (s *searcher) solve(m *member) ir.Plan {
	a := &m.branch.again
	if m.over > 0 || m.n == a.most {
		return m.plan(m.n)
	}
	if s.faster(m) {
		return s.fastest(m)
	}
	fits := func(n int) bool {
		memory, _ := s.memory(s.tables(m.plan(n)))
		return memory.Fits()
	}
	if a.groups {
		for n := m.n; n <= a.most; n++ {
			if fits(n) {
				return m.plan(n)
			}
		}
		return m.plan(m.n)
	}
	low, high := m.n, a.most
	for low < high {
		if mid := (low + high) / 2; fits(mid) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return m.plan(low)
}

// faster tells whether blocks are faster where they are recomputed, see floorCosts.
func (s *searcher) faster(m *member) bool {
	plan := m.plan(m.n)
	if !plan.Splits() || m.branch.again.groups || plan.Recompute == "none" {
		return false
	}
	for _, c := range s.costs(&plan, baseKey(plan), s.base(plan).profile, plan.MicroBatch) {
		if again := c.rematForward.Sum() + c.rematBackward.Sum(); again > 0 && again < c.sum() {
			return true
		}
	}
	return false
}

// fastest is a member's fastest plan that fits, with the least number of such, or else the one with the most.
func (s *searcher) fastest(m *member) ir.Plan {
	best, time := m.plan(m.branch.again.most), costmodel.Seconds(math.Inf(1))
	for n := m.n; n <= m.branch.again.most; n++ {
		if p := s.price(m.plan(n)); p.memory.Fits() && p.time < time*(1-tie) {
			best, time = m.plan(n), p.time
		}
	}
	return best
}

// least is at most what any plan of a family needs: the most sharding, with one block's input kept of each chunk.
func (s *searcher) least(p *Problem, f *family) int {
	if f.least == 0 {
		kept := s.groupFloor(f)
		for _, of := range p.shardings(f.plan.DP) {
			if of.zero > 0 && of.group < f.plan.DP && p.Pins["zero_group"] == nil {
				continue // a smaller group needs no less
			}
			if v := fullest(s.stateFloor(f, of), kept); f.least == 0 || v < f.least {
				f.least = v
			}
		}
	}
	return f.least
}
