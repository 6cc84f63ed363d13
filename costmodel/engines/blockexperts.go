package engines

import (
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// expertBuilder builds the router and the experts of a block.
type expertBuilder struct{ *builder }

// experts adds the router and the experts, which replace the MLP or run in addition to the shared expert. A rank holds
// Experts/EP experts, each sharded over ETP. The tokens that the rank has under sp are sent to their experts and back,
// evenly distributed:
//
//	router     a matmul with one column per expert, and the choice
//	dispatch   tokens are sorted by rank, sent, and sorted by expert; all-gather over etp
//	experts    one grouped GEMM per matrix, whose batch is the rank's experts and whose rows are each expert's tokens
//	combine    the way back, and the sum over a token's choices; reduce-scatter over etp
func (b expertBuilder) experts(l *Layer) {
	s, h := b.s, float64(b.s.Hidden)
	ep, etp := float64(max(1, b.p.EP)), float64(max(1, b.p.ETP))
	rows, sent := b.rows(etp)
	here, f := float64(s.Experts)/ep, float64(s.ExpertFFN)/etp
	wide := f
	if s.Gated {
		wide = 2 * f
	}
	b.held(l, GraphedRouter, func() {
		b.matmul(l, b.near, float64(s.Experts), h)
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

// Numbers of kernels of the router's choice, and of the exchange of counts before an all-to-all, as Megatron-Core's
// router.py, moe_utils.py and token_dispatcher.py launch them (counted 2026-11-22). The first two are the scores, the
// choice, its map and the balancing loss, in forward and backward, fused and op by op. Next are the sums and the
// all-gather of the numbers of tokens, in forward only. The last are the expert weights that are sent along with the
// tokens.
var (
	choiceFused  = [2]float64{4, 3}
	choiceByOp   = [2]float64{30, 20}
	countKernels = 9.0
	weightsSent  = [2]float64{4, 2}
)

// choose adds the choice of experts and the exchange of counts that all-to-alls need.
func (b expertBuilder) choose(l *Layer) {
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

// rows returns how many rows a rank's experts process, one per choice of a token, and how many rows the rank sends.
// With sp the ranks of an etp group send different tokens and gather what they receive; otherwise they have the same
// tokens.
func (b expertBuilder) rows(etp float64) (taken, sent float64) {
	taken = b.tokens / b.tp * etp * float64(b.s.Choices)
	if b.p.SP {
		return taken, taken / etp
	}
	return taken, taken
}

// move adds the way to the experts or back from them. In backward, tokens move in the opposite direction.
func (b expertBuilder) move(l *Layer, sent, etp float64, out bool) {
	h := float64(b.s.Hidden)
	for i, f := range []*Function{&l.Forward, &l.Backward} {
		b.stream(f, sent, 2*2*h, 2) // two sorts, each a read and a write
		if b.p.EP > 1 {
			x := Exchange{Op: ir.OpAllToAll, Bytes: b.size * sent * h, Axis: "ep"}
			if toExperts := out == (i == 0); toExperts && b.e.NarrowSent && b.p.Narrow {
				x.Bytes = sent * h * narrowBytes
			}
			if b.e.Once {
				x.Once = costmodel.Routing{Choices: b.s.Choices, Groups: b.s.Groups, BestGroups: b.s.BestGroups}
			}
			f.Comms = append(f.Comms, x)
		}
	}
	switch {
	case etp == 1:
		return
	case !b.p.SP: // the partial results of an expert's shards are summed
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

// grouped adds a GEMM for each of some experts with its share of the rows, n columns and depth k, and its two
// gradients.
func (b expertBuilder) grouped(l *Layer, experts, rows, n, k float64) {
	kernels, casts := 1.0, 1.0
	if b.e.PerExpert && !b.e.FusedExperts {
		kernels = experts
		if b.p.Scaled {
			casts = experts
		}
	}
	one := func(x, y, z, weights float64) costmodel.Op {
		return costmodel.Op{Kind: costmodel.Matrix, Flops: 2 * experts * x * y * z,
			Bytes: b.size*experts*(x*z+z*y+x*y) + weights,
			Shape: costmodel.GEMM{M: x, N: y, K: z, Batch: experts}, Kernel: kernels, Looped: b.e.Looped}
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

// looped is stream for kernels that a library launches in a loop of its own.
func (b expertBuilder) looped(f *Function, tokens, elements, kernels float64) {
	at := len(f.Ops)
	b.stream(f, tokens, elements, kernels)
	for i := range f.Ops[at:] {
		f.Ops[at+i].Looped = b.e.Looped
	}
}

// routed returns the bytes that a block saves for its experts: the sorted tokens, and the results of the first GEMM and
// of the activation. The experts' outputs are not saved, because the weight of a choice is multiplied into the
// activation (Megatron-Core's experts.py).
func (b expertBuilder) routed() float64 {
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
	if b.p.Narrow { // inputs of GEMMs are saved as FP8
		in, columns = in/2, columns-float64(s.ExpertFFN)/etp/2
	}
	if b.e.RecomputesActivation {
		columns -= b.activationKept(float64(s.ExpertFFN) / etp)
	}
	return b.size * rows * (in + columns)
}

// narrowBytes are the bytes of an FP8 element with an f32 scale per 128 elements ("DeepSeek-V3 Technical Report",
// 3.3.2).
const narrowBytes = 1 + 4.0/128
