package search

import (
	"cmp"
	"maps"
	"slices"
)

// jobChange is a change that may help.
type jobChange struct {
	set     map[string]any
	problem Problem
}

// withField is the trial with one field more.
func (t jobChange) withField(key string, value any) jobChange {
	t.set = maps.Clone(t.set)
	t.set[key] = value
	return t
}

// fewPins is how many pins are named one by one; if more are all given up, the job's plan is, as one field.
const fewPins = 3

// withoutPins is the problem with some pins given up.
func (s *searcher) withoutPins(keys ...string) jobChange {
	t := jobChange{map[string]any{}, *s.problem}
	t.problem.Pins = s.problem.Pins.Without(keys...)
	if len(keys) > fewPins && len(t.problem.Pins) == 0 {
		t.set["plan"] = nil
		return t
	}
	for _, k := range keys {
		t.set["plan."+k] = nil
	}
	return t
}

// searchChanged searches under a change. Layers are the same whatever the pins and the number of devices are, so their profiles
// are shared.
func (s *searcher) searchChanged(t jobChange) (Change, bool) {
	q, err := newSearcher(&t.problem)
	if err != nil || q.arenaCapacity <= 0 {
		return Change{}, false
	}
	if t.problem.Model == s.problem.Model {
		q.caches = s.caches
	}
	sp, err := q.space(&t.problem)
	if err != nil {
		return Change{}, false
	}
	c, _, found := q.choose(sp, nil)
	return Change{t.set, c.best, t.problem.Cluster}, found
}

// changes are the changes of the job under which a plan fits, the cheapest first: see [cheapestFirst]. Changes that
// cost the same are in this order: pins given up, fewer before more and the faster before the slower; less headroom;
// narrower numbers; then what costs devices or changes the training, see larger. Pins and devices together are tried
// only if neither helps alone.
func (s *searcher) changes() []Change {
	out := slices.Concat(s.unpin(), s.lessHeadroom(), s.narrower(), s.larger(s.withoutPins()))
	if pins := s.problem.Pins.names(); len(out) == 0 && len(pins) > 0 {
		out = s.larger(s.withoutPins(pins...))
	}
	cheapestFirst(out)
	return out
}

// cheapestFirst sorts changes by what an hour of their clusters costs: price_per_hour of a node times nodes, or the
// number of devices if the cluster has no price. Of the same price, fewer devices come first. So a change that keeps
// the cluster comes first. Other changes keep their order.
func cheapestFirst(changes []Change) {
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.PricePerHour(), b.PricePerHour()), cmp.Compare(a.Cluster.Devices(),
			b.Cluster.Devices()))
	})
}

// unpin gives up pins one at a time; and all of them, where no single one helps as much.
func (s *searcher) unpin() []Change {
	pins := s.problem.Pins.names()
	var out []Change
	for _, k := range pins {
		if c, ok := s.searchChanged(s.withoutPins(k)); ok {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b Change) int { return cmp.Compare(a.Best.Predict.StepS, b.Best.Predict.StepS) })
	if len(pins) < 2 {
		return out
	}
	if c, ok := s.searchChanged(s.withoutPins(pins...)); ok && (len(out) == 0 || c.Best.Predict.StepS < out[0].Best.Predict.StepS) {
		out = append(out, c)
	}
	return out
}

// LeastHeadroom is the least that is offered where nothing fits: a fraction of a device, above the 3 % + 64 MiB by
// which a plan's memory may be off.
const LeastHeadroom = 0.05

// lessHeadroom leaves less of a device free.
func (s *searcher) lessHeadroom() []Change {
	if s.problem.Headroom <= LeastHeadroom {
		return nil
	}
	t := s.withoutPins().withField("objective.headroom", LeastHeadroom)
	t.problem.Headroom = LeastHeadroom
	if c, ok := s.searchChanged(t); ok {
		return []Change{c}
	}
	return nil
}

// narrower computes in narrower numbers, the widest that fit.
func (s *searcher) narrower() []Change {
	if s.problem.Narrower == nil {
		return nil
	}
	for _, t := range s.problem.Narrower() {
		if c, ok := s.searchChanged(jobChange{t.Set, t.Problem}); ok {
			return []Change{c}
		}
	}
	return nil
}

// larger takes more devices of a node, and else adds nodes; where there is no network to add them by, it halves the
// batch or the sequence.
func (s *searcher) larger(from jobChange) []Change {
	if c, ok := s.moreDevices(from); ok {
		return []Change{c}
	}
	if len(s.problem.Cluster.Network) > 0 {
		return s.moreNodes(from)
	}
	return append(s.halve(from, "train.global_batch", s.problem.GlobalBatch, func(p *Problem, n int) {
		p.GlobalBatch = n
	}),
		s.halve(from, "train.seq_len", s.dims.Seq, func(p *Problem, n int) { p.Model = p.WithSeq(n) })...)
}

// moreDevices takes more of a node that has more, the fewest that do.
func (s *searcher) moreDevices(from jobChange) (Change, bool) {
	for n := s.problem.Cluster.Node.Devices + 1; n <= s.problem.MaxDevices; n++ {
		t, c := from.withField("cluster.devices", n), *s.problem.Cluster
		c.Node.Devices = n
		t.problem.Cluster = &c
		if change, ok := s.searchChanged(t); ok {
			return change, true
		}
	}
	return Change{}, false
}

// singleNodeSteps are as many as are added one by one; beyond them nodes are only doubled.
const singleNodeSteps = 64

// MostNodes is up to how many nodes are tried where a job has some on which nothing fits.
func MostNodes(now int) int {
	const times = 16
	return times * max(now, singleNodeSteps)
}

// addNodes adds them one by one until a plan fits, then doubles them once to show what more of them buy.
func (s *searcher) moreNodes(from jobChange) []Change {
	try := func(n int) (Change, bool) {
		t, c := from.withField("cluster.nodes", n), *s.problem.Cluster
		c.Nodes = n
		t.problem.Cluster = &c
		return s.searchChanged(t)
	}
	now := s.problem.Cluster.Nodes
	for n := now + 1; n <= MostNodes(now); n++ {
		if n > now+singleNodeSteps {
			n = 2 * (n - 1)
		}
		first, ok := try(n)
		if !ok {
			continue
		}
		if second, ok := try(2 * n); ok {
			return []Change{first, second}
		}
		return []Change{first}
	}
	return nil
}

// halve halves a number of the job until a plan fits.
func (s *searcher) halve(from jobChange, key string, n int, set func(*Problem, int)) []Change {
	if key == "train.seq_len" && s.problem.WithSeq == nil {
		return nil
	}
	for n%2 == 0 {
		n /= 2
		t := from.withField(key, n)
		set(&t.problem, n)
		if c, ok := s.searchChanged(t); ok {
			return []Change{c}
		}
	}
	return nil
}
