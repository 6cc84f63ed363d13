package price

import (
	"math"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// moeLoad is the expected work of a block's experts for the tokens of a micro-batch, if each token is equally likely
// to choose any expert. Memory, communication and element-wise ops process all slots of each round. A CPU's GEMMs
// skip empty slots, so their work is that of the tokens, in any number of rounds.
type moeLoad struct {
	rounds     float64
	filledPart float64 // fraction of all slots that GEMMs work on
	emptyPart  float64 // fraction of all slots that no token fills
	// consecutive rows of a GEMM without an empty slot between them; 0 means all
	rowRun float64
}

// expertDemand is how many tokens of a rank choose an expert, and the slots for them.
type expertDemand struct {
	even    float64 // if all experts are chosen equally often
	mean    float64 // even, minus dropped tokens
	fullest float64 // expected tokens of the fullest expert
	limit   float64 // tokens that no expert exceeds
	slots   float64 // per round
}

// expertDemand returns the demand of a micro-batch. A rank's choices of an expert are binomial, limited by what the
// expert accepts of a sequence. All ranks that exchange tokens run rounds until the fullest expert is done. The
// largest of n such counts is about sqrt(2 ln n) deviations above their mean.
func (s *layerTimer) expertDemand(k *profileKey, micro int) expertDemand {
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

// rounds returns the rounds after which no expert has waiting tokens.
func (c *expertDemand) rounds() float64 { return max(1, math.Ceil(c.fullest/c.slots-1e-9)) }

// moeLoad returns the load of a micro-batch.
func (s *layerTimer) moeLoad(k *profileKey, micro int) moeLoad {
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

// rowGap is the number of empty slots above which a CPU's kernel skips them; fewer are multiplied with the rest
// (runGap of runtime/cpu/gemm).
const rowGap = 8

// skipEmptySlots reduces a GEMM over all slots of a round to the slots that tokens fill. perSlot says that its result
// has a row per slot; otherwise its sum does. It returns the cost of the empty slots: they are scanned, and those of
// a result are cleared.
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

// withoutPadding returns an op over all slots of a round as if none were empty, at the same rate. A GEMM that skips
// empty slots already is.
func (l moeLoad) withoutPadding(o costmodel.Op, places bool) costmodel.Op {
	matrix, some := o.Kind == costmodel.Matrix, 1-l.emptyPart
	if matrix && l.rowRun > 0 {
		return o
	}
	fixed := 0.0 // bytes of weights or of their gradients
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

// recomputedOps returns the ops of a backward function's rounds that recompute forward values: those that do not
// depend on a gradient.
func recomputedOps(f *ir.Func) map[*ir.Node]bool {
	if !slices.ContainsFunc(f.Nodes, func(n *ir.Node) bool { return n.Attr.Round }) {
		return nil
	}
	out, fromGradient := make(map[*ir.Node]bool, len(f.Nodes)), make(map[*ir.Value]bool, len(f.Inputs)+len(f.Nodes))
	for _, v := range f.Inputs {
		fromGradient[v] = v.Place.Region == ir.PlaceDY
	}
	if !slices.ContainsFunc(f.Inputs, func(v *ir.Value) bool { return fromGradient[v] }) {
		return nil
	}
	for _, n := range f.Nodes {
		grad := slices.ContainsFunc(n.Args, func(a *ir.Value) bool { return fromGradient[a] })
		for _, o := range n.Outs {
			fromGradient[o] = grad
		}
		out[n] = n.Attr.Round && !grad
	}
	return out
}
