package search

import (
	"cmp"
	"maps"
	"slices"
)

// changeFinder finds changes of a job for which no plan fits.
type changeFinder struct{ *searcher }

// jobChange is a change of the job that may make a plan fit.
type jobChange struct {
	set     map[string]any
	problem Problem
}

// withField returns the change with one more field set.
func (t jobChange) withField(key string, value any) jobChange {
	t.set = maps.Clone(t.set)
	t.set[key] = value
	return t
}

// fewPins is the largest number of pins that are named one by one. If more are all removed, the change names the
// job's plan as one field.
const fewPins = 3

// withoutPins returns the problem with some pins removed.
func (s changeFinder) withoutPins(keys ...string) jobChange {
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

// searchChanged searches under a change. Layers do not depend on the pins or the number of devices, so their profiles
// are shared.
func (s changeFinder) searchChanged(t jobChange) (Change, bool) {
	q, err := (&Series{memo: *s.Memo()}).searcher(&t.problem)
	if err != nil || q.ArenaCapacity() <= 0 {
		return Change{}, false
	}
	sp, err := q.space(&t.problem)
	if err != nil {
		return Change{}, false
	}
	c, _, found := q.choose(sp, nil)
	return Change{t.set, c.best, t.problem.Cluster}, found
}

// changes returns the changes of the job under which a plan fits, the cheapest first (see [cheapestFirst]). Changes
// of equal cost keep this order: removed pins, fewer before more and the faster before the slower; less headroom;
// narrower number formats; then what costs devices or changes the training, see larger. Pins and devices together are
// tried only if neither helps alone.
func (s changeFinder) changes() []Change {
	out := slices.Concat(s.unpin(), s.lessHeadroom(), s.narrower(), s.larger(s.withoutPins()))
	if pins := s.problem.Pins.Keys(); len(out) == 0 && len(pins) > 0 {
		out = s.larger(s.withoutPins(pins...))
	}
	cheapestFirst(out)
	return out
}

// cheapestFirst sorts changes by the cost per hour of their clusters: price_per_hour of a node times nodes, or the
// number of devices if the cluster has no price. At the same price, fewer devices come first, so a change that keeps
// the cluster comes first. Other changes keep their order.
func cheapestFirst(changes []Change) {
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.PricePerHour(), b.PricePerHour()), cmp.Compare(a.Cluster.Devices(),
			b.Cluster.Devices()))
	})
}

// ChangesThatFit returns changes of a job that keep its pins and under which a plan fits, the cheapest first: less
// headroom, narrower number formats, half the batch, and more devices or nodes. Pins of dp and of what depends on it
// must not be among the problem's if the number of devices is to change.
func ChangesThatFit(p *Problem) []Change {
	s, err := newSearcher(p)
	if err != nil {
		return nil
	}
	f := changeFinder{s}
	out := slices.Concat(f.lessHeadroom(), f.narrower(), f.larger(f.withoutPins()))
	if len(p.Cluster.Network) > 0 { // without a network, larger halves it
		out = append(out, f.halveBatch(f.withoutPins())...)
	}
	cheapestFirst(out)
	return out
}

// unpin removes pins one at a time, and all of them if no single one helps as much.
func (s changeFinder) unpin() []Change {
	pins := s.problem.Pins.Keys()
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
	if c, ok := s.searchChanged(s.withoutPins(pins...)); ok &&
		(len(out) == 0 || c.Best.Predict.StepS < out[0].Best.Predict.StepS) {
		out = append(out, c)
	}
	return out
}

// LeastHeadroom is the smallest headroom that is offered if nothing fits, as a fraction of a device. It is above the
// error margin of a plan's memory, 3 % + 64 MiB.
const LeastHeadroom = 0.05

// lessHeadroom tries LeastHeadroom.
func (s changeFinder) lessHeadroom() []Change {
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

// narrower tries narrower number formats and returns the widest that fits.
func (s changeFinder) narrower() []Change {
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

// larger uses more devices per node, or else more nodes. Without a network, it halves the batch or the sequence
// instead.
func (s changeFinder) larger(from jobChange) []Change {
	if c, ok := s.moreDevices(from); ok {
		return []Change{c}
	}
	if len(s.problem.Cluster.Network) > 0 {
		return s.moreNodes(from)
	}
	return append(s.halveBatch(from), s.halve(from, "train.seq_len", s.dims.Seq, func(p *Problem, n int) {
		p.Model = p.WithSeq(n)
	})...)
}

// moreDevices uses the fewest additional devices per node with which a plan fits, if the node has more.
func (s changeFinder) moreDevices(from jobChange) (Change, bool) {
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

// singleNodeSteps is the number of nodes that are added one by one; beyond it, the number of nodes is doubled.
const singleNodeSteps = 64

// MostNodes returns the largest number of nodes that is tried for a job for which nothing fits.
func MostNodes(now int) int {
	const times = 16
	return times * max(now, singleNodeSteps)
}

// moreNodes adds nodes until a plan fits, then doubles them once to show what more nodes buy.
func (s changeFinder) moreNodes(from jobChange) []Change {
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

// halveBatch halves the global batch until a plan fits.
func (s changeFinder) halveBatch(from jobChange) []Change {
	return s.halve(from, "train.global_batch", s.problem.GlobalBatch, func(p *Problem, n int) { p.GlobalBatch = n })
}

// halve halves a number of the job until a plan fits.
func (s changeFinder) halve(from jobChange, key string, n int, set func(*Problem, int)) []Change {
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
