package tensors

import "github.com/planc-dev/planc/runtime/program"

// Squares returns the sums of the squares of all parameters, or of their gradients, in the program's order. Each
// logical element counts on one rank. The counts that move an expert bias are no gradients, and are 0.
func (s *Store) Squares(grads bool) []float64 {
	k := weightKind(s.Data)
	if grads {
		k = gradKind(s.Data)
	}
	ts := Of(s.Data, s.Coord)
	out := make([]float64, len(ts))
	b := make([]float64, BlockElems)
	for i := range ts {
		t := &ts[i]
		if !k.isSaved(s, t) || grads && t.param.Choices > 0 {
			continue
		}
		k.slab(s, t, 0, t.dims[0].size, func(at, _, n int) {
			for n > 0 {
				part := b[:min(n, BlockElems)]
				Read(s, k.elem, at, part)
				for _, x := range part {
					out[i] += x * x
				}
				at, n = at+len(part)*k.elem.Size(), n-len(part)
			}
		})
	}
	return out
}

// gradKind returns the accumulated gradients.
func gradKind(p *program.Program) kind { return kind{elem: p.TensorTypes().Grads, grads: true} }
