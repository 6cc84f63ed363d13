package codegen

import (
	"fmt"
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// emitLoop writes an element-wise op, or a fused chain of ops, as a call of the kernels' Chain over the result's
// elements. Adjacent dims that the same operands have are merged. The last two of the remaining dims are rows and
// columns of the chain, and the others are loops around it. A row of a side of a value is one of the columns: the rows
// are not adjacent.
func emitLoop(e *emitter, n *ir.Node) {
	body := n.Body
	if n.Op != ir.OpFused {
		body = []*ir.Node{n}
	} else {
		for _, m := range body {
			e.body.Comment("\t" + opLine(m))
		}
	}
	l := &loop{e: e, n: n, body: body}
	if row := rowOf(body); row != nil {
		l.rows(row)
	} else {
		l.split()
	}
	l.nest(e.body, 0)
}

// rowOf returns the dims of a row for the body's ops on rows, nil if there are none.
func rowOf(body []*ir.Node) []ir.Dim {
	for _, n := range body {
		if r := n.Row(); r != nil {
			return r
		}
	}
	return nil
}

// rows makes two loops: over the dims before those of row in the result, and over the row.
func (l *loop) rows(row []ir.Dim) {
	l.sizes, l.dims = []int{1, 1}, make([][]ir.Dim, 2)
	for _, d := range l.n.Outs[0].Type.Dims {
		k := 0
		if slices.Contains(row, d.Dim) {
			k = 1
		}
		l.sizes[k] *= l.e.count([]ir.Extent{d})
		l.dims[k] = append(l.dims[k], d.Dim)
	}
}

// loop is a loop nest: the sizes of its loops, and for each operand the loops on which it depends.
type loop struct {
	e     *emitter
	n     *ir.Node
	body  []*ir.Node
	sizes []int
	dims  [][]ir.Dim // of each loop

	more []jen.Code // operands that are no values, behind the values
}

// split groups the result's dims by the set of operands that have them. On a GPU, a group has at most maxKernelSize
// elements, and the rest of its dims form another group.
func (l *loop) split() {
	out := l.n.Outs[0].Type
	last := ""
	for i, d := range out.Dims {
		has := ""
		for _, a := range l.n.Args {
			has += fmt.Sprint(a.Type.Has(d.Dim))
		}
		for _, v := range l.operands() {
			has += fmt.Sprint(l.inSide(v, d.Dim))
		}
		size := l.e.count(out.Dims[i : i+1])
		if i == 0 || has != last || l.e.gpu() && l.sizes[len(l.sizes)-1] > maxKernelSize/size {
			l.sizes, l.dims = append(l.sizes, 1), append(l.dims, nil)
		}
		k := len(l.sizes) - 1
		l.sizes[k] *= size
		l.dims[k] = append(l.dims[k], d.Dim)
		last = has
	}
	if len(l.sizes) == 0 {
		l.sizes, l.dims = []int{1}, [][]ir.Dim{nil}
	}
}

// inSide reports whether an operand is a side of a value, of whose row the dim is a part.
func (l *loop) inSide(v *ir.Value, d ir.Dim) bool {
	whole := ir.WholeOfSide(v, l.e.sides)
	if whole == nil {
		return false
	}
	dims := whole.Type.Dims
	return dimIndex(whole.Type, ir.Side) < slices.IndexFunc(dims, func(e ir.Extent) bool { return e.Dim == d })
}

// sidesOf returns the number of sides of the value of which an operand is one; 0 if it is none. The columns are its
// row.
func (l *loop) sidesOf(v *ir.Value) int {
	whole := ir.WholeOfSide(v, l.e.sides)
	if whole == nil {
		return 0
	}
	side, row := whole.Type.SideSizes(l.e.mesh)
	if cols := l.sizes[len(l.sizes)-1]; cols != side {
		panic(fmt.Sprintf("codegen: a row of a side has %d elements, and its loop %d", side, cols))
	}
	return row / side
}

// hasSides reports whether an operand is a side of a value.
func (l *loop) hasSides() bool {
	return slices.ContainsFunc(l.operands(), func(v *ir.Value) bool { return ir.WholeOfSide(v, l.e.sides) != nil })
}

func loopVar(k int) string { return fmt.Sprintf("i%d", k) }

// nest writes loop k and the loops inside it, or the chain.
func (l *loop) nest(b *jen.Group, k int) {
	inner := 2 // loops of a chain
	if !l.e.gpu() && l.hasSides() {
		inner = 1 // a CPU's chain has adjacent rows
	}
	if k+inner < len(l.sizes) {
		b.For(jen.Id(loopVar(k)).Op(":=").Range().Lit(l.sizes[k])).BlockFunc(func(b *jen.Group) { l.nest(b, k+1) })
		return
	}
	rows, cols := 1, l.sizes[len(l.sizes)-1]
	if k+1 < len(l.sizes) {
		rows = l.sizes[k]
	}
	spec := l.chain()
	if l.e.gpu() {
		l.launch(b, spec, rows, cols, k)
		return
	}
	name, spans := "Chain", len(l.more) > 0 || slices.ContainsFunc(spec.Operands, func(o chainOperand) bool {
		return o.Elem != ""
	})
	if spans {
		name = "ChainOf"
	}
	args := []jen.Code{jen.Op("&").Id(l.e.used.chain(spec)), jen.Lit(rows), jen.Lit(cols)}
	for _, v := range l.operands() {
		x := jen.Id(l.e.name(v))
		if at := l.offset(v, k); at != nil {
			x = x.Index(jen.Add(at).Op(":"))
		}
		if spans {
			how := "Wide"
			if v.Type.Elem.Narrow() {
				how = "Half"
			}
			x = jen.Qual(cpuPath, how).Call(x)
		}
		args = append(args, x)
	}
	b.Id("kern").Dot(name).Call(append(args, l.more...)...)
}

// operands returns the operands of the chain in memory: first inputs, then results.
func (l *loop) operands() (vs []*ir.Value) {
	for _, v := range slices.Concat(l.n.Args, l.n.Outs) {
		if v.Type.Elem != ir.I32 {
			vs = append(vs, v)
		}
	}
	return vs
}

// offset returns the offset in an operand of the current part of the loops before loop k; nil for the beginning.
func (l *loop) offset(v *ir.Value, k int) jen.Code {
	t, stride := v.Type, 1
	var sum *jen.Statement
	for i := len(l.sizes) - 1; i >= 0; i-- {
		if len(l.dims[i]) == 0 || !t.Has(l.dims[i][0]) {
			continue
		}
		if i < k {
			term := jen.Id(loopVar(i)).Op("*").Lit(stride)
			if sum != nil {
				term = term.Op("+").Add(sum)
			}
			sum = term
		}
		stride *= l.sizes[i]
		if i == len(l.sizes)-1 {
			stride *= max(1, l.sidesOf(v))
		}
	}
	if sum == nil {
		return nil
	}
	return sum
}

// launch writes the launch of a chain's kernel, inside of loops before loop k.
func (l *loop) launch(b *jen.Group, spec chainSpec, rows, cols, k int) {
	const name = "gpu.Chain"
	args := []jen.Code{jen.Id("r"), jen.Id(l.e.used.chain(spec)), jen.Lit(l.e.kernelSize(name, rows)),
		jen.Lit(l.e.kernelSize(name, cols))}
	for _, v := range l.operands() {
		x := jen.Id(l.e.name(v))
		if at := l.offset(v, k); at != nil {
			x = x.Dot("From").Call(at)
		}
		args = append(args, x)
	}
	b.Qual(gpuPath, "Chain").Call(append(args, l.more...)...)
}
