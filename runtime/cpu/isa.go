package cpu

import "github.com/planc-dev/planc/runtime/cpu/asm"

// ISA is an instruction set for which kernels are written.
type ISA = asm.ISA

// The instruction sets, each of which includes the previous ones.
const (
	Portable = asm.Portable // plain Go
	AVX2     = asm.AVX2
	AVX512   = asm.AVX512
	AMX      = asm.AMX
)

// Best returns the best ISA of this machine. Tables are filled for it when the program starts.
func Best() ISA { return asm.Best() }

// FindISA returns the ISA with a name, or the best one for "auto" and "". It is an error if this machine
// does not have it.
func FindISA(name string) (ISA, error) { return asm.FindISA(name) }
