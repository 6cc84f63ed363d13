package search

import (
	"math"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// moeLoad is what the tokens of a micro-batch are expected to make the experts of a block do, where each token is as
// likely to choose any expert as any other. Memory, moves and loops over elements have all places of each round; a
// CPU's products pass over those that stay empty, so that their work is the tokens', in however many rounds.
type moeLoad struct {
	rounds     float64
	filledPart float64 // of the places of all rounds, the part that products work on
	emptyPart  float64 // of the places of all rounds, the part that no token has
	rowRun     float64 // rows of a product that follow each other without an empty one between; 0: all
}

// expertDemand is how many tokens of a rank choose an expert, and the places for them.
type expertDemand struct {
	even    float64 // where all are chosen alike
	mean    float64 // of these, what is not dropped
	fullest float64 // the fullest's, expected
	limit   float64 // what no expert exceeds
	slots   float64 // of a round
}

// expertDemand is that of a micro-batch. The choices of a rank's tokens for an expert are binomial, but no more than the
// expert takes of a sequence; all ranks that exchange tokens go on until the fullest place is empty: of n such counts
// the largest is about sqrt(2 ln n) deviations above their mean.
func (s *searcher) expertDemand(k *profileKey, micro int) expertDemand {
	tokens := float64(micro * s.dims.Seq * k.experts.etp / (k.tp * k.cp))
	choice := float64(s.dims.Choices) / float64(s.dims.Experts)
	c := expertDemand{even: tokens * choice, mean: tokens * choice, limit: tokens}
	if s.dims.Capacity > 0 {
		c.limit = min(tokens, float64(micro*s.dims.Capacity))
		c.mean = min(c.mean, float64(micro*s.dims.Capacity*k.experts.etp)/float64(k.tp*k.cp)) // the rest is dropped
	}
	n := float64(k.experts.ep * s.dims.Experts)
	c.fullest = min(c.limit, c.even+math.Sqrt(float64(2*math.Log(n)*c.even*(1-choice))))
	p := ir.Plan{DP: 1, CP: k.cp, TP: k.tp, ETP: k.experts.etp, MicroBatch: micro, MoESlack: k.experts.slack}
	c.slots = float64(p.ExpertSlots(s.dims.Seq, s.dims.Experts, s.dims.Choices) / (k.tp * k.cp / k.experts.etp))
	return c
}

// rounds are those after which the fullest place is empty.
func (c *expertDemand) rounds() float64 { return max(1, math.Ceil(c.fullest/c.slots-1e-9)) }

// moeLoad is that of a micro-batch.
func (s *searcher) moeLoad(k *profileKey, micro int) moeLoad {
	if k.experts.slack == 0 {
		return moeLoad{1, 1, 0, 0}
	}
	c := s.expertDemand(k, micro)
	places := c.slots
	l := moeLoad{c.rounds(), 1, 0, 0}
	run := min(places, c.mean/l.rounds)
	l.emptyPart = 1 - run/places
	if s.problem != nil && s.problem.Cluster.IsCPU() && places-run >= rowGap {
		l.filledPart, l.rowRun = run/places, run
	}
	return l
}

// rowGap is how many empty places a CPU's kernel passes over; fewer are multiplied with the rest (runtime/cpu's
// runGap).
const rowGap = 8

// skipEmptySlots leaves of a product over all places of a round, whose result or whose sum has a row for each, the work of those
// that tokens have. What is left is what the empty ones cost: they are looked through, and those of a result cleared.
func (l moeLoad) skipEmptySlots(o *costmodel.Op, places bool) (empty costmodel.Op) {
	if o.Kind != costmodel.Matrix || l.rowRun == 0 {
		return empty
	}
	g := o.Shape
	size := o.Bytes / (g.Batch * (g.M*g.K + g.K*g.N + g.M*g.N))
	o.Flops *= l.filledPart
	if places {
		o.Shape.M = l.rowRun
		empty.Flops = (1 - l.filledPart) * g.Batch * g.M * g.K
		empty.Bytes = (1 - l.filledPart) * g.Batch * g.M * (g.K + g.N) * size
		return empty
	}
	o.Shape.K *= l.filledPart
	empty.Flops = (1 - l.filledPart) * g.Batch * g.K * g.M
	empty.Bytes = empty.Flops * size
	return empty
}

// withoutPadding is an op over all places of a round as if none of them were empty: what it would cost at the rate that it has.
// A product that passes over empty places is so already.
func (l moeLoad) withoutPadding(o costmodel.Op, places bool) costmodel.Op {
	matrix, some := o.Kind == costmodel.Matrix, 1-l.emptyPart
	if matrix && l.rowRun > 0 {
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

// recomputedOps are the ops of a function's rounds that make forward values again: those that no gradient leads to.
func recomputedOps(f *ir.Func) map[*ir.Node]bool {
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
