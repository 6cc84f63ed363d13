package costmodel

import (
	"github.com/planc-dev/planc/ir"
)

// experts adds a router and its experts in the place of the MLP, or beside the one that all tokens share. A rank holds
// Experts / EP of them, cut over ETP; the tokens that it has, of those that sp split, go to their choices and back,
// spread evenly:
//
//	router     a product with as many columns as there are experts, and the choice
//	dispatch   tokens are sorted by rank, sent, and sorted by expert; all-gathered over etp
//	experts    one grouped product a matrix: a rank's experts are its batch, the tokens of each its rows
//	combine    the way back, and the sum over a token's choices; reduce-scattered over etp
func (b *builder) experts(l *Layer) {
	s, h := b.s, float64(b.s.Hidden)
	ep, etp := float64(max(1, b.p.EP)), float64(max(1, b.p.ETP))
	rows, sent := b.rows(etp)
	here, f := float64(s.Experts)/ep, float64(s.ExpertFFN)/etp
	wide := f
	if s.Gated {
		wide = 2 * f
	}
	b.held(l, GraphedRouter, func() {
		b.product(l, b.near, float64(s.Experts), h)
		b.choose(l)
	})
	if b.p.EP > 1 && !b.e.Once {
		b.stream(&l.Forward, sent, 4, weightsSent[0])
		b.stream(&l.Backward, sent, 4, weightsSent[1])
	}
	b.move(l, sent, etp, true)
	b.grouped(l, here, rows, wide, h)
	if !b.e.FusedExperts {
		b.stream(&l.Forward, rows, wide+f, 1)
		b.stream(&l.Backward, rows, 2*wide+f, 1)
		if b.e.RecomputesActivation {
			b.stream(&l.Backward, rows, wide+f, 1)
		}
	}
	b.grouped(l, here, rows, h, f)
	b.move(l, sent, etp, false)
}

// Kernels of a router's choice and of what an all-to-all has to know first, as Megatron-Core's router.py, moe_utils.py
// and token_dispatcher.py issue them (counted 2026-11-22): scores, the choice, its map and the balance's loss, forward
// and backward, fused and op by op; sums and an all-gather of how many tokens go where, forward alone; and the weights
// that go with the tokens.
var (
	choiceFused  = [2]float64{4, 3}
	choiceByOp   = [2]float64{30, 20}
	countKernels = 9.0
	weightsSent  = [2]float64{4, 2}
)

// choose is the choice of experts, and what all-to-alls have to know of it.
func (b *builder) choose(l *Layer) {
	kernels := choiceFused
	if b.e.OpByOp {
		kernels = choiceByOp
	}
	if b.p.EP > 1 && !b.e.Once {
		kernels[0] += countKernels
	}
	b.stream(&l.Forward, b.near, 3*float64(b.s.Experts), kernels[0]) // softmax, choice, counts
	b.stream(&l.Backward, b.near, 3*float64(b.s.Experts), kernels[1])
}

// rows are those that a rank's experts take, one for each choice of a token, and those that it sends: with sp the ranks
// of an etp group send their own and gather what came, else they have the same tokens.
func (b *builder) rows(etp float64) (taken, sent float64) {
	taken = b.tokens / b.tp * etp * float64(b.s.Choices)
	if b.p.SP {
		return taken, taken / etp
	}
	return taken, taken
}

// move is the way to the experts, or back from them; backward goes the other way.
func (b *builder) move(l *Layer, sent, etp float64, out bool) {
	h := float64(b.s.Hidden)
	for i, f := range []*Function{&l.Forward, &l.Backward} {
		b.stream(f, sent, 2*2*h, 2) // two sorts, each read and written
		if b.p.EP > 1 {
			x := Exchange{Op: ir.OpAllToAll, Bytes: b.size * sent * h, Axis: "ep"}
			if toExperts := out == (i == 0); toExperts && b.e.NarrowSent && b.p.Narrow {
				x.Bytes = sent * h * narrowBytes
			}
			if b.e.Once {
				x.Once = Routing{b.s.Choices, b.s.Groups, b.s.BestGroups}
			}
			f.Comms = append(f.Comms, x)
		}
	}
	switch {
	case etp == 1:
		return
	case !b.p.SP: // what the parts of an expert give is summed
		f := &l.Forward
		if out {
			f = &l.Backward
		}
		f.Comms = append(f.Comms, Exchange{Op: ir.OpAllReduce, Bytes: b.size * sent * h, Axis: "etp"})
		return
	}
	gathers, scatters := &l.Forward, &l.Backward
	if !out {
		gathers, scatters = scatters, gathers
	}
	gathers.Comms = append(gathers.Comms, Exchange{Op: ir.OpAllGather, Bytes: b.size * sent * etp * h, Axis: "etp"})
	scatters.Comms = append(scatters.Comms, Exchange{Op: ir.OpReduceScatter, Bytes: b.size * sent * etp * h,
		Axis: "etp"})
}

// grouped is a product of each of some experts with its share of the rows, n columns, depth k, with its two gradients.
func (b *builder) grouped(l *Layer, experts, rows, n, k float64) {
	kernels, casts := 1.0, 1.0
	if b.e.PerExpert && !b.e.FusedExperts {
		kernels = experts
		if b.p.Scaled {
			casts = experts
		}
	}
	one := func(x, y, z, weights float64) Op {
		return Op{Kind: Matrix, Flops: 2 * experts * x * y * z, Bytes: b.size*experts*(x*z+z*y+x*y) + weights,
			Shape: GEMM{x, y, z, experts}, Kernel: kernels, Looped: b.e.Looped}
	}
	each := rows / experts
	if b.p.Narrow && !b.e.FusedExperts {
		b.looped(&l.Forward, rows, 2*k, casts)
		b.looped(&l.Backward, rows, 2*n, casts)
	}
	l.Forward.add(one(each, n, k, 0))
	l.Backward.add(one(each, k, n, 0))
	l.Weights.add(one(k, n, each, b.sums(experts*n*k)))
}

// looped is stream, its kernels issued by a loop of the library's own.
func (b *builder) looped(f *Function, tokens, elements, kernels float64) {
	at := len(f.Ops)
	b.stream(f, tokens, elements, kernels)
	for i := range f.Ops[at:] {
		f.Ops[at+i].Looped = b.e.Looped
	}
}

// routed is what a block saves of its experts' work, in bytes: the tokens as they were sorted, and what the first
// product and the activation gave. What experts give back is not kept: a choice's weight is a factor of the activation
// (Megatron-Core's experts.py).
func (b *builder) routed() float64 {
	s := b.s
	if s.Experts == 0 {
		return 0
	}
	etp := float64(max(1, b.p.ETP))
	columns := 2 * float64(s.ExpertFFN) / etp
	if s.Gated {
		columns += float64(s.ExpertFFN) / etp
	}
	rows, _ := b.rows(etp)
	in := float64(s.Hidden)
	if b.p.Narrow { // inputs of products are kept as they were cast
		in, columns = in/2, columns-float64(s.ExpertFFN)/etp/2
	}
	if b.e.RecomputesActivation {
		columns -= b.activationKept(float64(s.ExpertFFN) / etp)
	}
	return b.size * rows * (in + columns)
}

// narrowBytes are those of an element in 8 bits with a scale in f32 for each 128 of them ("DeepSeek-V3 Technical
// Report", 3.3.2).
const narrowBytes = 1 + 4.0/128

// OnceTime is the time of an all-to-all of b bytes to experts, a copy for each choice, where a token goes over the
// network once to each node and over the links once to each rank that any of its choices is on (DeepEP, Zhao et al.
// 2025).
func (c *Cluster) OnceTime(p Placement, b Bytes, r Routing) Seconds {
	part := func(places int) Bytes { return Bytes(r.Slots(places) / float64(r.Choices)) }
	near := c.CollectiveTime(ir.OpAllToAll, Placement{Local: p.Local, Nodes: 1, Span: 1}, b*part(p.Ranks()))
	if p.Nodes == 1 {
		return near
	}
	return max(near, c.CollectiveTime(ir.OpAllToAll, p, b*part(p.Nodes)))
}
