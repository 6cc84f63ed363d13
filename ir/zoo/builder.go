package zoo

import (
	"fmt"

	"github.com/planc-dev/planc/ir"
)

// builder writes one function line by line. The sizes of dims are given once, so that a type is a list of dims.
type builder struct {
	f      *ir.Func
	elem   ir.Elem
	size   map[ir.Dim]int
	region ir.Region
	keys   int // number of dropout keys used
}

func newBuilder(name string, elem ir.Elem, size map[ir.Dim]int) *builder {
	return &builder{f: &ir.Func{Name: name}, elem: elem, size: size}
}

// in sets the region of the following lines.
func (b *builder) in(r ir.Region) { b.region = r }

func (b *builder) typ(elem ir.Elem, dims []ir.Dim) ir.Type {
	t := ir.Type{Elem: elem}
	for _, d := range dims {
		if b.size[d] == 0 {
			panic(fmt.Sprintf("zoo: dim %s of %s has no size", d, b.f.Name))
		}
		t.Dims = append(t.Dims, ir.Extent{Dim: d, Size: b.size[d]})
	}
	return t
}

func (b *builder) input(name string, elem ir.Elem, dims ...ir.Dim) *ir.Value {
	v := &ir.Value{Name: name, Type: b.typ(elem, dims), Kind: ir.Input}
	b.f.Inputs = append(b.f.Inputs, v)
	return v
}

// param declares a parameter. Weight decay applies to matrices, not to vectors (the rule of nanoGPT and llm.c).
func (b *builder) param(name string, init ir.Param, dims ...ir.Dim) *ir.Value {
	init.Name, init.Decay = name, len(dims) > 1 && init.Init == "normal"
	v := &ir.Value{Name: name, Type: b.typ(b.elem, dims), Kind: ir.Weight, Param: &init}
	b.f.Inputs = append(b.f.Inputs, v)
	return v
}

func normal(std float64) ir.Param { return ir.Param{Init: "normal", Std: std} }

var zeros, ones = ir.Param{Init: "zeros"}, ir.Param{Init: "ones"}

// op adds "name = op args {attr} : dims".
func (b *builder) op(name string, op ir.Op, attr ir.Attr, dims []ir.Dim, args ...*ir.Value) *ir.Value {
	n := &ir.Node{Op: op, Args: args, Attr: attr, Region: b.region}
	v := &ir.Value{Name: name, Type: b.typ(b.made(op, args), dims), Def: n}
	n.Outs = []*ir.Value{v}
	b.f.Nodes = append(b.f.Nodes, n)
	return v
}

// made returns the element type of an op's result: that of statistics if the op or one of its operands is a statistic.
func (b *builder) made(op ir.Op, args []*ir.Value) ir.Elem {
	stat := op.Statistic(0)
	for _, a := range args {
		stat = stat || a.Type.Elem != b.elem && a.Type.Elem != ir.I32
	}
	switch {
	case op == ir.OpIota:
		return ir.I32
	case stat:
		return b.elem.Statistic()
	}
	return b.elem
}

// matmul adds a matmul of x and w.
func (b *builder) matmul(name string, x, w *ir.Value, dims ...ir.Dim) *ir.Value {
	return b.op(name, ir.OpMatMul, ir.Attr{}, dims, x, w)
}

// same adds an op whose result has x's dims.
func (b *builder) same(name string, op ir.Op, attr ir.Attr, x *ir.Value, more ...*ir.Value) *ir.Value {
	return b.op(name, op, attr, dimsOf(x), append([]*ir.Value{x}, more...)...)
}

func dimsOf(v *ir.Value) []ir.Dim {
	var ds []ir.Dim
	for _, e := range v.Type.Dims {
		ds = append(ds, e.Dim)
	}
	return ds
}

// rename changes the name of dim d of x to to.
func (b *builder) rename(name string, x *ir.Value, d, to ir.Dim) *ir.Value {
	dims := dimsOf(x)
	for i := range dims {
		if dims[i] == d {
			dims[i] = to
		}
	}
	return b.op(name, ir.OpRename, ir.Attr{Dim: d, To: to}, dims, x)
}

// dropout adds dropout with a key of its own, or nothing if p is 0.
func (b *builder) dropout(name string, x *ir.Value, p float64) *ir.Value {
	if p == 0 {
		return x
	}
	return b.same(name, ir.OpDropout, ir.Attr{Drop: p, Key: b.key()}, x)
}

func (b *builder) key() int { b.keys++; return b.keys }

// attention adds softmax(scale q k) v; dims are those of its result.
func (b *builder) attention(name string, q, k, v *ir.Value, attr ir.Attr, dims ...ir.Dim) *ir.Value {
	o := b.op(name, ir.OpAttention, attr, dims, q, k, v)
	n := o.Def
	n.Outs = append(n.Outs, &ir.Value{Name: name + "_lse", Type: b.typ(b.elem.Statistic(), dims[:len(dims)-1]), Def: n})
	return o
}

// accumulate adds x to a number of the step.
func (b *builder) accumulate(x *ir.Value, into string) {
	b.f.Nodes = append(b.f.Nodes, &ir.Node{Op: ir.OpAccumulate, Args: []*ir.Value{x}, Attr: ir.Attr{Into: into},
		Region: b.region})
}

func (b *builder) ret(vs ...*ir.Value) *ir.Func {
	b.f.Outputs = vs
	return b.f
}
