package driver

import (
	"errors"

	"github.com/planc-dev/planc/runtime/rank"
)

// Tensors gives access to the logical tensors of a run between two steps, gathered from the ranks' arenas. It is valid
// during the call that receives it.
type Tensors struct{ crew *crew }

// Logits returns the model's logits for tokens: one row of vocab numbers per position. At most SeqLen tokens are
// allowed.
func (t *Tensors) Logits(tokens []int32) ([][]float64, error) {
	if !t.crew.ranks[0].Program.Samples() {
		return nil, errors.New("the program has no logits entry")
	}
	var out [][]float64
	for pos := range tokens {
		err := t.crew.do(func(k *rank.Rank) { k.ComputeLogits(tokens, pos) })
		if err != nil {
			return nil, err
		}
		r := t.crew.head()
		out = append(out, r.Logits(r.Program.Model.Vocab))
	}
	return out, nil
}

// Params calls f with each parameter as a whole logical tensor, in float64.
func (t *Tensors) Params(f func(name string, shape []int64, x []float64)) { t.crew.stores.EachParam(f) }

// Grads calls f with each gradient of the last step: summed over the global batch, before clipping.
func (t *Tensors) Grads(f func(name string, shape []int64, x []float64)) {
	t.crew.stores.EachGrad(t.crew.ranks[0].Scale, f)
}

// Copies calls f with each parameter and the largest difference between its copies: on replicas, on ranks over which it
// is not split, and on stages that share it. The difference to a NaN is infinite.
func (t *Tensors) Copies(f func(name string, apart float64)) { t.crew.stores.Copies(f) }
