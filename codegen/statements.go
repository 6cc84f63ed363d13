package codegen

import (
	"fmt"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// statements is the body of one Go function while it is written: its statements, the names in it, and the values that
// it has declared.
type statements struct {
	Target
	*namer
	body  *jen.Group
	known map[*ir.Value]bool // values that are declared
}

// call writes fn(args): values by their names, numbers and flags as literals, code as it is.
func (w *statements) call(fn *jen.Statement, args ...any) { w.body.Add(w.calling(fn, args...)) }

// calling is the call.
func (w *statements) calling(fn *jen.Statement, args ...any) *jen.Statement {
	codes := make([]jen.Code, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case *ir.Value:
			codes[i] = jen.Id(w.name(a))
		case int:
			codes[i] = jen.Lit(w.kernelSize(fn.GoString(), a))
		case float64, bool:
			codes[i] = jen.Lit(a)
		case jen.Code:
			codes[i] = a
		default:
			panic(fmt.Sprintf("codegen: argument of type %T", a))
		}
	}
	return fn.Call(codes...)
}

// alias makes a value another name of one that is declared.
func (w *statements) alias(v, original *ir.Value) {
	w.known[v] = true
	w.names[v] = w.name(original)
}

// own writes a call of a runtime function: rt.Name(args) or gpu.Name(r, args).
func (w *statements) own(name string, args ...any) {
	if w.gpu() {
		args = append([]any{jen.Id("r")}, args...)
	}
	w.call(w.runtime(name), args...)
}

// called writes a call of a kernel: kern.Name(args) or gpu.Name(r, args).
func (w *statements) called(name string, args ...any) {
	if w.gpu() {
		w.own(name, args...)
		return
	}
	w.call(jen.Id("kern").Dot(name), args...)
}

// copied writes a copy of one value to another.
func (w *statements) copied(to, from *ir.Value) {
	if w.gpu() {
		w.own("Copy", to, from)
		return
	}
	w.body.Copy(jen.Id(w.name(to)), jen.Id(w.name(from)))
}

// unless writes what is done if a call returns false.
func (w *statements) unless(call jen.Code, do func()) {
	outer := w.body
	outer.If(jen.Op("!").Add(call)).BlockFunc(func(b *jen.Group) {
		w.body = b
		do()
	})
	w.body = outer
}
