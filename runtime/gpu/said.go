//go:build cuda && linux

package gpu

import (
	"encoding/binary"
	"math"

	rt "github.com/planc-dev/planc/runtime"
)

// What the host says of a step, a word of 8 bytes each, by place: kernels read it, so that their arguments stay the
// same. All but the last three are f64.
const (
	lossScale  = iota // what the loss is multiplied by
	tokens            // unmasked ones of the global batch
	sequences         // of the global batch
	decayRates        // of the optimizer, where parameters decay
	plainRates = decayRates + rates
	seed       = plainRates + rates // of dropout; and behind it
	number     = seed + 1           // of the step
	chanceKey  = seed + 2           // of parameters' rounding
	offered    = seed + 3
	spoiled    = offered // not the host's word: that the step before is to be done again, and hence this one too
	values     = spoiled + 1
	rates      = 9 // as cuda/kernels/optimizer.cu has them
)

// What the device says of a step, likewise, behind what the host has said.
const (
	lossSum    = iota // of unmasked tokens
	auxSum            // of what routers are trained with
	squaresSum        // of gradients; and behind it
	badLoss           // how many ranks' loss is not finite
	again             // how many ranks want the step done again
	clipped           // the gradients' norm, the factor of gradients, whether the step is skipped
	skipped    = clipped + 2
	results    = skipped + 1
)

// offer writes what the host says of a step: for the case that the one before is not skipped, and behind it for the
// other.
func offer(to []byte, r *rt.Rank) {
	h := r.Hyper
	write := func(to []byte, scale float64) {
		var x [seed]float64
		x[lossScale], x[tokens], x[sequences] = scale, r.Tokens, float64(r.Program.Batch.GlobalBatch)
		ratesOf(x[decayRates:plainRates], r.Program.Optim, &h, h.WeightDecay)
		ratesOf(x[plainRates:], r.Program.Optim, &h, 0)
		putFloats(to, x[:]...)
		binary.NativeEndian.PutUint64(to[seed*8:], r.Seed)
		binary.NativeEndian.PutUint64(to[number*8:], uint64(r.StepID))
		binary.NativeEndian.PutUint64(to[chanceKey*8:], rt.ChanceKey(r, &h))
	}
	write(to, r.Scale)
	h.T = r.Otherwise.T
	write(to[offered*8:], r.Otherwise.Scale)
}

// putFloats and getFloat are numbers in pinned memory.
func putFloats(to []byte, x ...float64) {
	for i, v := range x {
		binary.NativeEndian.PutUint64(to[i*8:], math.Float64bits(v))
	}
}

func getFloat(from []byte) float64 { return math.Float64frombits(binary.NativeEndian.Uint64(from)) }

// ratesOf are what an update reads, in the order of cuda/kernels/optimizer.cu.
func ratesOf(to []float64, kind rt.OptimizerKind, h *rt.Hyper, decay float64) {
	if kind == rt.SGD {
		copy(to, []float64{h.LR, h.Momentum, decay})
		return
	}
	shrink := 1.0
	if kind == rt.AdamW {
		shrink, decay = 1-h.LR*decay, 0
	}
	step := h.LR / (1 - math.Pow(h.Beta1, float64(h.T)))
	root := 1 / math.Sqrt(1-math.Pow(h.Beta2, float64(h.T)))
	copy(to, []float64{step, root, shrink, decay, h.Beta1, 1 - h.Beta1, h.Beta2, 1 - h.Beta2, h.Eps})
}
