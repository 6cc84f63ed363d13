// Package vex checks assembly that must run on CPUs without AVX-512. Such CPUs have 16 vector registers, and decode only
// the VEX encoding of instructions, not the EVEX encoding of AVX-512.
package vex

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/reg"
)

// registers is the number of vector registers of AVX and AVX2.
const registers = 16

// Check returns an error if a function of a compiled file uses an instruction or a register that only AVX-512 has. avo
// allocates all 32 vector registers, whatever instruction set a kernel is written for. The assembler then encodes the
// instruction for AVX-512, and CPUs without it end the process with an illegal instruction.
func Check(file *ir.File) error {
	for _, f := range file.Functions() {
		for _, i := range f.Instructions() {
			for _, isa := range i.ISA {
				if strings.HasPrefix(isa, "AVX512") {
					return fmt.Errorf("%s uses %s, which needs %s: use instructions of AVX2", f.Name, i.Opcode, isa)
				}
			}
			for _, r := range i.Registers() {
				p := reg.ToPhysical(r)
				if p != nil && p.Kind() == reg.KindVector && p.PhysicalIndex() >= registers {
					return fmt.Errorf("%s uses %s in %s, but AVX2 has %d vector registers: process fewer vectors at a time",
						f.Name, p.Asm(), i.Opcode, registers)
				}
			}
		}
	}
	return nil
}
