package search

import "slices"

// layerTimeBound is sums of which some are at most what layers cost: as if some of them may be recomputed in a way.
type layerTimeBound struct {
	variant, place int
	recompute      string
	sums           []layerTimes
}

// layerTimesOf are those of layers of each segment, in sums.
func (s *searcher) layerTimesOf(f *family, a *recomputeChoice, each bool, o *axisOrder) []layerTimes {
	at := &f.class.withDetails().layerTimes[a.variant(each)]
	for len(*at) <= o.index {
		*at = append(*at, nil)
	}
	if (*at)[o.index] == nil {
		(*at)[o.index] = s.newLayerTimes(f, s.blocksOf(f, a, each), o)
	}
	return (*at)[o.index]
}

// anyKind stands for all choices of what is recomputed.
const anyKind = "any"

// layerTimeBounds are what layers cost at least, whether they are recomputed or not. In one piece a backward pass that makes
// forward values again takes no less than one that does not; in two it may, since their second part gathers once more
// what the first has gathered, and recomputed layers have no second part.
func (s *searcher) layerTimeBounds(f *family, a *recomputeChoice, each bool, o *axisOrder) []layerTimes {
	plain := s.layerTimesOf(f, a, each, o)
	if !f.splitsBackward || a.kind == "none" || a.grouped {
		return plain
	}
	k := layerTimeBound{variant: a.variant(each), place: o.index, recompute: a.kind}
	for i := range f.class.timeBounds {
		if t := &f.class.timeBounds[i]; t.variant == k.variant && t.place == k.place && t.recompute == k.recompute {
			return t.sums
		}
	}
	out := slices.Clone(plain)
	kinds := []string{a.kind}
	if a.kind == anyKind {
		kinds = []string{"selective", "full"}
	}
	for _, kind := range kinds {
		costs := s.layerTimesOf(f, &recomputeChoice{kind: kind, split: a.split, minN: 1, maxN: 1}, each, o)
		for i := range out {
			if costs[i].rematForward > 0 {
				out[i].lowerTo(&costs[i])
			}
		}
	}
	k.sums = out
	f.class.timeBounds = append(f.class.timeBounds, k)
	return out
}

// timeBounds makes the costs no more than those of the recomputed layer: each pass, and all together.
func (c *layerTimes) lowerTo(of *layerTimes) {
	all := min(c.forward+c.backward+c.weights, of.rematForward+of.rematBackward)
	c.forward, c.backward = min(c.forward, of.rematForward), min(c.backward, of.rematBackward)
	c.weights = max(0, all-c.forward-c.backward)
}

func (s *searcher) newLayerTimes(f *family, b *blocks, o *axisOrder) []layerTimes {
	return s.layerTimes(s.routeSetOn(f, b, o), &b.base.key, b.base.profile, b.micro)
}

// routeSetOn is how the collectives of layers go where a family's axes lie in an order: where tensor and context parallel
// ranks are is the strides of tp and cp, where expert parallel ones are those and that of dp.
func (s *searcher) routeSetOn(f *family, b *blocks, o *axisOrder) *routeSet {
	plan := f.plan
	plan.AxisOrder = o.name
	return s.routeSetFor(b.base.profile, &lazyMesh{plan: &plan, strides: strides(&f.plan, o.tp, o.cp, o.dp)})
}
