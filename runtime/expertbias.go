package runtime

import (
	"fmt"
	"slices"
)

// hasExpertBias reports whether the model adds a number to each expert's score where experts are chosen.
func (p *Program) hasExpertBias() bool {
	return slices.ContainsFunc(p.Params, func(x Param) bool { return x.Choices > 0 })
}

// expertBiasNote is the line at the start of a run whose expert bias moves, which transformers' never does; "" for
// other runs.
func (p *Program) expertBiasNote(rate float64) string {
	if rate == 0 || !p.hasExpertBias() {
		return ""
	}
	return fmt.Sprintf("expert bias: each step moves it by %v against the expert's load (train.experts.bias_rate); "+
		"transformers keeps it fixed, as --set train.experts.bias_rate=0 does", rate)
}

// balance moves a run of the numbers that are added to experts' scores where experts are chosen: up by BiasRate where
// the expert got less choices than its share of the step's, down where it got more (Wang et al. 2024, as DeepSeek-V3
// does it). There the gradient is how many it got. Both sides are whole numbers, so that every plan finds the same
// sign. state is what takes an element's number to that of its state.
func (u *updater[F]) balance(bucket int, s *span, state int) {
	r, room := u.r, blocks[F](u.r)
	experts := float64(s.load.Dims[0].Size)
	b := &r.Program.Batch
	all := float64(b.GlobalBatch) * float64(b.SeqLen) * float64(s.load.Choices)
	for lo := s.lo; lo < s.hi; lo += blockElems {
		n := min(s.hi-lo, blockElems)
		got, bias := room[:n], room[blockElems:][:n]
		read(r, u.types.Grads, r.gradAt(bucket, lo), got)
		elem, at := u.types.Params, r.paramAt(bucket, lo)
		if r.Program.hasMaster() {
			elem = u.types.Master
			at = r.Stage.Arena.Master.Offset + (state+lo)*elem.Size()
		}
		read(r, elem, at, bias)
		level(bias, got, experts, all, F(r.Hyper.BiasRate))
		if native[F](elem) { // bias is a copy
			write(r, elem, at, bias)
		}
		u.put(bucket, lo, elem, at, bias)
	}
}

// level moves the bias of each expert by rate toward an even share of all choices, of which the expert got so many.
func level[F Float](bias, got []F, experts, all float64, rate F) {
	for i, x := range got {
		switch load := float64(float64(x) * experts); {
		case load > all:
			bias[i] -= rate
		case load < all:
			bias[i] += rate
		}
	}
}
