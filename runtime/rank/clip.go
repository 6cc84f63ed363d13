package rank

import (
	"math"

	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/tensors"
	"github.com/planc-dev/planc/runtime/timeline"
)

// clipEpsilon keeps the clip factor finite, as in PyTorch.
const clipEpsilon = 1e-6

// CountTokens sets Tokens to the number of unmasked tokens of the step's global batch. It sums the mask in the arena
// over the group that numbers the replicas (-1: one replica), in float64.
func CountTokens[F tensors.Float](r *Rank, group int) {
	if r.counted > 0 {
		r.Tokens = float64(r.counted)
		return
	}
	b := &r.Program.Batch
	r.Pair[0] = 0
	for _, x := range tensors.View[F](&r.Store, r.Stage.Inputs.Mask, b.MicroBatches*b.MicroBatch*seqLen(r)) {
		r.Pair[0] += float64(x)
	}
	AllReduce(r, group, r.Pair[:1], comm.Sum)
	r.Tokens = r.Pair[0]
}

// ReduceLoss sums LossSum over a group (-1: none).
func ReduceLoss(r *Rank, group int) {
	r.reduced = true
	if r.Device != nil {
		r.Device.SumLoss(group)
		return
	}
	r.Pair[0] = r.LossSum
	AllReduce(r, group, r.Pair[:1], comm.Sum)
	r.LossSum = r.Pair[0]
}

// ClipGradients computes the global gradient norm and the clip factor, after the gradients are reduced. It sets Norm to
// the norm over the group of all ranks (-1: one rank), without the loss scale; every logical element counts once, in
// float64. It sets Clip to min(1, Hyper.ClipNorm/(Norm+1e-6)), or 1 without clipping, divided by the loss scale. It
// sets Skip on every rank if Norm, or the loss of any rank, is not finite.
func ClipGradients[F tensors.Float](r *Rank, world int) {
	if r.Device != nil {
		r.Device.ClipGradients(world)
		return
	}
	sum, end := 0.0, beginPart(r, timeline.Optimizer, "gradient norm", "", -1)
	for i := range r.buckets {
		if b := &r.buckets[i]; b.countsInNorm {
			sum += bucketSquares[F](r, i)
		}
	}
	r.compute.End(end)
	r.Pair = [2]float64{sum, 0}
	if !num.Finite(r.LossSum) {
		r.Pair[1] = 1
	}
	AllReduce(r, world, r.Pair[:], comm.Sum)
	r.Norm = math.Sqrt(r.Pair[0]) / r.Scale
	r.Skip = !num.Finite(r.Norm) || r.Pair[1] != 0
	r.Clip = 1
	if c := r.Hyper.ClipNorm; c > 0 {
		r.Clip = min(1, c/(r.Norm+clipEpsilon))
	}
	r.Clip /= r.Scale
}

// bucketSquares returns the sum of squares of this rank's part of a bucket's gradient, without the experts' loads.
func bucketSquares[F tensors.Float](r *Rank, i int) (sum float64) {
	b, lo := &r.buckets[i], r.Shards[i].Lo
	for _, s := range b.spans {
		if s.Load != nil {
			sum += gradSquares[F](r, r.GradAt(i, lo), s.Lo-lo)
			lo = s.Hi
		}
	}
	return sum + gradSquares[F](r, r.GradAt(i, lo), b.Hi-lo)
}

// gradSquares returns the sum of squares of n accumulated gradients from byte offset at.
func gradSquares[F tensors.Float](r *Rank, at, n int) (sum float64) {
	e := r.Program.TensorTypes().Grads
	if tensors.IsNative[F](e) {
		return cpu.Table[F]().SumSquares(tensors.View[F](&r.Store, at, n))
	}
	b := conversionBuffer[F](r)[:tensors.BlockElems]
	for done := 0; done < n; done += tensors.BlockElems {
		sum += cpu.Table[F]().SumSquares(widenFrom(r, e, at+done*e.Size(), min(n-done, tensors.BlockElems), b))
	}
	return sum
}
