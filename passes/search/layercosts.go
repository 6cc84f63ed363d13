package search

import "slices"

// floorTable is sums of which some are at most what layers cost: as if some of them may be recomputed in a way.
type floorTable struct {
	variant, place int
	perhaps        string
	sums           []costSums
}

// costsOf are those of layers of each segment, in sums.
func (s *searcher) costsOf(f *family, a *again, each bool, o *order) []costSums {
	at := &f.cell.looked().sums[a.variant(each)]
	for len(*at) <= o.place {
		*at = append(*at, nil)
	}
	if (*at)[o.place] == nil {
		(*at)[o.place] = s.newCosts(f, s.blocksOf(f, a, each), o)
	}
	return (*at)[o.place]
}

// anyKind stands for all choices of what is recomputed.
const anyKind = "any"

// floorCosts are what layers cost at least, whether they are recomputed or not. In one piece a backward pass that makes
// forward values again takes no less than one that does not; in two it may, since their second part gathers once more
// what the first has gathered, and recomputed layers have no second part.
func (s *searcher) floorCosts(f *family, a *again, each bool, o *order) []costSums {
	plain := s.costsOf(f, a, each, o)
	if !f.splits || a.kind == "none" || a.groups {
		return plain
	}
	k := floorTable{variant: a.variant(each), place: o.place, perhaps: a.kind}
	for i := range f.cell.perhaps {
		if t := &f.cell.perhaps[i]; t.variant == k.variant && t.place == k.place && t.perhaps == k.perhaps {
			return t.sums
		}
	}
	out := slices.Clone(plain)
	kinds := []string{a.kind}
	if a.kind == anyKind {
		kinds = []string{"selective", "full"}
	}
	for _, kind := range kinds {
		costs := s.costsOf(f, &again{kind: kind, split: a.split, least: 1, most: 1}, each, o)
		for i := range out {
			if costs[i].rematForward > 0 {
				out[i].perhaps(&costs[i])
			}
		}
	}
	k.sums = out
	f.cell.perhaps = append(f.cell.perhaps, k)
	return out
}

// perhaps makes the costs no more than those of the recomputed layer: each pass, and all together.
func (c *costSums) perhaps(of *costSums) {
	all := min(c.forward+c.backward+c.weights, of.rematForward+of.rematBackward)
	c.forward, c.backward = min(c.forward, of.rematForward), min(c.backward, of.rematBackward)
	c.weights = max(0, all-c.forward-c.backward)
}

func (s *searcher) newCosts(f *family, b *blocks, o *order) []costSums {
	return s.sums(s.goingOn(f, b, o), &b.base.key, b.base.profile, b.micro)
}

// goingOn is how the collectives of layers go where a family's axes lie in an order: where tensor and context parallel
// ranks are is the strides of tp and cp, where expert parallel ones are those and that of dp.
func (s *searcher) goingOn(f *family, b *blocks, o *order) *going {
	plan := f.plan
	plan.AxisOrder = o.name
	return s.goingOf(b.base.profile, &meshAt{plan: &plan, strides: strides(&f.plan, o.tp, o.cp, o.dp)})
}
