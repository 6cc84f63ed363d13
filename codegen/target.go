package codegen

import (
	"fmt"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// Target is the kind of device that generated code runs on. Functions, tables and names are the same for all targets.
// Code for a CPU calls kernels on slices of memory. Code for a GPU calls package runtime/gpu, which enqueues kernels on
// the rank's stream, on buffers of the device. [CUDA] prints the kernels of its fused ops.
type Target int

// The targets.
const (
	CPU Target = iota
	GPU
)

// gpu reports whether the code is for a GPU.
func (t Target) gpu() bool { return t == GPU }

// runtime returns a function that the runtime has for each target.
func (t Target) runtime(name string) *jen.Statement {
	if t.gpu() {
		return jen.Qual(gpuPath, name)
	}
	return rt(name)
}

// missing returns the code for a missing operand of a type.
func (t Target) missing(operand ir.Type) jen.Code {
	if t.gpu() {
		return jen.Qual(gpuPath, "Buf").Index(elemCode(operand)).Values()
	}
	return jen.Nil()
}

// runArgs returns the arguments of Run or Main: the parts of a program, between first and last.
func (w *fileWriter) runArgs(first jen.Code, last ...jen.Code) (args []jen.Code) {
	if first != nil {
		args = append(args, first)
	}
	args = append(args, jen.Op("&").Id("program"))
	if w.Target.gpu() {
		args = append(args, jen.Id("kernels"))
	}
	return append(args, last...)
}

// kernels declares the kernels.
func (w *fileWriter) kernels(f *jen.File) {
	if w.Target.gpu() {
		f.Comment("kernels are the compiled GPU kernels: the runtime's, and this program's own for chains.")
		f.Comment("")
		f.Comment("//go:embed kernels")
		f.Var().Id("kernels").Qual("embed", "FS")
		return
	}
	f.Comment("kern holds the kernels for this machine.")
	f.Var().Id("kern").Op("=").Qual(cpuPath, "Table").Index(jen.Id("float")).Call()
}

// groupTableGPU declares the fused groups: names of kernels, and which of them sum over rows.
func (w *fileWriter) groupTableGPU(f *jen.File) {
	f.Comment("Fused ops, each a kernel in chains.cu.")
	f.Var().DefsFunc(func(d *jen.Group) {
		for i, c := range w.used.cuChains() {
			fields := jen.Dict{jen.Id("Kernel"): jen.Lit(c.Name)}
			if c.Reduces() {
				fields[jen.Id("Rowwise")] = jen.True()
			}
			d.Id(fmt.Sprintf("chain%d", i+1)).Op("=").Qual(gpuPath, "Fused").Values(fields)
		}
	})
}
