package tensors

import (
	"cmp"
	"slices"

	"github.com/planc-dev/planc/runtime/program"
)

// Span is a run of parameters that the optimizer treats alike.
type Span struct {
	Lo, Hi int // in elements of the flat space
	Decay  bool
	Rate   float64        // factor of the learning rate
	Load   *program.Param // an expert bias that moves against the experts' loads; nil: parameters with gradients
}

// Spans returns the parts of the tensors in [lo, hi) of the flat space, in order. Adjacent parts with the same
// treatment are joined, and so are those of tensors that lie side by side, whose treatment is the same.
func Spans(ts []Tensor, lo, hi int) []Span {
	var out []Span
	for _, t := range ts {
		s := Span{Lo: max(lo, t.Offset), Hi: min(hi, t.Offset+t.Local), Decay: t.param.Decay,
			Rate: cmp.Or(t.param.LRMultiplier, 1)}
		if t.param.Choices > 0 {
			s.Load = t.param
		}
		if s.Lo < s.Hi {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b Span) int { return a.Lo - b.Lo })
	joined := out[:0]
	for _, s := range out {
		if n := len(joined); n > 0 && joined[n-1].Hi >= s.Lo && joined[n-1].Decay == s.Decay &&
			joined[n-1].Rate == s.Rate && joined[n-1].Load == s.Load {
			joined[n-1].Hi = max(joined[n-1].Hi, s.Hi)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}
