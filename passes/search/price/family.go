package price

import (
	"cmp"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
)

// Family is the plans that agree in everything except sharding, recomputation and axis order. Most families are never
// examined, so the details of those that are live in a separate allocation.
type Family struct {
	*familyDetails // nil until the family is examined, see withDetails
	*FamilySpec
	class *DegreeClass // a plan from outside the search has a class of its own
}

// FamilySpec identifies a family. It does not change once its family is in a space, and workers share it.
type FamilySpec struct {
	splitsBackward bool // the backward pass has two parts, for inputs and for weights
	// without the open choices, with the axes in their default order
	Plan       ir.Plan
	Counts     []int    // blocks per chunk
	OrderNames []string // axis orders that the pins allow
}

// familyDetails is what is known about one examined family. The fields that pricing reads most come first, for
// locality.
type familyDetails struct {
	split         *pipelineSplit
	shardingCosts []shardingCost // by the sharding's index
	fullStages    []stageBuffers

	minBytes       int           // no plan of the family needs less
	minStateMemory []stateMemory // minimum over its shardings, once expanded
	layers         [][]layerRun  // of each chunk
}

// NewFamily returns the family with a spec and a class, and completes the spec.
func NewFamily(spec *FamilySpec, class *DegreeClass) Family {
	spec.splitsBackward = spec.Plan.Splits()
	return Family{FamilySpec: spec, class: class}
}

// Class returns what the family shares with those of the same degrees and micro-batch.
func (f *Family) Class() *DegreeClass { return f.class }

// withDetails returns the family after allocating its details.
func (f *Family) withDetails() *Family {
	if f.familyDetails == nil {
		f.familyDetails = &familyDetails{}
	}
	return f
}

// noRecompute is the choice to recompute nothing; anyRecompute stands for any choice.
var noRecompute, anyRecompute = space.RecomputeChoice{Kind: "none"}, space.RecomputeChoice{Kind: space.AnyKind}

// MinFit returns the smallest recompute count with which a family's plans with one recompute choice may fit, and by
// how many bytes none of them does.
func (s *memoryPricer) MinFit(p *space.Problem, f *Family, a *space.RecomputeChoice) (least, overBytes int) {
	for j, each := range f.scatterChoices(s.Shardings(p, &f.Plan)) {
		n, over := s.minRecomputed(f, a, s.minStateMemory(p, f), each)
		if j == 0 || over < overBytes || over == overBytes && n < least {
			least, overBytes = n, over
		}
	}
	return least, overBytes
}

// minStateMemory returns the minimum over all shardings of each part of the state of the stages in
// [memoryPricer.fullStages].
func (s *memoryPricer) minStateMemory(p *space.Problem, f *Family) []stateMemory {
	if f.withDetails().minStateMemory != nil {
		return f.minStateMemory
	}
	for i, shard := range s.Shardings(p, &f.Plan) {
		if i == 0 {
			f.minStateMemory = s.stateMemory(nil, f, shard)
			continue
		}
		s.stateScratch = s.stateMemory(s.stateScratch[:0], f, shard)
		for j := range f.minStateMemory {
			f.minStateMemory[j].lowerTo(&s.stateScratch[j])
		}
	}
	return f.minStateMemory
}

// lowerTo takes the minimum of each part.
func (n *stateMemory) lowerTo(o *stateMemory) {
	n.params, n.grads, n.master, n.moment = min(n.params, o.params), min(n.grads, o.grads), min(n.master, o.master),
		min(n.moment, o.moment)
	n.commBuffers, n.communicators = min(n.commBuffers, o.commBuffers), min(n.communicators, o.communicators)
	if o.precision.Params.Narrow() { // an engine adds at most as much to gradients in 16 bits as they are narrower
		n.precision = o.precision
	}
}

// scatterChoices returns whether gradients are scattered after each micro-batch by a pass of their own: one value, or
// both if it depends on the sharding.
func (f *Family) scatterChoices(shardings []space.Sharding) []bool {
	if !f.splitsBackward {
		return []bool{false}
	}
	var out []bool
	for _, shard := range shardings {
		if each := shard.Zero >= 2; !slices.Contains(out, each) {
			out = append(out, each)
		}
	}
	return out
}

// minRecomputed returns the smallest recompute count with which a plan fits, or the one that exceeds the memory
// least, with the excess in bytes. More recomputed blocks never need more memory, so it is a binary search. Group
// sizes are not monotonic and are tried one by one.
func (s *memoryPricer) minRecomputed(f *Family, a *space.RecomputeChoice, state []stateMemory,
	each bool) (n, over int) {
	lacks := func(n int) int {
		s.measureActivations(&s.activationScratch, f, a, n, each)
		return max(0, s.peakBytes(f, &s.activationScratch, state)-s.arenaCapacity)
	}
	if a.Grouped {
		best := 0
		for n := a.MinN; n <= a.MaxN; n++ {
			if l := lacks(n); l == 0 {
				return n, 0
			} else if best == 0 || l < over {
				best, over = n, l
			}
		}
		return best, over
	}
	over = lacks(a.MaxN)
	if over > 0 {
		return a.MaxN, over
	}
	low, high := a.MinN, a.MaxN
	for low < high {
		if mid := (low + high) / 2; lacks(mid) == 0 {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low, 0
}

// RecomputeIsFaster reports whether recomputed blocks may be faster. Their backward pass has one part, which may hide
// gradients that are scattered behind more compute than the second of two parts: it gains at most what is exposed of
// them, and what they slow down, together less than twice their time.
func (s *stepBounder) RecomputeIsFaster(m *Candidate) bool {
	if !m.Family.splitsBackward || m.Recompute.Grouped || m.Recompute.Kind == "none" {
		return false
	}
	var zeroTimes []zeroTime
	if m.scattersEachMicro() {
		zeroTimes = s.minZeroTimes(m.Family, *m.Sharding, m.Order)
	}
	for i, c := range s.layerTimesOf(m.Family, m.Recompute, m.scattersEachMicro(), m.Order) {
		plain := c.forward + c.backward + c.weights
		if zeroTimes != nil {
			plain += 2 * zeroTimes[i].scatter
		}
		if recomputed := c.rematForward + c.rematBackward; recomputed > 0 && recomputed < plain {
			return true
		}
	}
	return false
}

// MinBytes returns a lower bound of what any plan of a family needs in bytes, as peakBytes counts it: the most
// sharding, with one saved block input per chunk, without communicators.
func (s *memoryPricer) MinBytes(p *space.Problem, f *Family) int {
	if f.withDetails().minBytes > 0 {
		return f.minBytes
	}
	_, split := p.Pins["recompute_split"]
	k, fr, shardings := &s.activationScratch, s.pipelineSplit(f), s.Shardings(p, &f.Plan)
	for i, each := range f.scatterChoices(shardings) {
		if i == 0 {
			s.measureActivations(k, f, &noRecompute, 0, each)
			clear(k.chunkKinds)
		}
		for j := range k.chunkKinds {
			if size := s.blocksOf(f, &noRecompute, each).minChunkBytes(&fr.kinds[j], split); i == 0 ||
				size < k.chunkKinds[j].size {
				k.chunkKinds[j].size = size
			}
		}
	}
	k.work, k.castScratch = 0, 0
	for _, shard := range shardings {
		if shard.Zero > 0 && shard.Group < f.Plan.Replicas() && p.Pins["zero_group"] == nil {
			continue // a smaller group does not need less
		}
		s.stateScratch = s.stateMemory(s.stateScratch[:0], f, shard)
		for j := range s.stateScratch {
			s.stateScratch[j].communicators = 0 // a smaller group may need less of them
		}
		if largest := s.peakBytes(f, k, s.stateScratch); f.minBytes == 0 || largest < f.minBytes {
			f.minBytes = largest
		}
	}
	return f.minBytes
}

// minChunkBytes returns the least that a kind of chunk saves under any recomputation: one input for all blocks of a
// segment.
func (b *blocks) minChunkBytes(c *chunkKind, split bool) (size int) {
	for i := range c.runs {
		if l := &b.layers[c.runs[i].segment]; c.runs[i].end {
			size += c.runs[i].count * l.whole
		} else if !split { // otherwise only a part of an input
			size += b.stream
		}
	}
	return size
}

// triedCount is a recompute count of a candidate with its closed-form time, and its simulated time once known.
type triedCount struct {
	n           int
	floor, time costmodel.Seconds
}

// SolveRecompute returns a candidate with its fastest recompute count, and of equally fast ones the smallest. This is
// the smallest count that fits, which the candidate has, except if recomputed blocks are faster (see layerTimeBounds).
// Then counts are simulated in the order of their closed forms, until one exceeds the fastest or the limit. ok is
// false if a bound says that the candidate exceeds the limit.
func (s *Pricer) SolveRecompute(m *Candidate, limit costmodel.Seconds) (best Candidate, ok bool) {
	best = *m
	if !s.RecomputeIsFaster(m) {
		return best, s.SimulatedBound(&best) <= limit
	}
	all := s.triedScratch[:0]
	for n := m.N; n <= m.Recompute.MaxN; n++ {
		p := *m
		p.N = n
		if q := s.quote(&p); q.bytes <= s.arenaCapacity {
			all = append(all, triedCount{n: n, floor: q.time})
		}
	}
	s.triedScratch = all
	slices.SortStableFunc(all, func(a, b triedCount) int { return cmp.Compare(a.floor, b.floor) })
	done := 0
	for i := range all {
		if all[i].floor > limit {
			break
		}
		p := *m
		p.N = all[i].n
		if s.SimulatedBound(&p) > limit {
			continue
		}
		all[done] = triedCount{n: p.N, time: s.Price(&p).Time}
		limit = min(limit, all[done].time*(1+Tie))
		done++
	}
	for _, t := range all[:done] {
		if t.time <= limit && (!ok || t.n < best.N) {
			best.N, ok = t.n, true
		}
	}
	return best, ok
}
