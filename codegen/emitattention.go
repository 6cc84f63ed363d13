package codegen

import (
	"fmt"
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

func emitAttention(e *emitter, n *ir.Node) {
	shape := e.attentionShape(n, n.Args[0].Type, n.Args[1].Type, n.Args[2].Type)
	e.attention("Attention", n, n.Args[:3], n.Outs[0], n.Outs[1], n.Args[0], n.Args[1], n.Args[2], shape)
}

func emitAttentionGrad(e *emitter, n *ir.Node) { attentionGrad(e, n, n.Outs[0], n.Outs[1], n.Outs[2]) }

// emitAttentionGradSides writes the gradient of attention whose results lie side by side.
func emitAttentionGradSides(e *emitter, n *ir.Node) {
	whole := n.Outs[0]
	side, row := whole.Type.SideSizes(e.mesh) // keys and values are the last two sides
	attentionGrad(e, n, whole, elementsFrom(e, whole, row-2*side), elementsFrom(e, whole, row-side))
}

// elementsFrom returns a value's elements from number i on.
func elementsFrom(e *emitter, v *ir.Value, i int) jen.Code {
	x := jen.Id(e.name(v))
	switch {
	case i == 0:
		return x
	case e.gpu():
		return x.Dot("From").Call(jen.Lit(i))
	}
	return x.Index(jen.Lit(i).Op(":"))
}

// pitchOf returns the number of elements from one position to the next of queries, keys and values that lie side by
// side; 0 if they do not.
func pitchOf(e *emitter, n *ir.Node) int {
	whole := ir.WholeOf(n)
	if whole == nil {
		return 0
	}
	if !e.gpu() && whole.Type.Elem.Narrow() {
		panic("codegen: a CPU widens queries, keys and values one by one, so that they cannot lie side by side")
	}
	_, row := whole.Type.SideSizes(e.mesh)
	return row
}

// attentionGrad writes the gradient of attention with its results.
func attentionGrad(e *emitter, n *ir.Node, dq, dk, dv any) {
	args := []any{dq, dk, dv}
	for _, a := range n.Args[:6] {
		args = append(args, a)
	}
	shape := e.attentionShape(n, n.Args[1].Type, n.Args[2].Type, n.Args[3].Type)
	e.attention("AttentionGrad", n, n.Args[:5], append(args, shape)...)
}

// attention writes the call of a kernel whose last argument is the shape. A CPU kernel reads bfloat16 operands as
// stored, or widens them itself into a buffer that it receives.
func (e *emitter) attention(kernel string, n *ir.Node, operands []*ir.Value, args ...any) {
	if e.gpu() || !storedBF16(operands) {
		e.kernel(kernel, args...)
		return
	}
	var results []*ir.Value
	for _, v := range n.Widened() {
		if v.Def == n {
			results = append(results, v)
		}
	}
	if len(results) == 0 {
		defer func() { e.body.Add(rt("FreeScratch").Call(jen.Id("r"))) }()
	}
	room := jen.Len(jen.Id(e.name(operands[0])))
	for _, v := range operands[1:] {
		room = room.Op("+").Len(jen.Id(e.name(v)))
	}
	last := len(args) - 1
	e.kernelWith(results, kernel+"BF16", append(args[:last:last], rt("Scratch").Call(jen.Id("r"), room), args[last])...)
}

// storedBF16 reports whether the values are distinct and of type bfloat16. The scratch then has space for each.
func storedBF16(vs []*ir.Value) bool {
	for i, v := range vs {
		if v.Type.Elem != ir.BF16 || slices.Contains(vs[:i], v) {
			return false
		}
	}
	return true
}

// attentionShape is the kernel's description of q [batch, seq, head, group?, head_dim], k [batch, k_seq, head,
// head_dim] and v [batch, k_seq, head, v_dim].
func (e *emitter) attentionShape(n *ir.Node, q, k, v ir.Type) jen.Code {
	want := []ir.Dim{ir.Batch, ir.Seq, ir.Head, ir.Group, ir.HeadDim}
	group := ir.Extent{Dim: ir.Group, Size: 1}
	for i, d := range q.Dims {
		if d.Dim == ir.Group {
			group = d
		} else if d.Dim != want[i] && d.Dim != want[min(i+1, len(want)-1)] {
			panic(fmt.Sprintf("codegen: no kernel attends with queries %v", q))
		}
	}
	e.registerAttention(n, q)
	at := func(t ir.Type, d ir.Dim) ir.Extent { x, _ := t.Extent(d); return x }
	local := func(x ir.Extent) jen.Code { return jen.Lit(e.count([]ir.Extent{x})) }
	d := jen.Dict{
		jen.Id("Batch"): local(q.Dims[0]), jen.Id("Seq"): local(at(q, ir.Seq)), jen.Id("KSeq"): local(at(k, ir.KSeq)),
		jen.Id("Heads"): local(at(q, ir.Head)), jen.Id("Group"): local(group),
		jen.Id("Dim"): local(at(q, ir.HeadDim)), jen.Id("VDim"): local(at(v, ir.VDim)),
		jen.Id("Scale"): jen.Lit(n.Attr.Scale), jen.Id("Mask"): attentionMask(e, n),
		jen.Id("HeadsAll"): jen.Lit(at(q, ir.Head).Size), jen.Id("GroupAll"): jen.Lit(group.Size),
		jen.Id("SeqAll"): jen.Lit(at(q, ir.Seq).Size), jen.Id("KSeqAll"): jen.Lit(at(k, ir.KSeq).Size),
	}
	if pitch := pitchOf(e, n); pitch > 0 {
		d[jen.Id("Pitch")] = jen.Lit(pitch)
	}
	if len(n.Joins()) > 0 {
		d[jen.Id("More")] = jen.True()
	}
	if n.Attr.Softcap > 0 {
		d[jen.Id("Softcap")] = jen.Lit(n.Attr.Softcap)
	}
	if n.Attr.Alibi {
		d[jen.Id("Alibi")] = jen.True()
	}
	if n.Attr.Drop > 0 {
		d[jen.Id("Dropout")], d[jen.Id("Key")] = e.drop(n), e.dropKey(n)
		d[jen.Id("Batch0")] = e.offset(q.Dims[0])
	}
	zigzag := jen.Dict{}
	for _, o := range []struct {
		field, half, after string
		extent             ir.Extent
	}{{"Head0", "", "", at(q, ir.Head)}, {"Group0", "", "", group}, {"Pos0", "Half", "Pos1", at(q, ir.Seq)},
		{"KPos0", "KHalf", "KPos1", at(k, ir.KSeq)}} {
		switch {
		case isZigzag(o.extent):
			w := e.zigzag(o.extent)
			d[jen.Id(o.field)] = w.Clone().Dot("At")
			zigzag[jen.Id(o.half)], zigzag[jen.Id(o.after)] = w.Clone().Dot("Half"), w.Clone().Dot("Then")
		case len(o.extent.Axes) > 0:
			d[jen.Id(o.field)] = e.offset(o.extent)
		}
	}
	if len(zigzag) > 0 {
		d[jen.Id("Zigzag")] = jen.Qual(cpuPath, "Zigzag").Values(zigzag)
	}
	return jen.Qual(cpuPath, "AttentionShape").Values(d)
}

// attentionMask returns the keys that queries of an attention node see.
func attentionMask(e *emitter, n *ir.Node) jen.Code {
	d := jen.Dict{}
	if n.Attr.Causal {
		d[jen.Id("Causal")] = jen.True()
	}
	if n.Attr.Window > 0 {
		d[jen.Id("Window")] = e.inLocal(n.Attr.Layers, jen.Lit(n.Attr.Window), jen.Lit(0))
	}
	if n.Attr.Documents {
		d[jen.Id("Starts")] = e.borders("Starts")
		if !n.Attr.Causal {
			d[jen.Id("Ends")] = e.borders("Ends")
		}
	}
	return jen.Qual(cpuPath, "AttentionMask").Values(d)
}

// borders is a view of the borders of the micro-batch's documents: the field Starts or Ends of the stage's inputs.
func (e *emitter) borders(field string) jen.Code {
	if e.gpu() {
		panic("codegen: kernels for GPUs have no document masks; planc refuses such jobs")
	}
	t := e.p.Model.BordersType()
	at := jen.Id("r").Dot("Stage").Dot("Inputs").Dot(field).Op("+").Id("b").Dot("Micro").Op("*").Lit(
		t.LocalBytes(e.mesh))
	return e.view(t, at, t.LocalElems(e.mesh))
}

// emitDocumentIota writes the indices of positions [batch, seq] within their documents.
func emitDocumentIota(e *emitter, n *ir.Node) {
	seq := n.Outs[0].Type.Dims[1]
	e.own("DocumentIota", n.Outs[0], e.borders("Starts"), e.where(seq), e.count([]ir.Extent{seq}), seq.Size,
		n.Attr.Offset)
}
