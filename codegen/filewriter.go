package codegen

import (
	"reflect"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/runtime/program"
)

// fileWriter prints a program whose functions and tables exist as one file.
type fileWriter struct {
	Input
	funcs    []jen.Code        // the functions
	used     *declarations     // what the functions refer to
	program  program.Program   // the tables, without the segments
	segments []program.Segment // the segments, without their functions
}

// file writes the declarations. The functions come last.
func (w *fileWriter) file(f *jen.File) {
	f.Comment("This file needs a runtime of the same version.")
	f.Const().Id("_").Op("=").Qual(RuntimePath, "Version2")
	f.Comment("float is the type in which kernels compute.")
	f.Type().Id("float").Op("=").Id(map[ir.Elem]string{ir.F32: "float32", ir.F64: "float64"}[arithmetic(w.Program)])
	w.kernels(f)
	w.used.groups.declare(f)
	w.chainTable(f)
	f.Comment("Plan is the plan that this file implements.")
	f.Var().Id("Plan").Op("=").Add(literal(w.Plan))
	f.Add(w.table())
	w.entries(f)
	for _, t := range w.used.patternTables() {
		f.Add(t)
	}
	w.weightTable(f)
	for _, fn := range w.funcs {
		f.Add(fn)
	}
}

// entries writes the exported functions Run and Main, and main if requested.
func (w *fileWriter) entries(f *jen.File) {
	f.Comment("Run trains as defined in the job, with changes by the options.")
	f.Func().Id("Run").Params(jen.Id("ctx").Qual("context", "Context"),
		jen.Id("opts").Op("...").Qual(RuntimePath, "Option")).
		Params(jen.Qual(RuntimePath, "Result"), jen.Error()).
		Block(jen.Return(w.Target.runtime("Run").Call(w.runArgs(jen.Id("ctx"), jen.Id("opts").Op("..."))...)))
	f.Comment("Main is Run as a command.")
	f.Func().Id("Main").Params().Block(w.Target.runtime("Main").Call(w.runArgs(nil)...))
	if w.Main {
		f.Func().Id("main").Params().Block(jen.Id("Main").Call())
	}
	// The functions' table and the functions refer to each other through the runtime: init breaks the cycle.
	f.Func().Id("init").Params().Block(jen.Id("program").Dot("Segments").Op("=").Add(w.segmentTable()))
}

// table declares the variable program.
func (w *fileWriter) table() jen.Code {
	d := jen.Dict{jen.Id("ProgramData"): w.tables()}
	return jen.Comment("program holds the tables of this training program.").Line().
		Var().Id("program").Op("=").Add(rt("Program")).Values(d)
}

// tables prints a program's tables. Plan and Weights are variables of their own, and groups have names.
func (w *fileWriter) tables() jen.Code {
	d := w.printer().fields(reflect.ValueOf(w.program))
	d[jen.Id("Plan")] = jen.Id("Plan")
	if w.Weights != nil {
		d[jen.Id("Weights")] = jen.Id("weights")
	}
	return rt("ProgramData").Values(d)
}

// printer returns a printer of literals that names groups.
func (w *fileWriter) printer() literals {
	return literals{group: func(i int) jen.Code {
		if i < 0 {
			return jen.Lit(-1)
		}
		return jen.Id(groupName(w.used.groups.list[i]))
	}}
}

func rt(name string) *jen.Statement { return jen.Qual(RuntimePath, name) }

// segmentTable lists the segments with their functions.
func (w *fileWriter) segmentTable() jen.Code {
	return jen.Index().Add(rt("Segment")).ValuesFunc(func(v *jen.Group) {
		for i, s := range w.Program.Model.Segments {
			data := rt("SegmentData").Values(w.printer().fields(reflect.ValueOf(w.segments[i])))
			d := jen.Dict{jen.Id("SegmentData"): data}
			if w.Program.Uses(s) {
				d[jen.Id("Forward")], d[jen.Id("Backward")] = jen.Id(funcName(s.Forward)), jen.Id(funcName(s.Backward))
				if s.Weights != nil {
					d[jen.Id("Weights")] = jen.Id(funcName(s.Weights))
				}
			}
			if v := s.Remat; v != nil && w.Program.Uses(v) {
				d[jen.Id("RematForward")], d[jen.Id("RematBackward")] = jen.Id(funcName(v.Forward)),
					jen.Id(funcName(v.Backward))
			}
			if s.Logits != nil {
				d[jen.Id("Logits")] = jen.Id(funcName(s.Logits))
			}
			v.Values(d)
		}
	})
}

// weightTable declares the variable weights.
func (w *fileWriter) weightTable(f *jen.File) {
	if w.Weights != nil {
		f.Comment("weights is the layout of the parameters in files of Hugging Face's format.")
		f.Var().Id("weights").Op("=").Add(literal(*w.Weights))
	}
}

// arithmetic returns the type in which a program's kernels compute, which is also the type of statistics.
func arithmetic(p *ir.Program) ir.Elem { return p.Plan.Precision.Compute.Statistic() }
