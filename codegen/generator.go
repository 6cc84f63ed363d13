package codegen

import (
	"fmt"
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// generator writes one file.
type generator struct {
	Input
	p      *ir.Program
	groups map[string]int // atoms joined, to the index in groupList
	list   [][]ir.Axis

	chains    []chainSpec
	patterns  []ir.Layers // of local layers, as functions use them
	attention []attended  // kinds that a library may compute
}

// arithmetic is the type that kernels compute in, and statistics are of.
func (g *generator) arithmetic() ir.Elem { return g.p.Plan.Precision.Compute.Statistic() }

// precision is the program's, where that is not one type.
func (g *generator) precision(d jen.Dict) {
	p := g.p.Plan.Precision
	if p == ir.FullPrecision(g.arithmetic()) {
		return
	}
	name := func(e ir.Elem) jen.Code {
		return rt(map[ir.Elem]string{ir.F32: "F32", ir.F64: "F64", ir.BF16: "BF16", ir.F16: "F16"}[e])
	}
	d[jen.Id("Types")] = rt("Types").Values(jen.Dict{
		jen.Id("Compute"): name(p.Compute), jen.Id("Params"): name(p.Params), jen.Id("Grads"): name(p.Grads),
		jen.Id("Reduce"): name(p.Reduce), jen.Id("Master"): name(p.Master), jen.Id("Moments"): name(p.Moments),
	})
}

// group is the index of the group over axes, -1 if they split nothing.
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

// groupCode names a group by its constant.
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

// file writes the declarations. Functions come first in time, since they collect the groups, but last in the
// file.
func (g *generator) file(f *jen.File) {
	funcs := g.functions()
	table := g.table()
	f.Comment("The runtime and this file are of one version.")
	f.Const().Id("_").Op("=").Qual(RuntimePath, "Version1")
	f.Comment("float is what kernels compute in.")
	f.Type().Id("float").Op("=").Id(map[ir.Elem]string{ir.F32: "float32", ir.F64: "float64"}[g.arithmetic()])
	g.kernels(f)
	g.groupConsts(f)
	g.chainTable(f)
	f.Comment("Plan is the plan that this file carries out.")
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
	f.Comment("Groups of ranks, by the axes in which their members differ.")
	f.Const().DefsFunc(func(d *jen.Group) {
		for i, atoms := range g.list {
			d.Id(groupName(atoms)).Op("=").Lit(i)
		}
	})
}

// entries writes what callers use: Run, Main and perhaps main.
func (g *generator) entries(f *jen.File) {
	f.Comment("Run trains as the job says, changed by the options.")
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

// table is var program.
func (g *generator) table() jen.Code {
	d := jen.Dict{
		jen.Id("Name"): jen.Lit(g.Job), jen.Id("Hash"): jen.Lit(g.Hash), jen.Id("Plan"): jen.Id("Plan"),
		jen.Id("Elem"):     rt(map[ir.Elem]string{ir.F32: "F32", ir.F64: "F64"}[g.arithmetic()]),
		jen.Id("Predict"):  literal(g.Predict),
		jen.Id("Model"):    literal(g.Model),
		jen.Id("Settings"): literal(g.Settings),
		jen.Id("Mesh"):     g.meshTable(),
		jen.Id("Params"):   g.paramTable(),
		jen.Id("Stages"):   g.stageTable(),
		jen.Id("Stream"):   jen.Lit(g.p.Stream),
		jen.Id("Batch"):    g.batchTable(),
		jen.Id("Optim"):    rt(map[string]string{"adamw": "AdamW", "adam": "Adam", "sgd": "SGD"}[g.p.Recipe.Optimizer]),
		jen.Id("Dropout"):  jen.Lit(g.drops()),
	}
	if g.p.Recipe.StochasticRounding {
		d[jen.Id("StochasticRounding")] = jen.True()
	}
	g.ends(d)
	g.attendsTable(d)
	g.precision(d)
	g.experts(d)
	if g.Weights != nil {
		d[jen.Id("Weights")] = jen.Id("weights")
	}
	d[jen.Id("Groups")] = g.groupTable() // after all that asks for groups
	return jen.Comment("program is what the runtime knows of this training run before it starts.").Line().
		Var().Id("program").Op("=").Add(rt("Program")).Values(d)
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

func (g *generator) groupTable() jen.Code {
	return jen.Index().Add(rt("Group")).ValuesFunc(func(v *jen.Group) {
		for _, atoms := range g.list {
			v.Values(jen.Dict{jen.Id("Axes"): axisList(atoms)})
		}
	})
}

func axisList(axes []ir.Axis) jen.Code {
	return jen.Index().String().ValuesFunc(func(v *jen.Group) {
		for _, a := range axes {
			v.Lit(string(a))
		}
	})
}

func (g *generator) meshTable() jen.Code {
	return jen.Index().Add(rt("Axis")).ValuesFunc(func(v *jen.Group) {
		for _, a := range g.p.Mesh.Atoms {
			v.Values(jen.Dict{jen.Id("Name"): jen.Lit(string(a.Name)), jen.Id("Size"): jen.Lit(a.Size)})
		}
	})
}

func (g *generator) paramTable() jen.Code {
	return jen.Index().Add(rt("Param")).ValuesFunc(func(v *jen.Group) {
		for _, s := range g.p.Model.Segments {
			for _, w := range s.Forward.Weights() {
				if w.Param.Tied == "" {
					v.Values(g.paramRow(s, w))
				}
			}
		}
	})
}

func (g *generator) paramRow(s *ir.Segment, w *ir.Value) jen.Dict {
	name := s.Name + "." + w.Name
	if s.Numbered() {
		name = s.Name + ".{layer}." + w.Name
	}
	init := jen.Dict{jen.Id("Kind"): rt(map[string]string{"zeros": "Zeros", "ones": "Ones",
		"normal": "Normal"}[w.Param.Init])}
	if w.Param.Init == "normal" {
		init[jen.Id("Std")] = jen.Lit(w.Param.Std)
	}
	if w.Param.First > 0 {
		init[jen.Id("First")] = jen.Lit(w.Param.First)
	}
	if w.Param.Zero > 0 {
		init[jen.Id("Zero")] = jen.Lit(w.Param.Zero)
	}
	row := jen.Dict{
		jen.Id("Name"): jen.Lit(name), jen.Id("Decay"): jen.Lit(w.Param.Decay), jen.Id("Init"): rt("Init").Values(init),
		jen.Id("Layers"): jen.Lit(s.Count), jen.Id("Places"): g.places(s, w),
		jen.Id("Dims"): jen.Index().Add(rt("Dim")).ValuesFunc(func(v *jen.Group) {
			for _, e := range w.Type.Dims {
				v.Values(jen.Dict{jen.Id("Name"): jen.Lit(string(e.Dim)), jen.Id("Size"): jen.Lit(e.Size),
					jen.Id("Axes"): axisList(g.p.Mesh.Expand(e.Axes))})
			}
		}),
	}
	if w.Param.Balance {
		row[jen.Id("Choices")] = jen.Lit(choices(s.Forward))
	}
	return row
}

// choices is how many experts a token goes to in a function.
func choices(f *ir.Func) int {
	for _, n := range f.Nodes {
		if n.Op == ir.OpRoute {
			return n.Outs[1].Type.Dims[len(n.Outs[1].Type.Dims)-1].Size
		}
	}
	panic("codegen: no router in " + f.Name)
}

// weightTable is var weights.
func (g *generator) weightTable(f *jen.File) {
	if g.Weights != nil {
		f.Comment("weights is where the parameters lie in files of Hugging Face's layout.")
		f.Var().Id("weights").Op("=").Add(literal(*g.Weights))
	}
}
