package codegen

import (
	"fmt"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// emitRope applies rotary position embeddings to x [batch, seq, heads..., dim].
func emitRope(e *emitter, n *ir.Node) {
	t := n.Args[0].Type
	pos := -1
	for i, d := range t.Dims {
		if d.Dim == ir.Seq || d.Dim == ir.KSeq {
			pos = i
		}
	}
	if last := t.Dims[len(t.Dims)-1]; pos < 0 || last.Dim != n.Attr.Dim {
		panic(fmt.Sprintf("codegen: no kernel turns %v", t))
	}
	batch, seq, rest := e.around(t, t.Dims[pos].Dim)
	dim := e.count(t.Dims[len(t.Dims)-1:])
	turn := dim
	if n.Attr.Turn > 0 {
		turn = n.Attr.Turn
	}
	theta, scale := jen.Lit(n.Attr.Theta), ropeScale(n.Attr.Rope, t.Dims[pos].Size)
	if n.Attr.Local > 0 {
		theta = e.inLocal(n.Attr.Layers, jen.Lit(n.Attr.Local), theta)
		scale = e.inLocal(n.Attr.Layers, ropeScale("", 0), scale)
	}
	if n.Attr.Offset > 0 || n.Attr.Pairs || t.Has(ir.Side) {
		heads := rest / dim
		rows := jen.Dict{jen.Id("Batch"): jen.Lit(batch), jen.Id("Seq"): jen.Lit(seq),
			jen.Id("Dim"): jen.Lit(dim), jen.Id("From"): jen.Lit(n.Attr.Offset), jen.Id("Turn"): jen.Lit(turn),
			jen.Id("Pairs"): jen.Lit(n.Attr.Pairs)}
		if t.Has(ir.Side) { // the last one is copied
			side, row := t.SideSizes(e.mesh)
			heads = (row - side) / dim
			rows[jen.Id("Row")] = jen.Lit(row)
		}
		rows[jen.Id("Heads")] = jen.Lit(heads)
		e.kernel("RoPEPart", n.Outs[0], n.Args[0], jen.Qual(cpuPath, "RopeRows").Values(rows), e.where(t.Dims[pos]),
			theta, scale, n.Attr.Inverse)
		return
	}
	e.kernel("RoPE", n.Outs[0], n.Args[0], batch, seq, rest/dim, dim, turn, e.where(t.Dims[pos]), theta, scale,
		n.Attr.Inverse)
}

// ropeScale is the literal of a scaling, for rows of seq tokens.
func ropeScale(text string, seq int) *jen.Statement {
	r, err := ir.ParseRope(text)
	if err != nil {
		panic("codegen: " + err.Error())
	}
	d := jen.Dict{}
	if r.Kind != "" {
		d[jen.Id("Kind")] = jen.Lit(r.Kind)
	}
	if r.Kind == "dynamic" {
		d[jen.Id("SeqLen")] = jen.Lit(seq)
	}
	for _, f := range []struct {
		name string
		is   float64
	}{{"Factor", r.Factor}, {"LowFreq", r.LowFreq}, {"HighFreq", r.HighFreq}, {"BetaFast", r.BetaFast},
		{"BetaSlow", r.BetaSlow}, {"Attention", r.Attention}} {
		if f.is != 0 {
			d[jen.Id(f.name)] = jen.Lit(f.is)
		}
	}
	if r.Original != 0 {
		d[jen.Id("OriginalLen")] = jen.Lit(r.Original)
	}
	if r.Exact {
		d[jen.Id("Exact")] = jen.True()
	}
	if len(r.Factors) > 0 {
		d[jen.Id("Factors")] = literal(r.Factors)
	}
	return jen.Qual(cpuPath, "RopeScale").Values(d)
}
