package costmodel

import (
	"math"
	"slices"
)

// What planc's kernels for CPUs (runtime/cpu) reach of a core, measured one kernel at a time on AMD Zen 5 (family 26, 2
// cores, AVX-512, Go 1.26), November 2026; each the best of many calls, since other work ran on the machine. The
// catalogue's peak is that of a large product.
const (
	// of a step's products: 0.87 to 0.95 where the left operand is transposed, as of a third, and of narrow ones
	cpuMatrix = 0.90
	// element-wise work, norms, exponentials: 7 to 16 GFLOP/s of log-sum-exp, 28 to 60 of norms, beside 250
	cpuVector  = 0.08
	cpuScalar  = 0.03 // the same in f64, in plain Go: 0.6 to 6 GFLOP/s beside 120
	cpuThreads = 0.95 // of their cores' sum that two threads reach and more are taken to: 494 of 2×255 GFLOP/s

	cpuLaunch = 3 * CPUCall // a kernel, with what generated code does between two; the factor is assumed
	cpuTeam   = 2e-6        // more where several threads do it; assumed from when the runtime shares work out
	cpuStep   = 100e-6      // seconds a step: batch, metrics; assumed
)

// CPUCall is how long a kernel takes that has nearly nothing to do, a product of 16-cubed, on the same machine.
// Overheads are told by it: planc calibrate measures it.
const CPUCall Seconds = 0.2e-6

// A product is computed in panels of so many columns and rows, the last ones whole.
const (
	cpuColumns = 32
	cpuRows    = 12
)

// Attention computes scores in squares of that many queries: of a causal row half a square more than is seen. What a
// score costs beside its products, in flops: exponentials, sums and the packing of keys and values. Measured: 33 to 51
// GFLOP/s of what is seen at 64 positions and heads of 32 and 64, 107 at 256 and 146 at 1024; gradients 65, 134.
const (
	cpuSquare      = 64
	cpuScoreFlops  = 370
	cpuScoreFlops2 = 370 // of the gradient's
)

// cpuDevice is a share of a CPU. All but products is computed in f32 where elements have 16 bits or 8, and so are
// products of those for which the cluster names no rate.
func (c *Cluster) cpuDevice(compute string) (d Device, ok bool) {
	products, own := c.GPU.Peak(compute)
	own = own && compute == "bf16" // no kernel multiplies other narrow types as they are
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
	d = Device{Peak: products, Engine: PlancEngine, cores: cores, bandwidth: c.GPU.MemoryBandwidth,
		launch: launch / Seconds(min(1, cores)), step: cpuStep / Seconds(min(1, cores))}
	d.rate = [numKinds]FlopsPerSecond{Vector: peak * vector * rate, Matrix: products * cpuMatrix * rate,
		Attention: peak * rate, AttentionGrad: peak * rate}
	return d, true
}

// Fastest is the most that the device does of any kind of work: a CPU's products in bf16 may be slower than its
// attention in f32.
func (d *Device) Fastest() FlopsPerSecond { return max(d.Peak, slices.Max(d.rate[:])) }

// cpuTime is the time of an op's arithmetic on a CPU.
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
	return Seconds(flops / float64(d.rate[o.Kind]))
}

// panels is how much more is computed than asked for where n is no whole number of panels.
func panels(n, width float64) float64 {
	if n <= 0 {
		return 1
	}
	return math.Ceil(n/width) * width / n
}

// scores is how much more attention costs than the products of the scores that are seen, each flops × the head's width.
func scores(g GEMM, flops, more float64) float64 {
	if g.K <= 0 || g.N <= 0 {
		return 1
	}
	return (1 + more/(flops*g.K)) * (1 + cpuSquare/g.N)
}
