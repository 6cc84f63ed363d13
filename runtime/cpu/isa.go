package cpu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/runtime/vec"
)

// ISA is an instruction set for which kernels are written. Each includes the previous ones, so that a
// kernel without a version for one uses the version for the one below.
type ISA int

const (
	Portable ISA = iota // plain Go
	AVX2                // with FMA, F16C, BMI2
	AVX512              // F, BW, DQ and VL
	AMX                 // with AVX512-BF16: tiles of bfloat16, and of float32s that are split into three of them
	numISAs
)

var isaNames = [numISAs]string{"portable", "avx2", "avx512", "amx"}

func (i ISA) String() string { return isaNames[i] }

// best is the best ISA of this machine. hasBF16 says whether it has AVX512-BF16.
var best, hasBF16 = detect()

// pairsPay reports whether AVX512-BF16 multiplies faster than widening the operands and multiplying in
// float32. Relative to float32 matmuls it is 1.8 times as fast on AMD's Zen 5, and 0.6 times on Intel's
// family 6, model 167, where widening reaches 0.9. The vendor decides, not a measurement, so that all runs
// on a machine give the same bits.
var pairsPay = hasBF16 && !isIntel()

// inUse is the ISA for which the tables were last filled.
var inUse ISA

func init() { Use(best) }

// Best returns the best ISA of this machine. Tables are filled for it when the program starts.
func Best() ISA { return best }

// InUse returns the ISA whose kernels the tables hold.
func InUse() ISA { return inUse }

// FindISA returns the ISA with a name, or the best one for "auto" and "". It is an error if this machine
// does not have it.
func FindISA(name string) (ISA, error) { return findISA(name, best) }

func findISA(name string, best ISA) (ISA, error) {
	if name == "auto" || name == "" {
		return best, nil
	}
	i := ISA(slices.Index(isaNames[:], name))
	if i < 0 {
		return 0, fmt.Errorf("unknown instruction set %s: use auto, %s", name,
			strings.Join(isaNames[:], ", "))
	}
	if i > best {
		return 0, fmt.Errorf("this machine does not support %s: use auto (here %v), %s",
			name, best, strings.Join(isaNames[:best+1], ", "))
	}
	return i, nil
}

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
