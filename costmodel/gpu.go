package costmodel

import (
	"math"
	"strings"
)

// Generation holds the efficiencies of kernels on the GPUs of an architecture.
type Generation struct {
	Arch       string  // prefix of the architecture's name
	processors float64 // streaming multiprocessors
	fine       bool    // GEMMs are divided into fine tiles
	matrix     float64 // largest measured fraction of the dense peak for 16-bit matmuls
	narrow     float64 // the same for FP8 matmuls
	Sustained  float64 // fraction of the best rate that matmuls sustain for hours at the power limit; fitted
	memory     float64 // fraction of the memory bandwidth that streaming kernels reach
	watts      float64 // power of the part on which this was measured
	// fraction of the dense peak that FlashAttention-2 reaches, forward and backward, with heads of 128
	flash  [2]float64
	vendor [2]float64 // the same for the vendor's fused attention of that generation
}

// Generations are the architectures. matrix and narrow: "measured_matmul_mamf" of the shared hardware table (from
// ml-engineering's compute/accelerator page, read 2026-11): A100 271 of 312, H100 794 of 989 and 1402 of 1979, B200
// 1745 of 2250 and 3432 of 4500 TFLOP/s. flash: Dao 2023, on A100 0.50-0.73 of the peak, on H100 0.35. vendor: cuDNN
// and FlashAttention-3 (Shah et al. 2024), causal, sequences of 2-8 k. Figures of other rows are assumed from similar
// ones.
var Generations = []Generation{
	{"sm_70", 80, false, 0.80, 0, 1.10, 0.80, 300, [2]float64{0.30, 0.25}, [2]float64{0.30, 0.25}},
	{"sm_75", 40, false, 0.45, 0, 0.878, 0.75, 70, [2]float64{0.25, 0.20}, [2]float64{0.25, 0.20}},
	{"sm_80", 108, false, 0.869, 0, 0.931, 0.82, 400, [2]float64{0.60, 0.50}, [2]float64{0.60, 0.50}},
	{"sm_86", 82, false, 0.90, 0, 0.99, 0.85, 350, [2]float64{0.55, 0.45}, [2]float64{0.55, 0.45}},
	{"sm_89", 128, false, 0.88, 0.85, 0.95, 0.85, 450, [2]float64{0.55, 0.45}, [2]float64{0.55, 0.45}},
	{"sm_90", 132, true, 0.803, 0.709, 0.838, 0.82, 700, [2]float64{0.38, 0.32}, [2]float64{0.60, 0.50}},
	{"sm_100", 148, true, 0.776, 0.763, 0.822, 0.82, 1000, [2]float64{0.25, 0.20}, [2]float64{0.55, 0.45}},
	{"sm_103", 148, true, 0.786, 0.745, 0.915, 0.82, 1100, [2]float64{0.25, 0.20}, [2]float64{0.55, 0.45}},
	{"sm_", 100, false, 0.78, 0.70, 0.95, 0.80, 0, [2]float64{0.45, 0.40}, [2]float64{0.45, 0.40}},
}

// MXFP8 is the compute type of matmuls whose FP8 operands have a scale per 32 elements of their depth ("OCP
// Microscaling Formats", 2023); "fp8" has one scale per tensor.
const MXFP8 = "mxfp8"

// BlockScaled is the rate of matmuls in [MXFP8] relative to those with one scale per tensor. Scales are read and
// applied in addition, and operands are cast twice, because their blocks lie along the depth that each GEMM reduces.
// Fitted.
var BlockScaled = 0.936

// GenerationOf returns the generation of a GPU architecture, nil if there is none.
func GenerationOf(arch string) *Generation {
	for i := range Generations {
		if strings.HasPrefix(arch, Generations[i].Arch) {
			return &Generations[i]
		}
	}
	return nil
}

// idleWatts is the power of a GPU in addition to its arithmetic: memory, links, leakage; assumed.
const idleWatts = 150

// throttle returns the fraction of the matmul rate that remains under a lower power limit, at which matmuls run.
// Dynamic power is proportional to the cube of the clock, because voltage follows the clock.
func (g *Generation) throttle(watts float64) float64 {
	if watts <= idleWatts || g.watts <= idleWatts || watts >= g.watts {
		return 1
	}
	return math.Cbrt((watts - idleWatts) / (g.watts - idleWatts))
}
