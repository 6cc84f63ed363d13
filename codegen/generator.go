package codegen

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/runtime/program"
)

// generator writes one file.
type generator struct {
	Input
	p      *ir.Program
	groups map[string]int // atoms joined, to the index in groupList
	list   [][]ir.Axis

	chains    []chainSpec
	patterns  []ir.Layers              // of local layers, as functions use them
	attention []program.AttentionShape // kinds that a library may compute
}

// arithmetic returns the type in which kernels compute, which is also the type of statistics.
func (g *generator) arithmetic() ir.Elem { return g.p.Plan.Precision.Compute.Statistic() }

// group returns the index of the group over axes, -1 if they split nothing.
func (g *generator) group(axes []ir.Axis) int {
	if len(axes) == 0 {
		return -1
	}
	atoms := g.p.Mesh.Expand(axes)
	key := fmt.Sprint(atoms)
	i, ok := g.groups[key]
	if !ok {
		i = len(g.list)
		g.groups[key] = i
		g.list = append(g.list, atoms)
	}
	return i
}

// groupCode returns the constant of a group.
func (g *generator) groupCode(axes []ir.Axis) jen.Code {
	i := g.group(axes)
	if i < 0 {
		return jen.Lit(-1)
	}
	return jen.Id(groupName(g.list[i]))
}

func groupName(atoms []ir.Axis) string {
	s := "group"
	for _, a := range atoms {
		s += title(string(a))
	}
	return s
}

// file writes the declarations. Functions are generated first, because they collect the groups, but come last in the
// file.
func (g *generator) file(f *jen.File) {
	funcs := g.functions()
	table := g.table()
	f.Comment("This file needs a runtime of the same version.")
	f.Const().Id("_").Op("=").Qual(RuntimePath, "Version2")
	f.Comment("float is the type in which kernels compute.")
	f.Type().Id("float").Op("=").Id(map[ir.Elem]string{ir.F32: "float32", ir.F64: "float64"}[g.arithmetic()])
	g.kernels(f)
	g.groupConsts(f)
	g.chainTable(f)
	f.Comment("Plan is the plan that this file implements.")
	f.Var().Id("Plan").Op("=").Add(literal(g.Plan))
	f.Add(table)
	g.entries(f)
	for _, t := range g.patternTables() {
		f.Add(t)
	}
	g.weightTable(f)
	for _, fn := range funcs {
		f.Add(fn)
	}
}

func (g *generator) groupConsts(f *jen.File) {
	if len(g.list) == 0 {
		return
	}
	f.Comment("Groups of ranks. Their members differ in the named axes.")
	f.Const().DefsFunc(func(d *jen.Group) {
		for i, atoms := range g.list {
			d.Id(groupName(atoms)).Op("=").Lit(i)
		}
	})
}

// entries writes the exported functions Run and Main, and main if requested.
func (g *generator) entries(f *jen.File) {
	f.Comment("Run trains as defined in the job, with changes by the options.")
	f.Func().Id("Run").Params(jen.Id("ctx").Qual("context", "Context"),
		jen.Id("opts").Op("...").Qual(RuntimePath, "Option")).
		Params(jen.Qual(RuntimePath, "Result"), jen.Error()).
		Block(jen.Return(g.runtime("Run").Call(g.with(jen.Id("ctx"), jen.Id("opts").Op("..."))...)))
	f.Comment("Main is Run as a command.")
	f.Func().Id("Main").Params().Block(g.runtime("Main").Call(g.with(nil)...))
	if g.Main {
		f.Func().Id("main").Params().Block(jen.Id("Main").Call())
	}
	// The functions' table and the functions refer to each other through the runtime: init breaks the cycle.
	f.Func().Id("init").Params().Block(jen.Id("program").Dot("Segments").Op("=").Add(g.segmentTable()))
}

// table declares the variable program.
func (g *generator) table() jen.Code {
	d := jen.Dict{jen.Id("ProgramData"): g.tables(g.lower())}
	return jen.Comment("program holds the tables of this training program.").Line().
		Var().Id("program").Op("=").Add(rt("Program")).Values(d)
}

// tables prints a program's tables. Plan and Weights are variables of their own, and groups have names.
func (g *generator) tables(p program.Program) jen.Code {
	d := g.printer().fields(reflect.ValueOf(p))
	d[jen.Id("Plan")] = jen.Id("Plan")
	if g.Weights != nil {
		d[jen.Id("Weights")] = jen.Id("weights")
	}
	return rt("ProgramData").Values(d)
}

// printer returns a printer of literals that names groups.
func (g *generator) printer() literals {
	return literals{group: func(i int) jen.Code {
		if i < 0 {
			return jen.Lit(-1)
		}
		return jen.Id(groupName(g.list[i]))
	}}
}

func rt(name string) *jen.Statement { return jen.Qual(RuntimePath, name) }

func (g *generator) drops() bool {
	for _, s := range g.p.Model.Segments {
		if slices.ContainsFunc(s.Forward.Nodes, func(n *ir.Node) bool { return n.Attr.Drop > 0 }) {
			return true
		}
	}
	return false
}

// choices returns the number of experts per token in a function.
func choices(f *ir.Func) int {
	for _, n := range f.Nodes {
		if n.Op == ir.OpRoute {
			return n.Outs[1].Type.Dims[len(n.Outs[1].Type.Dims)-1].Size
		}
	}
	panic("codegen: no router in " + f.Name)
}

// weightTable declares the variable weights.
func (g *generator) weightTable(f *jen.File) {
	if g.Weights != nil {
		f.Comment("weights is the layout of the parameters in files of Hugging Face's format.")
		f.Var().Id("weights").Op("=").Add(literal(*g.Weights))
	}
}
