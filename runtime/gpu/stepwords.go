//go:build cuda && linux

package gpu

import (
	"encoding/binary"
	"math"
	"slices"

	rt "github.com/planc-dev/planc/runtime"
)

// Words that the host writes for a step, 8 bytes each. Kernels read them from memory, so that their
// arguments stay the same. All but the last four are f64. In memory, the rates of parameters with a learning-rate
// multiplier come before them (step.first).
const (
	lossScale    = iota // factor of the loss
	tokens              // unmasked tokens of the global batch
	sequences           // sequences of the global batch
	decayRates          // optimizer rates of parameters with weight decay
	plainRates   = decayRates + rateCount
	seed         = plainRates + rateCount // of dropout
	stepNumber   = seed + 1               // of the step
	roundingKey  = seed + 2               // of stochastic rounding
	offeredWords = seed + 3
	// written by the device: the previous step must be retried, and therefore this one too
	previousRetried = offeredWords
	hostWords       = previousRetried + 1
	rateCount       = 9 // layout in cuda/kernels/optimizer.cu

	multiplierWords = 2 * rateCount // rates with and without weight decay
)

// learningRateMultipliers returns the multipliers of a program's parameters, each once, in order.
func learningRateMultipliers(p *rt.Program) (out []float64) {
	for i := range p.Params {
		if m := p.Params[i].LRMultiplier; m != 0 {
			out = append(out, m)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Words that the device writes for a step. They follow the host's words.
const (
	lossSum     = iota // of unmasked tokens
	auxSum             // of the routers' auxiliary loss
	squaresSum         // of the gradients
	badLoss            // number of ranks whose loss is not finite
	retry              // number of ranks that need the step to be retried
	clipped            // the norm of the gradients, their factor, and whether the step is skipped
	skipped     = clipped + 2
	resultWords = skipped + 1
)

// writeWords writes the host's words of a step: first for the case that the previous step is not skipped,
// then for the case that it is. The rates of each of the multipliers come before the words.
func writeWords(to []byte, r *rt.Rank, multipliers []float64) {
	h := r.Hyper
	first := len(multipliers) * multiplierWords
	write := func(to []byte, scale float64) {
		for i, factor := range multipliers {
			var x [multiplierWords]float64
			scaled := h
			scaled.LR *= factor
			optimizerRates(x[:rateCount], r.Program.Optim, &scaled, h.WeightDecay)
			optimizerRates(x[rateCount:], r.Program.Optim, &scaled, 0)
			putFloats(to[i*multiplierWords*8:], x[:]...)
		}
		to = to[first*8:]
		var x [seed]float64
		x[lossScale], x[tokens], x[sequences] = scale, r.Tokens, float64(r.Program.Batch.GlobalBatch)
		optimizerRates(x[decayRates:plainRates], r.Program.Optim, &h, h.WeightDecay)
		optimizerRates(x[plainRates:], r.Program.Optim, &h, 0)
		putFloats(to, x[:]...)
		binary.NativeEndian.PutUint64(to[seed*8:], r.Seed)
		binary.NativeEndian.PutUint64(to[stepNumber*8:], uint64(r.StepID))
		binary.NativeEndian.PutUint64(to[roundingKey*8:], rt.RoundingKey(r, &h))
	}
	write(to, r.Scale)
	h.T = r.AfterSkip.T
	write(to[(first+offeredWords)*8:], r.AfterSkip.Scale)
}

// putFloats and getFloat access numbers in pinned memory.
func putFloats(to []byte, x ...float64) {
	for i, v := range x {
		binary.NativeEndian.PutUint64(to[i*8:], math.Float64bits(v))
	}
}

func getFloat(from []byte) float64 { return math.Float64frombits(binary.NativeEndian.Uint64(from)) }

// optimizerRates writes what an update reads, in the order of cuda/kernels/optimizer.cu.
func optimizerRates(to []float64, kind rt.OptimizerKind, h *rt.Hyper, decay float64) {
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
