package engines

import (
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// Transformer is the shape of a decoder, as other trainers run it: the sizes on which their kernels depend. Widths are
// those of the whole model, in elements.
type Transformer struct {
	Seq, Hidden, Heads, KVHeads, HeadDim, FFN, Vocab int
	// experts of a block; FFN is then the width of the shared expert, 0 if there is none
	Experts, Choices, ExpertFFN int
	// number of equal expert groups, and from how many of them a token's experts are chosen; 0: from all experts
	Groups, BestGroups int
	Gated              bool // the MLP has a gate projection (SwiGLU, GeGLU)
	Rotary             bool
	Bias               bool // projections have biases
	Dropout            bool
	Tied               bool
	KeysSeen           float64 // mean number of keys that a query sees under its mask
	MLA
}

// MLA holds the widths of multi-head latent attention, 0 without it: those of the latent vectors, of the part of a key
// that all heads share, and of a head's values.
type MLA struct{ KVLatent, QLatent, SharedKey, ValueDim int }

// Split says how ranks share a layer: parallel degrees, sequences per micro-batch, bytes per element.
type Split struct {
	TP, Micro int
	CP        int    // ranks that share a sequence; 0 means 1
	Context   string // kind of context parallelism: gather, ring or heads
	EP, ETP   int    // ranks that share the experts, and ranks that share one expert; 0 means 1
	SP        bool
	Size      int
	Sums      int  // bytes per element in which weight gradients are accumulated over micro-batches; 0 means 4
	Narrow    bool // matmuls are in FP8: their operands are cast first
	Scaled    bool // FP8 operands have a scale per block
}

// Function is the work of one rank in the forward or backward pass of a layer: kernels, and collectives in order.
type Function struct {
	Ops   []costmodel.Op
	Comms []Exchange
}

// Exchange is a collective over an axis, "" for tp. Its size is that of the whole buffer.
type Exchange struct {
	Op         ir.Op
	Bytes      float64
	Axis       ir.Axis
	Overlapped bool // overlaps attention, except for the first round
	// routing of tokens that are sent once to each rank and node that has any of their experts; zero: once per choice
	Once costmodel.Routing
}

// Layer holds a layer's functions, the bytes that it saves for backward in addition to its input, and the bytes of
// temporaries at its peak.
type Layer struct {
	Forward, Backward, Weights Function // Weights: weight gradients, which Backward does not include
	Saved                      float64
	Work                       float64
}

// add appends ops.
func (f *Function) add(ops ...costmodel.Op) { f.Ops = append(f.Ops, ops...) }

// builder builds the layers of one engine, shape and split.
type builder struct {
	e *Engine
	s *Transformer
	p Split

	tokens, near float64 // tokens of a rank's part of a micro-batch, and of that part in regions that sp shards
	tp, cp, size float64
	flash        bool
	recomputesUp bool // RecomputesUp, unless whole blocks are recomputed, which includes it
}

// Layers returns the embedding, a block and the head of a transformer under an engine. recompute is what blocks
// recompute: none, selective or full. A block that is recomputed as a whole saves only its input.
func (e *Engine) Layers(s *Transformer, p Split, recompute string) (embed, block, head Layer) {
	b := &builder{e: e, s: s, p: p, tp: float64(p.TP), cp: float64(max(1, p.CP)), size: float64(p.Size),
		flash: !e.Unfused, recomputesUp: e.RecomputesUp && recompute != "full"}
	b.tokens = float64(p.Micro*s.Seq) / b.cp
	b.near = b.tokens
	if p.SP {
		b.near /= b.tp
	}
	return b.embed(), b.block(recompute), b.head()
}

// matmul adds a matmul of m tokens, n columns and depth k, with its two gradients.
func (b *builder) matmul(l *Layer, m, n, k float64) {
	one := func(x, y, z float64) costmodel.Op {
		return costmodel.Op{Kind: costmodel.Matrix, Flops: 2 * x * y * z, Bytes: b.size * (x*z + z*y + x*y),
			Shape: costmodel.GEMM{M: x, N: y, K: z, Batch: 1}, Kernel: 1}
	}
	if b.p.Narrow { // a cast copy and its transpose; weights are cast once per step
		b.stream(&l.Forward, m, 2*k, 1)
		b.stream(&l.Backward, m, 2*n, 1)
	}
	l.Forward.add(one(m, n, k))
	l.Backward.add(one(m, k, n))
	w, sums := one(k, n, m), b.sums(n*k)
	if !b.e.SeparateSums {
		w.Bytes += sums
	}
	l.Weights.add(w)
	if b.e.SeparateSums {
		l.Weights.add(costmodel.Op{Kind: costmodel.Vector, Flops: n * k, Bytes: b.size*n*k + sums, Kernel: 1})
	}
}

// sums returns the bytes of reading and writing the accumulated gradients of a number of weights.
func (b *builder) sums(weights float64) float64 {
	size := b.p.Sums
	if size == 0 {
		size = ir.F32.Size()
	}
	return 2 * float64(size) * weights
}

// stream adds element-wise work: elements read and written per token, in a number of kernels.
func (b *builder) stream(f *Function, tokens, elements float64, kernels float64) {
	if n := tokens * elements * b.e.Elementwise; n > 0 {
		f.add(costmodel.Op{Kind: costmodel.Vector, Flops: 4 * n, Bytes: b.size * n, Kernel: kernels})
	}
}

// edge adds the collectives at the border of a tensor-parallel region. If into is true they are on the way into the
// region in forward and out of it in backward, otherwise the other way round. Without sp only one of the two passes has
// a collective. FP8 operands of matmuls are cast before they are gathered, whereas sums are in 16 bits (Transformer
// Engine's pytorch/module/base.py: "AllGather buffers use fp8 when using fp8 recipe").
func (b *builder) edge(l *Layer, into bool) {
	if b.p.TP == 1 {
		return
	}
	bytes := b.tokens * float64(b.s.Hidden) * b.size
	in, out := &l.Forward, &l.Backward
	if !into {
		in, out = out, in
	}
	if !b.p.SP {
		out.Comms = append(out.Comms, Exchange{Op: ir.OpAllReduce, Bytes: bytes})
		return
	}
	gathered := bytes
	if b.p.Narrow {
		gathered /= b.size
	}
	in.Comms = append(in.Comms, Exchange{Op: ir.OpAllGather, Bytes: gathered})
	out.Comms = append(out.Comms, Exchange{Op: ir.OpReduceScatter, Bytes: bytes})
	if into { // the input is gathered a second time for the gradient of the weights
		out.Comms = append(out.Comms, Exchange{Op: ir.OpAllGather, Bytes: gathered})
	}
}

// block builds one layer.
func (b *builder) block(recompute string) Layer {
	l := Layer{}
	var core core
	b.held(&l, GraphedDense, func() { core = b.attention(&l) })
	b.held(&l, GraphedStep, func() { b.mlp(&l) })
	b.held(&l, GraphedDense, func() { b.norms(&l) })
	b.held(&l, GraphedStep, func() { b.recompute(&l, &core, recompute) })
	return l
}

// held adds what do adds to a layer, and marks the ops as part of a CUDA graph if the engine captures that part.
func (b *builder) held(l *Layer, in Graphed, do func()) {
	all := []*Function{&l.Forward, &l.Backward, &l.Weights}
	var before [3]int
	for i, f := range all {
		before[i] = len(f.Ops)
	}
	do()
	for i, f := range all {
		for j := before[i]; j < len(f.Ops) && b.e.Graphed >= in; j++ {
			f.Ops[j].Held = true
		}
	}
}

// recompute sets what a block saves, and adds the recomputation of the rest.
func (b *builder) recompute(l *Layer, core *core, recompute string) {
	switch recompute {
	case "selective": // scores are recomputed
		if b.e.Outputs {
			b.outputs(l, core)
			break
		}
		l.Saved = b.savedBytes()
		l.Work += core.saved
		l.Backward.Ops = append(l.Backward.Ops, core.forward.Ops...)
	case "full":
		l.Work += b.savedBytes() + core.saved
		l.Backward.Ops = append(l.Backward.Ops, l.Forward.Ops...)
		l.Backward.Comms = append(l.Backward.Comms, l.Forward.Comms...)
	default:
		l.Saved = b.savedBytes() + core.saved
	}
}

// outputs recomputes everything except attention and every second matmul.
func (b *builder) outputs(l *Layer, c *core) {
	at := 0
	for _, o := range l.Forward.Ops {
		switch {
		case o.Kind == costmodel.Vector:
			l.Backward.add(o)
		case o.Kind == costmodel.Matrix:
			at++
			if at%2 == 0 {
				l.Backward.add(o)
			}
		}
	}
	l.Saved = 0.5*b.savedBytes() + c.saved
	l.Work += 0.5 * b.savedBytes()
}

// core is the part of attention that selective recomputation repeats.
type core struct {
	forward Function
	saved   float64 // size of the scores
}

// attention adds the projections and attention itself.
func (b *builder) attention(l *Layer) core {
	s := b.s
	h, q := float64(s.Hidden), float64(s.Heads*s.HeadDim)/b.tp
	kv := float64(max(s.KVHeads, b.p.TP)*s.HeadDim) / b.tp
	out := q
	if s.KVLatent > 0 {
		q, kv, out = b.mla(l)
	} else {
		b.edge(l, true)
		b.matmul(l, b.tokens, q+2*kv, h)
	}
	b.context(l, q, kv)
	c := b.scores(l, q, kv)
	b.matmul(l, b.tokens, h, out)
	b.edge(l, false)
	if s.Rotary {
		kernels, traffic := 2.0, 2.0
		if b.e.OpByOp { // halves are split, rotated, joined, scaled and added
			kernels, traffic = 24, 8
		}
		b.stream(&l.Forward, b.tokens, traffic*(q+kv), kernels)
		b.stream(&l.Backward, b.tokens, traffic*(q+kv), kernels)
	}
	if s.Bias { // added to queries, keys and values; its gradient is a sum
		b.stream(&l.Weights, b.tokens, q+2*kv, 1)
	}
	return c
}

// scores adds attention itself: fused, or with the scores in memory.
func (b *builder) scores(l *Layer, q, kv float64) core {
	s := b.s
	heads, n := float64(s.Heads)/b.tp*float64(b.p.Micro), float64(s.Seq) // with cp each rank has its share of the pairs
	d := b.headDim()
	if b.flash {
		flops, keys := 4*heads*n*s.KeysSeen*d/b.cp, kv*b.cp
		if b.p.Context == "heads" {
			keys = kv
		}
		f := costmodel.Op{Kind: costmodel.Attention, Flops: flops,
			Bytes: b.size * b.tokens * (2*q + 2*keys), Shape: costmodel.GEMM{K: d}, Kernel: 1}
		g := costmodel.Op{Kind: costmodel.AttentionGrad, Flops: 2.5 * flops, Bytes: b.size * b.tokens * (4*q + 4*keys),
			Shape: costmodel.GEMM{K: d}, Kernel: 3}
		l.Forward.add(f)
		l.Backward.add(g)
		return core{forward: Function{Ops: []costmodel.Op{f}}}
	}
	heads /= b.cp
	pairs := heads * n * n
	one := func(x, y, z float64) costmodel.Op {
		return costmodel.Op{Kind: costmodel.Matrix, Flops: 2 * heads * x * y * z,
			Bytes: b.size * heads * (x*z + z*y + x*y),
			Shape: costmodel.GEMM{M: x, N: y, K: z, Batch: heads}, Kernel: 1}
	}
	touch := func(f *Function, elements, kernels float64) {
		f.add(costmodel.Op{Kind: costmodel.Vector, Flops: 8 * pairs, Bytes: b.size * pairs * elements, Kernel: kernels})
	}
	c := core{saved: b.size * pairs}
	c.forward.add(one(n, n, d))
	touch(&c.forward, 2, 1) // mask and softmax
	if s.Dropout {
		touch(&c.forward, 2.5, 1)
		c.saved = 2.5 * b.size * pairs
	}
	c.forward.add(one(n, d, n))
	l.Forward.Ops = append(l.Forward.Ops, c.forward.Ops...)
	l.Backward.add(one(n, n, d), one(n, d, n), one(n, d, n), one(n, d, n))
	touch(&l.Backward, 3, 1)
	if s.Dropout {
		touch(&l.Backward, 2.5, 1)
	}
	return c
}

// mlp adds the MLP or the experts.
func (b *builder) mlp(l *Layer) {
	if b.s.Experts > 0 {
		expertBuilder{b}.experts(l)
	}
	if b.s.FFN == 0 {
		return
	}
	f, h := float64(b.s.FFN)/b.tp, float64(b.s.Hidden)
	b.edge(l, true)
	wide := f
	if b.s.Gated {
		wide = 2 * f
	}
	b.matmul(l, b.tokens, wide, h)
	b.stream(&l.Forward, b.tokens, wide+f, 1)
	b.stream(&l.Backward, b.tokens, 2*wide+f, 1)
	if b.e.RecomputesActivation {
		b.stream(&l.Backward, b.tokens, wide+f, 1)
	}
	if b.s.Bias {
		b.stream(&l.Weights, b.tokens, f, 1)
	}
	b.matmul(l, b.tokens, h, f)
	b.edge(l, false)
}

// norms adds norms, residual sums and dropout, in the regions that sp shards.
func (b *builder) norms(l *Layer) {
	h := float64(b.s.Hidden)
	forward, backward := 2*2.0+2*3.0, 2*3.0+2*2.0
	if b.s.Dropout {
		forward, backward = forward+2*0.5, backward+2*2.5
	}
	b.stream(&l.Forward, b.near, forward*h, 4)
	b.stream(&l.Backward, b.near, backward*h, 6)
	if b.e.RecomputesNorms {
		b.stream(&l.Backward, b.near, 2*2.0*h, 2)
	}
	if b.s.Bias {
		b.stream(&l.Weights, b.near, 2*h, 2)
	}
}

// activationKept returns how many elements less per token an MLP of a width saves if the engine recomputes the
// activation: the activation's result, and half of its inputs if they are saved as FP8.
func (b *builder) activationKept(width float64) float64 {
	if !b.p.Narrow {
		return width
	}
	inputs := width
	if b.s.Gated {
		inputs = 2 * width
	}
	return width/2 + inputs/2
}

// savedBytes returns the bytes that a block saves in addition to its input and scores: equations 1-4 of Korthikanti et
// al. 2022, with the model's MLP width and K/V heads.
func (b *builder) savedBytes() float64 {
	s := b.s
	h, q := float64(s.Hidden), float64(s.Heads*s.HeadDim)/b.tp
	kv, f := float64(max(s.KVHeads, b.p.TP)*s.HeadDim)/b.tp, float64(s.FFN)/b.tp
	if s.KVLatent > 0 {
		q, _ = b.mlaWidths()
		kv = q
	}
	near := 3*h + b.mlaSaved() // of the four inputs of norms and projections, the block's own counts as its input
	if b.e.RecomputesNorms {   // only the inputs of norms are saved
		near = h + b.mlaSaved()/2
	}
	far := q + 2*kv + q + 2*f
	if s.KVLatent > 0 && b.recomputesUp {
		far -= q + 2*kv
	}
	if s.Gated {
		far += f
	}
	if b.p.Narrow { // inputs of matmuls are saved as FP8
		far -= (q + f) / 2
		if !b.e.RecomputesNorms {
			near -= h
		}
	}
	if b.e.RecomputesActivation {
		far -= b.activationKept(f)
	}
	bytes := b.size*(b.near*near+b.tokens*far) + expertBuilder{b}.routed()
	if s.Dropout {
		bytes += b.near * 2 * h // dropout masks
	}
	if b.flash {
		bytes += 4 * b.tokens * float64(s.Heads) / b.tp // log-sum-exp
	}
	return bytes
}
