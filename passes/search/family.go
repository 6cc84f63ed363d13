package search

import (
	"slices"

	"github.com/planc-dev/planc/costmodel"
)

// branch is the plans of a family that recompute in one way. How many blocks are recomputed is solved.
type branch struct {
	family  *family
	again   again
	first   int // where its plans begin in the space
	size    int
	over    int // bytes that it lacks at least, with the state that is smallest
	n       int // the least number with which any plan of it may fit
	floor   costmodel.Seconds
	weighed bool     // over, n and floor are known
	members []member // once it has grown
}

// member is a plan of a branch, with the least number of recomputed blocks with which it fits, else that which lacks
// least.
type member struct {
	point
	place int // in the space
	over  int // bytes that it lacks
	floor costmodel.Seconds
}

// never is the choice to recompute nothing, perhaps any choice of what is recomputed.
var never, perhaps = again{kind: "none"}, again{kind: anyKind}

// open lists a family's branches.
func (s *searcher) open(p *Problem, f *family) []*branch {
	if f.looked().branches != nil {
		return f.branches
	}
	agains := s.agains(p, &f.plan, slices.Max(f.counts))
	all := make([]branch, len(agains))
	f.branches = make([]*branch, 0, len(agains))
	for i, a := range agains {
		b := &all[i]
		b.family, b.again, b.size = f, a, f.size/len(agains)
		b.first = f.first + i*b.size
		f.branches = append(f.branches, b)
	}
	return f.branches
}

// weigh finds a branch's bounds, if that was not done.
func (s *searcher) weigh(p *Problem, b *branch) {
	if b.weighed {
		return
	}
	b.weighed = true
	f := b.family
	b.n, b.over = s.needsOf(p, b)
	if b.over == 0 {
		b.floor = max(f.floor, s.familyFloor(f, &b.again, b.n))
	}
}

// needsOf are a branch's n and over.
func (s *searcher) needsOf(p *Problem, b *branch) (least, lacks int) {
	f := b.family
	s.frame(f)
	of := &branchNeeds{}
	if known := s.fittingOf(p, f); known != nil {
		of = &known.branches[b.again.way()]
	}
	if of.known {
		return of.n, of.over
	}
	for j, each := range f.eachOf(s.shardings(p, &f.plan)) {
		n, over := s.fewest(f, &b.again, s.smallest(p, f), each)
		if j == 0 || over < lacks || over == lacks && n < least {
			least, lacks = n, over
		}
	}
	*of = branchNeeds{true, least, lacks}
	return least, lacks
}

// smallest returns the least that any sharding needs of each part, by stage. Only the stages in [searcher.holdsOf] are
// filled in.
func (s *searcher) smallest(p *Problem, f *family) []stateNeed {
	if f.looked().smallest != nil {
		return f.smallest
	}
	for i, of := range s.shardings(p, &f.plan) {
		needs := s.row(f, of).needs
		if i == 0 {
			f.smallest = slices.Clone(needs)
		}
		for j := range f.held {
			stage := f.held[j].stage
			f.smallest[stage].least(&needs[stage])
		}
	}
	return f.smallest
}

// least takes what is less in each part.
func (n *stateNeed) least(o *stateNeed) {
	n.params, n.grads, n.master, n.moment, n.moving = min(n.params, o.params), min(n.grads, o.grads),
		min(n.master, o.master), min(n.moment, o.moment), min(n.moving, o.moving)
}

// eachOf says whether gradients are scattered after each micro-batch by a pass of their own: under some shardings of a
// family or others.
func (f *family) eachOf(shardings []sharding) []bool {
	if !f.splits {
		return []bool{false}
	}
	var out []bool
	for _, of := range shardings {
		if each := of.zero >= 2; !slices.Contains(out, each) {
			out = append(out, each)
		}
	}
	return out
}

// grow lists a branch's plans.
func (s *searcher) grow(p *Problem, b *branch) []member {
	if b.members != nil {
		return b.members
	}
	s.weigh(p, b)
	f, shardings := b.family, s.shardings(p, &b.family.plan)
	orders := f.ordersOf()
	b.members = make([]member, 0, len(shardings)*len(orders))
	for i := range shardings {
		of := &shardings[i]
		n, over := s.fewest(f, &b.again, s.row(f, *of).needs, f.splits && of.zero >= 2)
		for j := range orders {
			m := member{point: point{family: f, of: of, again: &b.again, n: n, order: &orders[j]},
				place: b.first + len(b.members), over: over}
			if over == 0 {
				m.floor = max(b.floor, s.floor(f, *of, &b.again, n, &orders[j]))
			}
			b.members = append(b.members, m)
		}
	}
	return b.members
}

// fewest is the least number of recomputed blocks with which a plan fits, and else that which lacks least, with the
// bytes that it lacks. More blocks need no more memory; the blocks of a group do not shrink it one by one, so that they
// are tried in turn.
func (s *searcher) fewest(f *family, a *again, state []stateNeed, each bool) (n, over int) {
	lacks := func(n int) int {
		s.keep(&s.kept, f, a, n, each)
		return max(0, s.most(f, &s.kept, state)-s.capacity)
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
	over = lacks(a.most)
	if over > 0 {
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

// faster tells whether blocks are faster where they are recomputed.
func (s *searcher) faster(m *member) bool {
	if !m.family.splits || m.again.groups || m.again.kind == "none" {
		return false
	}
	return slices.ContainsFunc(s.costsOf(m.family, m.again, m.each(), m.order), func(c costSums) bool {
		again := c.rematForward + c.rematBackward
		return again > 0 && again < c.forward+c.backward+c.weights
	})
}

// least is at most what any plan of a family needs: the most sharding, with one block's input kept of each chunk.
func (s *searcher) least(p *Problem, f *family) int {
	if f.looked().least > 0 {
		return f.least
	}
	s.frame(f)
	known := s.fittingOf(p, f)
	if known != nil && known.least > 0 {
		f.least = known.least
		return f.least
	}
	s.newLeast(p, f)
	if known != nil {
		known.least = f.least
	}
	return f.least
}

func (s *searcher) newLeast(p *Problem, f *family) {
	_, split := p.Pins["recompute_split"]
	k, fr, shardings := &s.kept, s.frame(f), s.shardings(p, &f.plan)
	for i, each := range f.eachOf(shardings) {
		if i == 0 {
			s.keep(k, f, &never, 0, each)
			clear(k.kinds)
		}
		for j := range k.kinds {
			if size := s.blocksOf(f, &never, each).leastOf(&fr.kinds[j], split); i == 0 || size < k.kinds[j].size {
				k.kinds[j].size = size
			}
		}
	}
	k.work, k.wide = 0, 0
	for _, of := range shardings {
		if of.zero > 0 && of.group < f.plan.Replicas() && p.Pins["zero_group"] == nil {
			continue // a smaller group needs no less
		}
		if most := s.most(f, k, s.stateNeeds(f, of)); f.least == 0 || most < f.least {
			f.least = most
		}
	}
}

// leastOf is what a kind of chunk keeps at least, whatever is recomputed: of all blocks of a segment one input.
func (b *blocks) leastOf(c *chunkKind, split bool) (size int) {
	for i := range c.runs {
		if l := &b.layers[c.runs[i].segment]; c.runs[i].end {
			size += c.runs[i].count * l.whole
		} else if !split { // else part of an input
			size += b.stream
		}
	}
	return size
}
