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
func (g *generator) gpu() bool { return g.Target == GPU }

// runtime returns a function that the runtime has for each target.
func (g *generator) runtime(name string) *jen.Statement {
	if g.gpu() {
		return jen.Qual(gpuPath, name)
	}
	return rt(name)
}

// own writes a call of a runtime function: rt.Name(args) or gpu.Name(r, args).
func (e *emitter) own(name string, args ...any) {
	if e.gpu() {
		args = append([]any{jen.Id("r")}, args...)
	}
	e.call(e.runtime(name), args...)
}

// called writes a call of a kernel: kern.Name(args) or gpu.Name(r, args).
func (e *emitter) called(name string, args ...any) {
	if e.gpu() {
		e.own(name, args...)
		return
	}
	e.call(jen.Id("kern").Dot(name), args...)
}

// joined writes a collective: rt.Name(r, group, args), or package gpu's.
func (e *emitter) joined(name string, n *ir.Node, args ...any) {
	e.call(e.runtime(name), append([]any{jen.Id("r"), e.groupCode(n.Attr.Axes)}, args...)...)
}

// copied writes a copy of one value to another.
func (e *emitter) copied(to, from *ir.Value) {
	if e.gpu() {
		e.own("Copy", to, from)
		return
	}
	e.body.Copy(jen.Id(e.name(to)), jen.Id(e.name(from)))
}

// nothing returns the code for a missing operand of type t.
func (e *emitter) nothing(t ir.Type) jen.Code {
	if e.gpu() {
		return jen.Qual(gpuPath, "Buf").Index(elemCode(t)).Values()
	}
	return jen.Nil()
}

// with returns the arguments of Run or Main: the parts of a program, between first and last.
func (g *generator) with(first jen.Code, last ...jen.Code) (args []jen.Code) {
	if first != nil {
		args = append(args, first)
	}
	args = append(args, jen.Op("&").Id("program"))
	if g.gpu() {
		args = append(args, jen.Id("kernels"))
	}
	return append(args, last...)
}

// kernels declares the kernels.
func (g *generator) kernels(f *jen.File) {
	if g.gpu() {
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
func (g *generator) groupTableGPU(f *jen.File) {
	f.Comment("Fused ops, each a kernel in chains.cu.")
	f.Var().DefsFunc(func(d *jen.Group) {
		for i, c := range g.cuChains() {
			fields := jen.Dict{jen.Id("Kernel"): jen.Lit(c.Name)}
			if c.Reduces() {
				fields[jen.Id("Rowwise")] = jen.True()
			}
			d.Id(fmt.Sprintf("chain%d", i+1)).Op("=").Qual(gpuPath, "Fused").Values(fields)
		}
	})
}

// launch writes the launch of a chain's kernel, inside of loops before loop k.
func (l *loop) launch(b *jen.Group, spec chainSpec, rows, cols, k int) {
	args := []jen.Code{jen.Id("r"), jen.Id(l.e.chain(spec)), jen.Lit(rows), jen.Lit(cols)}
	for _, v := range l.operands() {
		x := jen.Id(l.e.name(v))
		if at := l.offset(v.Type, k); at != nil {
			x = x.Dot("From").Call(at)
		}
		args = append(args, x)
	}
	b.Qual(gpuPath, "Chain").Call(append(args, l.more...)...)
}
