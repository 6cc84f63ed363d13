package cpu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/runtime/vec"
)

// ISA is a set of instructions that kernels are written for. Each includes those before it, so that a kernel which has
// no version for one runs the version for the one below.
type ISA int

const (
	Portable ISA = iota // plain Go
	AVX2                // and FMA, F16C, BMI2
	AVX512              // F, BW, DQ and VL
	AMX                 // and AVX512-BF16: tiles of bfloat16, and of float32s that are split into three of them
	numISAs
)

var isaNames = [numISAs]string{"portable", "avx2", "avx512", "amx"}

func (i ISA) String() string { return isaNames[i] }

// best is the last that this machine has, and hasBF16 whether it has AVX512-BF16.
var best, hasBF16 = detect()

// pairsPay tells whether AVX512-BF16 multiplies faster than operands are widened and multiplied in float32. It does 1.8
// times float32's products on AMD's Zen 5, 0.6 times on Intel's family 6, model 167, where widening them does 0.9. The
// maker decides, not a measurement, so that all runs on a machine make the same bits.
var pairsPay = hasBF16 && !isIntel()

// inUse is what the tables were last filled for.
var inUse ISA

func init() { Use(best) }

// Best is the last ISA that this machine has. Tables are filled for it when the program starts.
func Best() ISA { return best }

// InUse is the ISA whose kernels the tables hold.
func InUse() ISA { return inUse }

// FindISA is the ISA of a name, or the best one for "auto" and "". It is an error that this machine does not have it.
func FindISA(name string) (ISA, error) { return findISA(name, best) }

func findISA(name string, best ISA) (ISA, error) {
	if name == "auto" || name == "" {
		return best, nil
	}
	i := ISA(slices.Index(isaNames[:], name))
	if i < 0 {
		return 0, fmt.Errorf("there are no instructions named %s; there are auto and %s", name,
			strings.Join(isaNames[:], ", "))
	}
	if i > best {
		return 0, fmt.Errorf("this machine does not have %s; auto, which is %v here, and %s work",
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
