package runtime

import (
	"errors"
	"math"
	"slices"
)

// Tensors gives access to the logical tensors of a run between two steps, gathered from the ranks' arenas. It is valid
// during the call that receives it.
type Tensors struct{ crew *crew }

// Logits returns the model's logits for tokens: one row of vocab numbers per position. At most SeqLen tokens are
// allowed.
func (t *Tensors) Logits(tokens []int32) ([][]float64, error) {
	if !t.crew.ranks[0].Program.samples() {
		return nil, errors.New("the program has no logits entry")
	}
	var out [][]float64
	for pos := range tokens {
		err := t.crew.do(func(k *Rank) {
			k.Training, k.Pos = false, pos
			k.show(tokens)
			k.runLogits()
		})
		if err != nil {
			return nil, err
		}
		r := t.crew.head()
		out = append(out, r.logits(r.Program.Model.Vocab))
	}
	return out, nil
}

// OnTensors calls f after every step with its number and the run's tensors. An error of f ends the run. It is for tests
// and diagnosis, and costs a pass over all memory.
func OnTensors(f func(step int, t *Tensors) error) Option {
	return func(o *options) { o.onTensors = f }
}

// Params calls f with each parameter as a whole logical tensor, in float64.
func (t *Tensors) Params(f func(name string, shape []int64, x []float64)) {
	eachTensor(t.crew, t.crew.ranks[0].Program.weightKind(), f)
}

// Grads calls f with each gradient of the last step: summed over the global batch, before clipping.
func (t *Tensors) Grads(f func(name string, shape []int64, x []float64)) {
	first := t.crew.ranks[0]
	k := kind{elem: first.Program.TensorTypes().Grads, grads: true}
	eachTensor(t.crew, k, func(name string, shape []int64, x []float64) {
		for i := range x {
			x[i] /= first.Scale
		}
		f(name, shape, x)
	})
}

// Copies calls f with each parameter and the largest difference between its copies: on replicas, on ranks over which it
// is not split, and on stages that share it. The difference to a NaN is infinite.
func (t *Tensors) Copies(f func(name string, apart float64)) {
	k := t.crew.ranks[0].Program.paramKind()
	parts := t.crew.parts()
	i := 0
	eachTensor(t.crew, k, func(name string, _ []int64, x []float64) {
		apart := 0.0
		for j, r := range t.crew.ranks {
			own := &parts[j][i]
			k.slab(r, own, 0, own.dims[0].size, func(at, logical, n int) {
				here := make([]float64, n)
				read(r, k.elem, at, here)
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

func eachTensor(c *crew, k kind, f func(name string, shape []int64, x []float64)) {
	parts := c.parts()
	for i, t := range parts[0] {
		x := make([]float64, t.dims[0].size*t.row())
		for j, r := range c.ranks {
			if own := &parts[j][i]; k.isSaved(r, own) {
				k.slab(r, own, 0, t.dims[0].size, func(at, logical, n int) { read(r, k.elem, at, x[logical:][:n]) })
			}
		}
		f(t.name, slices.Clone(paramShape(t.param)), x)
	}
}
