package rank

import (
	"fmt"

	"github.com/planc-dev/planc/runtime/tensors"
)

// ExpertBiasNote returns the line at the start of a run that updates the expert bias, which transformers never does; ""
// for other runs.
func (p *Program) ExpertBiasNote(rate float64) string {
	if rate == 0 || !p.HasExpertBias() {
		return ""
	}
	return fmt.Sprintf("expert bias: each step moves it by %v against the expert's load (train.experts.bias_rate); "+
		"transformers keeps it fixed; use --set train.experts.bias_rate=0 for that", rate)
}

// balance updates the bias of the experts' scores: up by BiasRate if the expert got fewer choices than its share of the
// step's, down if it got more (Wang et al. 2024, as in DeepSeek-V3). The gradient of the bias is the number of choices.
// Both sides of the comparison are whole numbers, so that every plan finds the same sign. state is the difference
// between an element's number and that of its optimizer state.
func (u *updater[F]) balance(bucket int, s *tensors.Span, state int) {
	r, buffer := u.r, conversionBuffer[F](u.r)
	experts := float64(s.Load.Dims[0].Size)
	b := &r.Program.Batch
	all := float64(b.GlobalBatch) * float64(b.SeqLen) * float64(s.Load.Choices)
	for lo := s.Lo; lo < s.Hi; lo += tensors.BlockElems {
		n := min(s.Hi-lo, tensors.BlockElems)
		got, bias := buffer[:n], buffer[tensors.BlockElems:][:n]
		tensors.Read(&r.Store, u.types.Grads, r.GradAt(bucket, lo), got)
		elem, at := u.types.Params, r.ParamAt(bucket, lo)
		if r.Program.HasMaster() {
			elem = u.types.Master
			at = r.Stage.Arena.Master.Offset + (state+lo)*elem.Size()
		}
		tensors.Read(&r.Store, elem, at, bias)
		moveBias(bias, got, experts, all, F(r.Hyper.BiasRate))
		if tensors.IsNative[F](elem) { // bias is a copy
			tensors.Write(&r.Store, elem, at, bias)
		}
		u.put(bucket, lo, elem, at, bias)
	}
}

// moveBias moves the bias of each expert by rate toward an even share of all choices, of which the expert got so many.
func moveBias[F tensors.Float](bias, got []F, experts, all float64, rate F) {
	for i, x := range got {
		switch load := float64(float64(x) * experts); {
		case load > all:
			bias[i] -= rate
		case load < all:
			bias[i] += rate
		}
	}
}
