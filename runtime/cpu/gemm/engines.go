package gemm

import (
	"github.com/planc-dev/planc/runtime/cpu/asm"
	"github.com/planc-dev/planc/runtime/cpu/elem"
)

// PairsPay says whether AVX512-BF16 multiplies faster than widening the operands and multiplying in
// float32. Relative to float32 matmuls it is 1.8 times as fast on AMD's Zen 5, and 0.6 times on Intel's
// family 6, model 167, where widening reaches 0.9. The vendor decides, not a measurement, so that all runs
// on a machine give the same bits.
var PairsPay = asm.HasBF16() && !asm.IsIntel()

// Engines of the ISA in use; nil for Portable.
var (
	engine32 *engine[float32]
	engine64 *engine[float64]
	engine16 *engine[float32] // bfloat16 with sums in float32
)

// engineOf returns the engine in use for F.
func engineOf[F elem.Float]() *engine[F] {
	switch e := any((*engine[F])(nil)).(type) {
	case *engine[float32]:
		return any(engine32).(*engine[F])
	case *engine[float64]:
		return any(engine64).(*engine[F])
	default:
		_ = e
		return nil
	}
}

// engineISA is the ISA whose engines are in use.
var engineISA asm.ISA

// Use chooses the engines of an ISA that the machine has. No matmul may run meanwhile.
func Use(isa asm.ISA) {
	engineISA = isa
	engine32, engine64, engine16 = nil, nil, nil
	for i := asm.AVX2; i <= isa; i++ {
		faster[i]()
	}
}

// UsesPairs reports whether MatMulPairs is faster than MatMulWidened.
func UsesPairs() bool { return engineISA >= asm.AMX || engineISA == asm.AVX512 && PairsPay }
