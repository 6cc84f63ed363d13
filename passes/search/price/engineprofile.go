package price

import (
	"cmp"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
	"github.com/planc-dev/planc/passes/search/space"
)

// Runtimes other than planc's run other kernels and save other values. Their layers come from costmodel. Everything
// else comes from the passes: stages, buckets, schedules and arenas. So one search serves all engines.

// transformerShape returns the shape of a model as other runtimes run it.
func transformerShape(m *ir.Model, d space.Dims) engines.Transformer {
	t := engines.Transformer{Seq: d.Seq, Hidden: d.Hidden, Heads: d.Heads(), KVHeads: d.KVHeads, FFN: d.FFN,
		Vocab: d.Vocab, KeysSeen: float64(d.Seq)}
	for _, s := range m.Segments {
		for _, n := range s.Forward.Nodes {
			switch n.Op {
			case ir.OpRoute:
				t.Groups, t.BestGroups = n.Attr.Groups, n.Attr.Best
			case ir.OpAttention:
				e, _ := n.Args[0].Type.Extent(ir.HeadDim)
				v, _ := n.Args[2].Type.Extent(ir.VDim)
				t.HeadDim, t.ValueDim, t.Dropout = e.Size, v.Size, t.Dropout || n.Attr.Drop > 0
				t.KeysSeen = keysSeen(n)
			case ir.OpMul:
				_, wide := n.Outs[0].Type.Extent(ir.FFN)
				_, expert := n.Outs[0].Type.Extent(ir.ExpertFFN)
				t.Gated = t.Gated || wide || expert
			case ir.OpRope:
				t.Rotary = true
			case ir.OpDropout:
				t.Dropout = true
			case ir.OpAdd:
				t.Bias = t.Bias || n.Args[1].Kind == ir.Weight
			}
		}
		for _, w := range s.Forward.Weights() {
			t.Tied = t.Tied || w.Param.Tied != ""
			for d, to := range map[ir.Dim]*int{ir.QLatent: &t.QLatent, ir.KVLatent: &t.KVLatent,
				ir.RotaryDim: &t.SharedKey} {
				if e, ok := w.Type.Extent(d); ok {
					*to = e.Size
				}
			}
		}
	}
	return t
}

// keysSeen returns the mean number of keys that a query attends to. Attention takes four flops per pair and head
// width.
func keysSeen(n *ir.Node) float64 {
	flops, pairs := n.Flops(ir.Mesh{}), 2.0
	seen := map[ir.Dim]bool{}
	for _, v := range n.Args[:2] {
		for _, e := range v.Type.Dims {
			if e.Dim != ir.KSeq && !seen[e.Dim] {
				seen[e.Dim] = true
				if e.Dim == ir.HeadDim {
					pairs *= 2
				}
				pairs *= float64(e.Size)
			}
		}
	}
	return flops / pairs
}

// layerShape is the shape of a model as other runtimes run it.
type layerShape engines.Transformer

// replaceByEngine replaces the layers of a profile with those of the engine, if that is not planc's.
func (s *layerProfiler) replaceByEngine(p *profile, k profileKey) {
	e := s.problem.PricedEngine()
	if e.Own {
		return
	}
	shape := layerShape(transformerShape(s.problem.Model, s.dims))
	split := engines.Split{TP: k.tp, CP: k.cp, Context: k.cpKind, EP: k.experts.ep, ETP: k.experts.etp,
		Micro: k.micro,
		SP:    k.sp, Size: s.problem.Precision.Compute.Size(), Sums: e.Sums(s.problem.Precision),
		Narrow: s.problem.Computes() == "fp8" || s.problem.Computes() == costmodel.MXFP8,
		Scaled: s.problem.Computes() == costmodel.MXFP8}
	more := split
	more.Micro++
	segs := p.prog.Model.Segments
	for i, seg := range segs {
		own := shape.transformer(s.problem.Model.Segments[i])
		pick := func(p engines.Split, recompute string) *engines.Layer {
			embed, block, head := e.Layers(&own, p, recompute)
			switch {
			case i == 0 && s.dims.Embed:
				return &embed
			case i == len(segs)-1 && s.dims.Head:
				return &head
			}
			return &block
		}
		p.replace(seg, pick(split, "none"), pick(more, "none"), k.splitBackward)
		if seg.Remat != nil {
			p.replace(seg.Remat, pick(split, k.recompute), pick(more, k.recompute), k.splitBackward)
		}
	}
	p.logits = 0 // other engines have no entry for sampling
}

// of returns the shape of one segment's layers: its own MLP width, and its experts if it has any.
func (t layerShape) transformer(seg *ir.Segment) engines.Transformer {
	own := engines.Transformer(t)
	own.FFN, own.Experts, own.Choices, own.ExpertFFN = 0, 0, 0, 0
	for _, n := range seg.Forward.Nodes {
		for _, v := range n.Outs {
			for _, e := range v.Type.Dims {
				switch e.Dim {
				case ir.FFN:
					own.FFN = e.Size
				case ir.Expert:
					own.Experts = e.Size
				case ir.Choice:
					own.Choices = e.Size
				case ir.ExpertFFN:
					own.ExpertFFN = e.Size
				}
			}
		}
	}
	return own
}

// replace sets a variant's profile; grown is the layer with one more sequence.
func (p *profile) replace(v *ir.Segment, l, grown *engines.Layer, apart bool) {
	to := p.segment(v)
	to.work, to.saved = int(l.Work), linearBytes{int(l.Saved), int(grown.Saved - l.Saved)}
	to.forward = linearFunction(l.Forward, grown.Forward)
	to.backward, to.weights = linearFunction(l.Backward, grown.Backward), linearFunction(l.Weights, grown.Weights)
	if !apart || v.Weights == nil {
		to.backward.ops = append(to.backward.ops, to.weights.ops...)
		to.backward.flops += to.weights.flops
		to.backward.matmulFlops += to.weights.matmulFlops
		to.backward.matmulSlope += to.weights.matmulSlope
		to.weights = funcProfile{}
	}
}

// axisGroup returns the group of a collective, given only its axis.
func axisGroup(a ir.Axis) commGroup {
	if a == "ep" || a == "etp" {
		return commGroup{experts: []ir.Axis{a}}
	}
	return commGroup{}
}

// linearFunction returns a function's ops and collectives as linear functions of the micro-batch.
func linearFunction(f, grown engines.Function) funcProfile {
	p := funcProfile{}
	for i := range f.Ops {
		p.add(f.Ops[i], false, false)
		p.ops[i].slope = f.Ops[i].Slope(&grown.Ops[i])
		if f.Ops[i].Kind != costmodel.Vector {
			p.matmulSlope += p.ops[i].slope.Flops
		}
	}
	for i, c := range f.Comms {
		what := ir.Collective{Op: c.Op, Axes: []ir.Axis{cmp.Or(c.Axis, "tp")}, Bytes: int(c.Bytes)}
		p.comms = append(p.comms, linearComm{collective: what, slope: grown.Comms[i].Bytes - c.Bytes,
			overlapped: c.Overlapped,
			routing:    c.Once, group: axisGroup(c.Axis)})
	}
	return p
}

// useEngineSizes replaces the sizes that the passes save with those that the engine's layers save.
func (b *baseProfile) useEngineSizes() {
	for i, v := range b.prog.Model.Variants() {
		found := b.profile.segment(v)
		work := linearTemp{Temp: passes.Temp{Bytes: found.work}, slope: found.work}
		b.sizes[i] = variantSizes{slots: []linearBytes{found.saved}, temps: [][]linearTemp{{work}}}
	}
}

// engineBytes returns the bytes of a stage under an engine that adds memory to the arena, comparable with stageBytes.
func (s *memoryPricer) engineBytes(f *Family, k *activationMemory, n *stateMemory, h *stageBuffers) int {
	a := s.arena(f, k, n, h)
	m := s.memoryOf(&a, f)
	return int(m.Total-m.Capacity) + s.arenaCapacity
}
