package codegen

import (
	"fmt"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// indices writes which part of a split dim a rank has. What is known only at run time becomes a variable of the
// function.
type indices struct {
	*statements
	sizes
	groups  *groupTable
	zigzags map[string]string // names of variables of zigzag dims, by dim and split
}

// part is where the rank's part of a dim begins and how many of it are not padding.
func (x *indices) part(d ir.Extent) (lo, size jen.Code) {
	if len(d.Axes) == 0 {
		return jen.Lit(0), jen.Lit(d.Size)
	}
	width := x.count([]ir.Extent{d})
	if d.Size == width*x.mesh.Ranks(d.Axes) {
		return x.offset(d), jen.Lit(width)
	}
	l, n := x.fresh("lo"), x.fresh("valid")
	x.body.List(jen.Id(l), jen.Id(n)).Op(":=").Add(rt("LocalRange")).Call(jen.Id("r"), x.groups.code(d.Axes),
		jen.Lit(width),
		jen.Lit(d.Size))
	x.body.List(jen.Id("_"), jen.Id("_")).Op("=").List(jen.Id(l), jen.Id(n))
	return jen.Id(l), jen.Id(n)
}

// lastDim is a type as rows of its last dim, and the rank's part of that.
func (x *indices) lastDim(t ir.Type) (rows, cols int, lo, size jen.Code) {
	d := t.Dims[len(t.Dims)-1]
	cols = x.count([]ir.Extent{d})
	lo, size = x.part(d)
	return x.count(t.Dims) / cols, cols, lo, size
}

// offset is the global index of the rank's first index of a dim. Rows are numbered in the global batch.
func (x *indices) offset(d ir.Extent) jen.Code {
	if d.Dim == ir.Batch {
		return rt("FirstRow").Call(jen.Id("r"), jen.Id("b").Dot("Micro"))
	}
	if len(d.Axes) == 0 {
		return jen.Lit(0)
	}
	if isZigzag(d) {
		panic(fmt.Sprintf("codegen: a part of %s begins at no one place", d.Dim))
	}
	return rt("Index").Call(jen.Id("r"), x.groups.code(d.Axes)).Op("*").Lit(x.mesh.Width(&d))
}

// isZigzag reports whether a rank's part of the dim is two runs of it.
func isZigzag(d ir.Extent) bool { return len(d.Axes) > 0 && d.Axes[0].IsZigzag() }

// where returns the rank's part of a dim as a cpu.Where.
func (x *indices) where(d ir.Extent) jen.Code {
	if isZigzag(d) {
		return x.zigzag(d)
	}
	fields := jen.Dict{}
	if len(d.Axes) > 0 {
		fields[jen.Id("At")] = x.offset(d)
	}
	return jen.Qual(cpuPath, "Where").Values(fields)
}

// zigzag returns a variable for the rank's part of a dim in zigzag order, declared at its first use in the function.
func (x *indices) zigzag(d ir.Extent) *jen.Statement {
	key := string(d.Dim) + " " + ir.Type{Dims: []ir.Extent{d}}.String()
	if x.zigzags[key] == "" {
		name := x.fresh("where")
		n := x.mesh.Ranks(d.Axes[:1])
		fn, args := "Zigzag", []jen.Code{jen.Id("r"), x.groups.code(d.Axes), jen.Lit(n), jen.Lit(d.Size)}
		if by := d.Axes[0].Turn(); by != 0 {
			fn, args = "ShiftedZigzag", append(args, jen.Lit(by))
		}
		x.body.Id(name).Op(":=").Add(rt(fn).Call(args...))
		if x.zigzags == nil {
			x.zigzags = map[string]string{}
		}
		x.zigzags[key] = name
	}
	return jen.Id(x.zigzags[key])
}
