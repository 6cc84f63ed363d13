package search

import (
	"slices"

	"github.com/planc-dev/planc/passes/search/space"
)

// layerTimeBound is layer times that hold whether layers are recomputed or not.
type layerTimeBound struct {
	variant, place int
	recompute      string
	sums           []layerTimes
}

// layerTimesOf returns the layer times of each segment under a recompute choice and an axis order.
func (s *layerTimer) layerTimesOf(f *family, a *space.RecomputeChoice, each bool, o *axisOrder) []layerTimes {
	at := &f.class.withDetails().layerTimes[a.Variant(each)]
	for len(*at) <= o.index {
		*at = append(*at, nil)
	}
	if (*at)[o.index] == nil {
		(*at)[o.index] = s.newLayerTimes(f, s.blocksOf(f, a, each), o)
	}
	return (*at)[o.index]
}

// layerTimeBounds returns lower bounds of the layer times, whether layers are recomputed or not. A backward pass that
// recomputes forward values takes no less than one that does not if it has one part. With two parts it may take less:
// the second part gathers again what the first has gathered, and recomputed layers have no second part.
func (s *layerTimer) layerTimeBounds(f *family, a *space.RecomputeChoice, each bool, o *axisOrder) []layerTimes {
	plain := s.layerTimesOf(f, a, each, o)
	if !f.splitsBackward || a.Kind == "none" || a.Grouped {
		return plain
	}
	k := layerTimeBound{variant: a.Variant(each), place: o.index, recompute: a.Kind}
	for i := range f.class.timeBounds {
		if t := &f.class.timeBounds[i]; t.variant == k.variant && t.place == k.place && t.recompute == k.recompute {
			return t.sums
		}
	}
	out := slices.Clone(plain)
	kinds := []string{a.Kind}
	if a.Kind == space.AnyKind {
		kinds = []string{"selective", "full"}
	}
	for _, kind := range kinds {
		costs := s.layerTimesOf(f, &space.RecomputeChoice{Kind: kind, Split: a.Split, MinN: 1, MaxN: 1}, each, o)
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

// lowerTo lowers the times to those of the recomputed layer: each pass, and their sum.
func (c *layerTimes) lowerTo(of *layerTimes) {
	all := min(c.forward+c.backward+c.weights, of.rematForward+of.rematBackward)
	c.forward, c.backward = min(c.forward, of.rematForward), min(c.backward, of.rematBackward)
	c.weights = max(0, all-c.forward-c.backward)
}

// newLayerTimes computes layerTimesOf.
func (s *layerTimer) newLayerTimes(f *family, b *blocks, o *axisOrder) []layerTimes {
	return s.layerTimes(s.routeSetOn(f, b, o), &b.base.key, b.base.profile, b.micro)
}

// routeSetOn returns the routes of the layers' collectives if a family's axes are in an order. The placement of
// tensor and context parallel ranks depends on the strides of tp and cp, that of expert parallel ranks also on the
// stride of dp.
func (s *collectiveTimer) routeSetOn(f *family, b *blocks, o *axisOrder) *routeSet {
	plan := f.plan
	plan.AxisOrder = o.name
	return s.routeSetFor(b.base.profile, &lazyMesh{plan: &plan, strides: strides(&f.plan, o.tp, o.cp, o.dp)})
}
