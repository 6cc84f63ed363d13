package zoo

import (
	"math"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// balance adds the router's auxiliary losses, without which it would send most tokens to few experts: coefficients of
//
//	experts · Σ_e f_e p_e   f_e: fraction of the choices that expert e got, p_e: its mean score (Fedus et al. 2021)
//	mean lse²               lse: log-sum-exp of the router's outputs, the z-loss (Zoph et al. 2022)
//
// Both are means over the groups of tokens of the step. The first is 1 if experts are balanced. f has no gradient.
func (m *model) balance(b *builder, scores, index *ir.Value) {
	if m.Balance > 0 {
		group := []ir.Dim{ir.Batch, ir.Candidate}
		if m.Over == spec.OverMicroBatch || m.Over == spec.OverGlobalBatch {
			group = group[1:]
		}
		tally := b.op("tally", ir.OpTally, ir.Attr{}, group, index)
		tally.Type.Elem = b.elem.Statistic()
		each := b.op("balance", ir.OpBalance, ir.Attr{Gate: m.route().Gate}, group[:len(group)-1], scores, tally)
		if len(group) > 1 {
			each = b.op("balances", ir.OpReduceSum, ir.Attr{}, nil, each)
		}
		b.accumulate(b.op("balance_part", ir.OpScale, ir.Attr{Scale: m.Balance / float64(m.Choices)}, nil,
			each), ir.IntoAux)
	}
	if m.RouterZ > 0 {
		lse := b.op("route_lse", ir.OpLogSumExp, ir.Attr{}, tokens, scores)
		squares := b.same("route_lse2", ir.OpMul, ir.Attr{}, lse, lse)
		sum := b.op("route_z", ir.OpReduceSum, ir.Attr{}, nil, squares)
		b.accumulate(b.op("route_z_part", ir.OpScale, ir.Attr{Scale: m.RouterZ / float64(m.opt.SeqLen)}, nil,
			sum), ir.IntoAux)
	}
}

// limited drops the choices of a sequence that exceed an expert's capacity: the even share of choices, times the
// capacity factor, rounded up.
func (m *model) limited(b *builder, index *ir.Value) *ir.Value {
	if m.Capacity == 0 {
		return index
	}
	limit := math.Ceil(m.Capacity * float64(m.opt.SeqLen*m.Choices) / float64(m.Experts))
	limited := b.same("kept", ir.OpLimit, ir.Attr{Dim: ir.Seq, Max: int(limit)}, index)
	limited.Type.Elem = ir.I32
	return limited
}
