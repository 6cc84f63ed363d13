package search

import (
	"math"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// load is what the tokens of a micro-batch are expected to make the experts of a block do, where each token is as
// likely to choose any expert as any other. Memory, moves and loops over elements have all places of each round; a
// CPU's products pass over those that stay empty, so that their work is the tokens', in however many rounds.
type load struct {
	rounds float64
	filled float64 // of the places of all rounds, the part that products work on
	empty  float64 // of the places of all rounds, the part that no token has
	run    float64 // rows of a product that follow each other without an empty one between; 0: all
}

// chosen is how many tokens of a rank choose an expert, and the places for them.
type chosen struct {
	even   float64 // where all are chosen alike
	mean   float64 // of these, what is not dropped
	most   float64 // the fullest's, expected
	limit  float64 // what no expert exceeds
	places float64 // of a round
}

// chosen is that of a micro-batch. The choices of a rank's tokens for an expert are binomial, but no more than the
// expert takes of a sequence; all ranks that exchange tokens go on until the fullest place is empty: of n such counts
// the largest is about sqrt(2 ln n) deviations above their mean.
func (s *searcher) chosen(k *profileKey, micro int) chosen {
	tokens := float64(micro * s.dims.Seq * k.experts.etp / (k.tp * k.cp))
	choice := float64(s.dims.Choices) / float64(s.dims.Experts)
	c := chosen{even: tokens * choice, mean: tokens * choice, limit: tokens}
	if s.dims.Capacity > 0 {
		c.limit = min(tokens, float64(micro*s.dims.Capacity))
		c.mean = min(c.mean, float64(micro*s.dims.Capacity*k.experts.etp)/float64(k.tp*k.cp)) // the rest is dropped
	}
	n := float64(k.experts.ep * s.dims.Experts)
	c.most = min(c.limit, c.even+math.Sqrt(float64(2*math.Log(n)*c.even*(1-choice))))
	p := ir.Plan{DP: 1, CP: k.cp, TP: k.tp, ETP: k.experts.etp, MicroBatch: micro, MoESlack: k.experts.slack}
	c.places = float64(p.ExpertSlots(s.dims.Seq, s.dims.Experts, s.dims.Choices) / (k.tp * k.cp / k.experts.etp))
	return c
}

// rounds are those after which the fullest place is empty.
func (c *chosen) rounds() float64 { return max(1, math.Ceil(c.most/c.places-1e-9)) }

// load is that of a micro-batch.
func (s *searcher) load(k *profileKey, micro int) load {
	if k.experts.slack == 0 {
		return load{1, 1, 0, 0}
	}
	c := s.chosen(k, micro)
	places := c.places
	l := load{c.rounds(), 1, 0, 0}
	run := min(places, c.mean/l.rounds)
	l.empty = 1 - run/places
	if s.problem != nil && s.problem.Cluster.IsCPU() && places-run >= rowGap {
		l.filled, l.run = run/places, run
	}
	return l
}

// rowGap is how many empty places a CPU's kernel passes over; fewer are multiplied with the rest (runtime/cpu's
// runGap).
const rowGap = 8

// fill leaves of a product over all places of a round, whose result or whose sum has a row for each, the work of those
// that tokens have. What is left is what the empty ones cost: they are looked through, and those of a result cleared.
func (l load) fill(o *costmodel.Op, places bool) (empty costmodel.Op) {
	if o.Kind != costmodel.Matrix || l.run == 0 {
		return empty
	}
	g := o.Shape
	size := o.Bytes / (g.Batch * (g.M*g.K + g.K*g.N + g.M*g.N))
	o.Flops *= l.filled
	if places {
		o.Shape.M = l.run
		empty.Flops = (1 - l.filled) * g.Batch * g.M * g.K
		empty.Bytes = (1 - l.filled) * g.Batch * g.M * (g.K + g.N) * size
		return empty
	}
	o.Shape.K *= l.filled
	empty.Flops = (1 - l.filled) * g.Batch * g.K * g.M
	empty.Bytes = empty.Flops * size
	return empty
}

// tight is an op over all places of a round as if none of them were empty: what it would cost at the rate that it has.
// A product that passes over empty places is so already.
func (l load) tight(o costmodel.Op, places bool) costmodel.Op {
	matrix, some := o.Kind == costmodel.Matrix, 1-l.empty
	if matrix && l.run > 0 {
		return o
	}
	fixed := 0.0 // bytes of weights, or of their gradients
	if g := o.Shape; matrix {
		fixed = g.K * g.N
		if !places {
			fixed = g.M * g.N
		}
		fixed *= o.Bytes / (float64(g.M*g.K) + float64(g.K*g.N) + float64(g.M*g.N))
	}
	o.Flops *= some
	o.Bytes = fixed + float64((o.Bytes-fixed)*some)
	return o
}

// remadeBy are the ops of a function's rounds that make forward values again: those that no gradient leads to.
func remadeBy(f *ir.Func) map[*ir.Node]bool {
	if !slices.ContainsFunc(f.Nodes, func(n *ir.Node) bool { return n.Attr.Round }) {
		return nil
	}
	out, of := make(map[*ir.Node]bool, len(f.Nodes)), make(map[*ir.Value]bool, len(f.Inputs)+len(f.Nodes))
	for _, v := range f.Inputs {
		of[v] = v.Place.Region == ir.PlaceDY
	}
	if !slices.ContainsFunc(f.Inputs, func(v *ir.Value) bool { return of[v] }) {
		return nil
	}
	for _, n := range f.Nodes {
		grad := slices.ContainsFunc(n.Args, func(a *ir.Value) bool { return of[a] })
		for _, o := range n.Outs {
			of[o] = grad
		}
		out[n] = n.Attr.Round && !grad
	}
	return out
}
