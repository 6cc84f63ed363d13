package cpu

import (
	"github.com/planc-dev/planc/runtime/cpu/attention"
	"github.com/planc-dev/planc/runtime/cpu/gemm"
	"github.com/planc-dev/planc/runtime/vec"
)

// inUse is the ISA for which the tables were last filled.
var inUse ISA

func init() { Use(Best()) }

// InUse returns the ISA whose kernels the tables hold.
func InUse() ISA { return inUse }

// Use fills the tables with the kernels for an ISA that the machine has. No kernel may run meanwhile.
func Use(isa ISA) {
	inUse = isa
	table32, table64 = portable[float32](), portable[float64]()
	gemm.Use(isa)
	vec.Use(nil)
	useElements(nil)
	if k := loopsFor(isa); k != nil {
		useVectors(&table32, k)
	}
	if gemm.UsesPairs() {
		table32.MatMulBF16, table32.MatMulRoundBF16 = gemm.MatMulPairs, gemm.MatMulPairsRounded
	}
	if isa >= AMX {
		table32.AttentionBF16, table32.AttentionGradBF16 = attention.ForwardTiles, attention.GradientTiles
	}
}

// loopsFor returns package vec's loops for an ISA, or nil.
func loopsFor(isa ISA) *vec.Kernels {
	switch {
	case isa >= AVX512:
		return vec.AVX512
	case isa == AVX2:
		return vec.AVX2
	}
	return nil
}
