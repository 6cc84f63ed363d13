package search

import (
	"cmp"
	"slices"
)

// nearest returns the plan that exceeds memory least; of equal ones the fastest, then the first.
func (s *searcher) nearest(sp *planSpace, k *filter) Priced {
	if k == nil {
		k = &filter{}
	}
	var families []*family
	for _, f := range sp.families {
		if k.family == nil || k.family(f) {
			s.minBytes(sp.problem, f)
			families = append(families, f)
		}
	}
	slices.SortStableFunc(families, func(a, b *family) int { return cmp.Compare(a.minBytes, b.minBytes) })
	n := &nearest{s: s}
	for _, f := range families {
		if n.found && f.minBytes-s.arenaCapacity > n.over {
			break
		}
		n.family(sp, f, k)
	}
	return s.priced(&n.best.candidate)
}

// nearest is the plan so far that exceeds memory least.
type nearest struct {
	s     *searcher
	best  *member
	over  int
	found bool
}

// family examines a family's plans, those that may exceed memory least first.
func (n *nearest) family(sp *planSpace, f *family, k *filter) {
	var ms []*member
	for _, b := range n.s.branchesOf(sp.problem, f) {
		if k.recompute != nil && !k.recompute(b.recompute.Kind) {
			continue
		}
		n.s.boundBranch(sp.problem, b)
		if n.found && b.overBytes > n.over {
			continue
		}
		all := n.s.membersOf(sp.problem, b)
		for i := range all {
			if k.member == nil || k.member(&all[i]) {
				ms = append(ms, &all[i])
			}
		}
	}
	slices.SortStableFunc(ms, func(a, b *member) int { return cmp.Compare(a.overBytes, b.overBytes) })
	for _, m := range ms {
		n.try(m)
	}
}

// try examines a member.
func (n *nearest) try(m *member) {
	switch {
	case !n.found || m.overBytes < n.over:
	case m.overBytes > n.over:
		return
	default:
		a, b := n.s.stepTime(&m.candidate), n.s.stepTime(&n.best.candidate)
		if a > b*(1+tie) || a >= b*(1-tie) && m.index > n.best.index {
			return
		}
	}
	n.best, n.over, n.found = m, m.overBytes, true
}
