package costmodel

import (
	"math"
	"strings"
)

// Generation is what kernels reach on the GPUs of an architecture.
type Generation struct {
	Arch       string     // its beginning
	processors float64    // streaming multiprocessors
	matrix     float64    // best part of the dense peak that was found for matmuls in 16 bits
	narrow     float64    // and in 8 bits
	Sustained  float64    // of the best rate, what matmuls keep hour after hour at the power limit; fitted
	memory     float64    // part of the memory bandwidth that streaming kernels reach
	watts      float64    // of the part that this was measured on
	flash      [2]float64 // part of the dense peak that FlashAttention-2 reaches, forward and backward, heads of 128
	vendor     [2]float64 // and the vendor's fused attention of that generation
}

// Generations are the architectures. matrix and narrow: "measured_matmul_mamf" of the shared hardware table (from
// ml-engineering's compute/accelerator page, read 2026-11): A100 271 of 312, H100 794 of 989 and 1402 of 1979, B200
// 1745 of 2250 and 3432 of 4500 TFLOP/s. flash: Dao 2023, on A100 0.50-0.73 of the peak, on H100 0.35. vendor: cuDNN
// and FlashAttention-3 (Shah et al. 2024), causal, sequences of 2-8 k. Figures of other rows are assumed from their
// neighbours.
var Generations = []Generation{
	{"sm_70", 80, 0.80, 0, 1.10, 0.80, 300, [2]float64{0.30, 0.25}, [2]float64{0.30, 0.25}},
	{"sm_75", 40, 0.45, 0, 0.878, 0.75, 70, [2]float64{0.25, 0.20}, [2]float64{0.25, 0.20}},
	{"sm_80", 108, 0.869, 0, 0.931, 0.82, 400, [2]float64{0.60, 0.50}, [2]float64{0.60, 0.50}},
	{"sm_86", 82, 0.90, 0, 0.99, 0.85, 350, [2]float64{0.55, 0.45}, [2]float64{0.55, 0.45}},
	{"sm_89", 128, 0.88, 0.85, 0.95, 0.85, 450, [2]float64{0.55, 0.45}, [2]float64{0.55, 0.45}},
	{"sm_90", 132, 0.803, 0.709, 0.853, 0.82, 700, [2]float64{0.38, 0.32}, [2]float64{0.60, 0.50}},
	{"sm_100", 148, 0.776, 0.763, 0.827, 0.82, 1000, [2]float64{0.25, 0.20}, [2]float64{0.55, 0.45}},
	{"sm_103", 148, 0.786, 0.745, 0.918, 0.82, 1100, [2]float64{0.25, 0.20}, [2]float64{0.55, 0.45}},
	{"sm_", 100, 0.78, 0.70, 0.95, 0.80, 0, [2]float64{0.45, 0.40}, [2]float64{0.45, 0.40}},
}

// MXFP8 is what matmuls compute in where 8-bit operands have a scale for each 32 elements of their depth ("OCP
// Microscaling Formats", 2023); "fp8" is one scale a tensor.
const MXFP8 = "mxfp8"

// BlockScaled is what matmuls in [MXFP8] keep of the rate of those with one scale a tensor: scales are read and applied
// beside the products, and operands are cast twice, since their blocks lie along the depth that each product sums over.
// Fitted.
var BlockScaled = 0.936

func generationOf(arch string) *Generation {
	for i := range Generations {
		if strings.HasPrefix(arch, Generations[i].Arch) {
			return &Generations[i]
		}
	}
	return nil
}

// idleWatts is what a GPU takes beside its arithmetic: memory, links, leakage; assumed.
const idleWatts = 150

// throttle is what a lower power limit leaves of the rate of matmuls, which run at the limit: dynamic power goes
// with the cube of the clock, as voltage goes with it.
func (g *Generation) throttle(watts float64) float64 {
	if watts <= idleWatts || g.watts <= idleWatts || watts >= g.watts {
		return 1
	}
	return math.Cbrt((watts - idleWatts) / (g.watts - idleWatts))
}
