package tensors

import (
	"math"
	"slices"
)

// EachParam calls f with each parameter as a whole logical tensor.
func (s *Stores) EachParam(f func(name string, shape []int64, x []float64)) {
	eachTensor(s, weightKind(s.program()), f)
}

// EachGrad calls f with each gradient of the last step, summed over the global batch and divided by scale.
func (s *Stores) EachGrad(scale float64, f func(name string, shape []int64, x []float64)) {
	eachTensor(s, gradKind(s.program()), func(name string, shape []int64, x []float64) {
		for i := range x {
			x[i] /= scale
		}
		f(name, shape, x)
	})
}

// Copies calls f with each parameter and the largest difference between its copies on all ranks. The difference to a
// NaN is infinite.
func (s *Stores) Copies(f func(name string, apart float64)) {
	k, parts, i := paramKind(s.program()), s.parts(), 0
	eachTensor(s, k, func(name string, _ []int64, x []float64) {
		apart := 0.0
		for j, r := range s.All {
			own := &parts[j][i]
			k.slab(r, own, 0, own.dims[0].size, func(at, logical, n int) {
				here := make([]float64, n)
				Read(r, k.elem, at, here)
				for l, v := range here {
					d := math.Abs(v - x[logical+l])
					if math.IsNaN(d) {
						d = math.Inf(1)
					}
					apart = max(apart, d)
				}
			})
		}
		f(name, apart)
		i++
	})
}

func eachTensor(c *Stores, k kind, f func(name string, shape []int64, x []float64)) {
	parts := c.parts()
	for i, t := range parts[0] {
		x := make([]float64, t.dims[0].size*t.row())
		for j, r := range c.All {
			if own := &parts[j][i]; k.isSaved(r, own) {
				k.slab(r, own, 0, t.dims[0].size, func(at, logical, n int) { Read(r, k.elem, at, x[logical:][:n]) })
			}
		}
		f(t.Name, slices.Clone(paramShape(t.param)), x)
	}
}
