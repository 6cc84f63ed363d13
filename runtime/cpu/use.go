package cpu

import (
	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/vec"
)

// pairsPay reports whether AVX512-BF16 multiplies faster than widening the operands and multiplying in
// float32. Relative to float32 matmuls it is 1.8 times as fast on AMD's Zen 5, and 0.6 times on Intel's
// family 6, model 167, where widening reaches 0.9. The vendor decides, not a measurement, so that all runs
// on a machine give the same bits.
var pairsPay = asm.HasBF16() && !asm.IsIntel()

// inUse is the ISA for which the tables were last filled.
var inUse ISA

func init() { Use(Best()) }

// InUse returns the ISA whose kernels the tables hold.
func InUse() ISA { return inUse }

// Use fills the tables with the kernels for an ISA that the machine has. No kernel may run meanwhile.
func Use(isa ISA) {
	inUse = isa
	table32, table64 = portable[float32](), portable[float64]()
	engine32, engine64, engine16 = nil, nil, nil
	vec.Use(nil)
	useElements(nil)
	for i := AVX2; i <= isa; i++ {
		faster[i](&table32, &table64)
	}
}
