package search

import (
	"cmp"
	"slices"
)

// nearest is the plan that lacks least memory; of equals the faster, then the earlier.
func (s *searcher) nearest(sp *space, k *keep) Priced {
	if k == nil {
		k = &keep{}
	}
	var families []*family
	for _, f := range sp.families {
		if k.family == nil || k.family(f) {
			s.least(sp.problem, f)
			families = append(families, f)
		}
	}
	slices.SortStableFunc(families, func(a, b *family) int { return cmp.Compare(a.least, b.least) })
	n := &nearest{s: s}
	for _, f := range families {
		if n.found && f.least-s.capacity > n.over {
			break
		}
		n.family(sp, f, k)
	}
	return s.priced(&n.best.point)
}

// nearest is the plan so far that lacks least.
type nearest struct {
	s     *searcher
	best  *member
	over  int
	found bool
}

// family looks at a family's plans, those that may lack least first.
func (n *nearest) family(sp *space, f *family, k *keep) {
	var ms []*member
	for _, b := range n.s.open(sp.problem, f) {
		if k.kind != nil && !k.kind(b.again.kind) {
			continue
		}
		n.s.weigh(sp.problem, b)
		if n.found && b.over > n.over {
			continue
		}
		all := n.s.grow(sp.problem, b)
		for i := range all {
			if k.member == nil || k.member(&all[i]) {
				ms = append(ms, &all[i])
			}
		}
	}
	slices.SortStableFunc(ms, func(a, b *member) int { return cmp.Compare(a.over, b.over) })
	for _, m := range ms {
		n.try(m)
	}
}

// try looks at a member.
func (n *nearest) try(m *member) {
	switch {
	case !n.found || m.over < n.over:
	case m.over > n.over:
		return
	default:
		a, b := n.s.stepTime(&m.point), n.s.stepTime(&n.best.point)
		if a > b*(1+tie) || a >= b*(1-tie) && m.place > n.best.place {
			return
		}
	}
	n.best, n.over, n.found = m, m.over, true
}
