package asm

import (
	"fmt"
	"slices"
	"strings"
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

// Best returns the best ISA of this machine.
func Best() ISA { return best }

// HasBF16 reports whether the machine has AVX512-BF16.
func HasBF16() bool { return hasBF16 }

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

// LineBytes is the size of a cache line.
const LineBytes = 64
