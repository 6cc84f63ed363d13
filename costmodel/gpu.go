package costmodel

import (
	"math"
	"strings"
)

// generation is what kernels reach on the GPUs of an architecture.
type generation struct {
	arch       string     // its beginning
	processors float64    // streaming multiprocessors; 0: not modelled
	matrix     float64    // best part of the dense peak that was found for matmuls in 16 bits
	narrow     float64    // and in 8 bits
	memory     float64    // part of the memory bandwidth that streaming kernels reach
	watts      float64    // of the part that this was measured on
	attention  [2]float64 // part of the dense peak that fused attention reaches, forward and backward, heads of 128
}

// generations are the architectures, the longest names first. matrix and narrow: "measured_matmul_mamf" of the shared
// hardware table (from ml-engineering's compute/accelerator page, read 2026-11): A100 271 of 312, H100 794 of 989 and 1402
// of 1979, B200 1745 of 2250 and 3432 of 4500 TFLOP/s. attention: FlashAttention-2 (Dao 2023) on A100, FlashAttention-3
// (Shah et al. 2024) on H100, at sequences of 2-8k, causal. Figures of other rows are assumed from their neighbours.
var generations = []generation{
	{"sm_70", 80, 0.80, 0, 0.80, 300, [2]float64{0.30, 0.25}},
	{"sm_75", 40, 0.45, 0, 0.75, 70, [2]float64{0.25, 0.20}},
	{"sm_80", 108, 0.869, 0, 0.82, 400, [2]float64{0.58, 0.48}},
	{"sm_86", 82, 0.90, 0, 0.85, 350, [2]float64{0.55, 0.45}},
	{"sm_89", 128, 0.88, 0.85, 0.85, 450, [2]float64{0.55, 0.45}},
	{"sm_90", 132, 0.803, 0.709, 0.82, 700, [2]float64{0.55, 0.45}},
	{"sm_100", 148, 0.776, 0.763, 0.82, 1000, [2]float64{0.50, 0.40}},
	{"sm_103", 148, 0.786, 0.745, 0.82, 1100, [2]float64{0.50, 0.40}},
	{"sm_", 100, 0.78, 0.70, 0.80, 0, [2]float64{0.45, 0.40}},
}

func generationOf(arch string) *generation {
	for i := range generations {
		if strings.HasPrefix(arch, generations[i].arch) {
			return &generations[i]
		}
	}
	return nil
}

// idleWatts is what a GPU takes beside its arithmetic: memory, links, leakage; assumed.
const idleWatts = 150

// throttle is what a lower power limit leaves of the rate of matmuls, which run at the limit: dynamic power goes
// with the cube of the clock, as voltage goes with it.
func (g *generation) throttle(watts float64) float64 {
	if watts <= idleWatts || g.watts <= idleWatts || watts >= g.watts {
		return 1
	}
	return math.Cbrt((watts - idleWatts) / (g.watts - idleWatts))
}
