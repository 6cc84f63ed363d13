package costmodel

import (
	"math"
	"slices"
)

// Efficiencies of planc's CPU kernels (runtime/cpu), measured one kernel at a time in November 2026 on AMD Zen 5
// (family 26, 2 cores, AVX-512, Go 1.26). Each is the best of many calls, because other work ran on the machine. The
// catalogue's peak is that of a large GEMM.
const (
	// GEMMs of a step: 0.87 to 0.95. A third of them have a transposed left operand, and some are narrow
	cpuMatrix = 0.90
	// element-wise work, norms, exponentials: 7 to 16 GFLOP/s for log-sum-exp, 28 to 60 for norms, of 250
	cpuVector = 0.08
	cpuScalar = 0.03 // the same in f64, in plain Go: 0.6 to 6 of 120 GFLOP/s
	// fraction of the cores' sum that two threads reach (494 of 2×255 GFLOP/s); assumed for more threads
	cpuThreads = 0.95

	cpuLaunch = 3 * CPUCall // a kernel, including generated code between two kernels; the factor is assumed
	// additional time if several threads share the work; assumed, from the size at which the runtime shares work
	cpuTeam = 2e-6
	cpuStep = 100e-6 // seconds per step: batch, metrics; assumed
)

// CPUCall is the time of a kernel with almost no work, a GEMM of 16×16×16, on the same machine. Overheads are multiples
// of it. planc calibrate measures it.
const CPUCall Seconds = 0.2e-6

// A GEMM is computed in panels of this many columns and rows; the last panels are computed whole.
const (
	cpuColumns = 32
	cpuRows    = 12
)

// Attention computes scores in squares of this many queries, so that a causal row costs half a square more than it
// sees. The other constants are the cost of a score in addition to its GEMMs, in flops: exponentials, sums, and packing
// of keys and values. Measured: of the visible scores 33 to 51 GFLOP/s at 64 positions and heads of 32 and 64, 107 at
// 256 and 146 at 1024; gradients 65 and 134.
const (
	cpuSquare      = 64
	cpuScoreFlops  = 370
	cpuScoreFlops2 = 370 // for the gradient
)

// cpuDevice returns a share of a CPU. With 16-bit or FP8 elements, everything except GEMMs is computed in f32, and so
// are GEMMs in types for which the cluster has no rate.
func (c *Cluster) cpuDevice(compute string) (d Device, ok bool) {
	products, own := c.GPU.Peak(compute)
	own = own && compute == "bf16" // no kernel multiplies other narrow types without widening them
	if compute == "bf16" || compute == "fp16" || compute == "fp8" {
		compute = "f32"
	}
	peak, ok := c.GPU.Peak(compute)
	if !ok {
		return Device{}, false
	}
	if !own {
		products = peak
	}
	cores, rate, vector := c.cores(), FlopsPerSecond(1), FlopsPerSecond(cpuVector)
	launch := cpuLaunch
	if compute == "f64" {
		vector = cpuScalar
	}
	if cores > 1 {
		rate, launch = cpuThreads, launch+cpuTeam
	}
	d = Device{Peak: products, cores: cores, bandwidth: c.GPU.MemoryBandwidth,
		launch: launch / Seconds(min(1, cores)), step: cpuStep / Seconds(min(1, cores))}
	d.rate = [numKinds]FlopsPerSecond{Vector: peak * vector * rate, Matrix: products * cpuMatrix * rate,
		Attention: peak * rate, AttentionGrad: peak * rate}
	return d, true
}

// Fastest returns the highest rate of any kind of work. On a CPU, GEMMs in bf16 may be slower than attention in f32.
func (d *Device) Fastest() FlopsPerSecond { return max(d.Peak, slices.Max(d.rate[:])) }

// cpuTime returns the time of an op's arithmetic on a CPU. The kernel of a GEMM computes its epilogue at the rate of
// element-wise ops.
func (d *Device) cpuTime(o *Op) Seconds {
	flops := o.Flops
	switch o.Kind {
	case Matrix:
		flops *= panels(o.Shape.N, cpuColumns) * panels(o.Shape.M, cpuRows)
	case Attention:
		flops *= scores(o.Shape, 4, cpuScoreFlops)
	case AttentionGrad:
		flops *= scores(o.Shape, 10, cpuScoreFlops2)
	}
	return Seconds(flops/float64(d.rate[o.Kind])) + Seconds(o.Fused.Flops/float64(d.rate[Vector]))
}

// panels returns by what factor computing whole panels exceeds the requested work.
func panels(n, width float64) float64 {
	if n <= 0 {
		return 1
	}
	return math.Ceil(n/width) * width / n
}

// scores returns the cost of attention relative to the GEMMs of the visible scores, which are flops × the width of a
// head each.
func scores(g GEMM, flops, more float64) float64 {
	if g.K <= 0 || g.N <= 0 {
		return 1
	}
	return (1 + more/(flops*g.K)) * (1 + cpuSquare/g.N)
}
