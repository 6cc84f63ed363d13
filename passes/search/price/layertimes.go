package price

import (
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
)

// layerTimeBound is layer times that hold whether layers are recomputed or not.
type layerTimeBound struct {
	variant, place int
	recompute      string
	sums           []layerTimes
}

// layerTimesOf returns the layer times of each segment under a recompute choice and an axis order.
func (s *layerTimer) layerTimesOf(f *Family, a *space.RecomputeChoice, each bool, o *AxisOrder) []layerTimes {
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
func (s *layerTimer) layerTimeBounds(f *Family, a *space.RecomputeChoice, each bool, o *AxisOrder) []layerTimes {
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
func (c *layerTimes) lowerTo(recomputed *layerTimes) {
	all := min(c.forward+c.backward+c.weights, recomputed.rematForward+recomputed.rematBackward)
	c.forward, c.backward = min(c.forward, recomputed.rematForward), min(c.backward, recomputed.rematBackward)
	c.weights = max(0, all-c.forward-c.backward)
}

// newLayerTimes computes layerTimesOf.
func (s *layerTimer) newLayerTimes(f *Family, b *blocks, o *AxisOrder) []layerTimes {
	return s.layerTimes(s.routeSetOn(f, b, o), &b.base.key, b.base.profile, b.micro)
}

// routeSetOn returns the routes of the layers' collectives if a family's axes are in an order. The placement of
// tensor and context parallel ranks depends on the strides of tp and cp, that of expert parallel ranks also on the
// stride of dp.
func (s *collectiveTimer) routeSetOn(f *Family, b *blocks, o *AxisOrder) *routeSet {
	plan := f.Plan
	plan.AxisOrder = o.Name
	return s.routeSetFor(b.base.profile, &lazyMesh{plan: &plan, strides: strides(&f.Plan, o.tp, o.cp, o.dp)})
}

// opSpan is where a collective stands among a function's ops. It begins before op number from, and op number until
// waits for it. Blocking collectives begin and end at the same op. A ring's messages overlap compute until their
// result is needed.
type opSpan struct{ from, until int }

// overlapSpan returns the span of the first of some nodes, which stands before op number at.
func overlapSpan(nodes []*ir.Node, m ir.Mesh, at int) opSpan {
	if nodes[0].Op != ir.OpShift {
		return opSpan{at, at}
	}
	out, until := nodes[0].Outs[0], at
	for _, n := range nodes[1:] {
		if n.Op != ir.OpShift && slices.Contains(n.Args, out) {
			break
		}
		if _, moves := n.Collective(m); !moves && !n.Op.NoWork() {
			until++
		}
	}
	return opSpan{at, until}
}

// overlappedCost returns the cost of a function whose messages overlap its compute, one after another. On a CPU,
// ranks copy messages themselves, so messages block.
func (s *layerTimer) overlappedCost(p *funcProfile, own *computeTime, k int, rounds float64,
	routes []commRoute) costmodel.Cost {
	c := costmodel.Cost{Compute: own.time, Recomputed: own.recomputed, PaddedSlots: own.padding}
	now, free, kernels := costmodel.Seconds(0), costmodel.Seconds(0), own.kernels
	ends := make([]costmodel.Seconds, len(p.comms))
	next := 0
	for i := range len(p.ops) + 1 {
		for ; next < len(p.comms) && p.comms[next].from == i; next++ {
			l := &p.comms[next]
			t, more := s.collectiveTime(l, &routes[l.kind], k, rounds)
			kernels += more
			if l.until > l.from && !s.problem.Cluster.IsCPU() {
				free = max(free, now) + t
				ends[next] = free
				continue
			}
			now += t
			l.addTo(&c, t)
		}
		for j := range p.comms[:next] { // collectives that this op waits for
			if l := &p.comms[j]; l.until == i && ends[j] > now {
				wait := ends[j] - now
				now, c.Context = ends[j], c.Context+wait
			}
		}
		if i < len(p.ops) {
			now += own.perOp[i]
		}
	}
	return s.withHostTime(c, kernels)
}
