package codegen

import (
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// attended is the runtime's Attends.
type attended struct {
	elem                                        string
	batch, seq, kSeq, heads, group, dim, window int
	scale                                       float64
	causal                                      bool
}

// attends notes what a device makes ready for, if a library may compute this attention: in 16 bits, of all keys at
// once, in their order, and with nothing done to scores but the mask.
func (e *emitter) attends(n *ir.Node, q, k, v ir.Type, group ir.Extent) {
	elem, narrow := map[ir.Elem]string{ir.BF16: "BF16", ir.F16: "F16"}[q.Elem]
	at := func(t ir.Type, d ir.Dim) ir.Extent { x, _ := t.Extent(d); return x }
	local := func(x ir.Extent) int { return e.count([]ir.Extent{x}) }
	seq, keys := at(q, ir.Seq), at(k, ir.KSeq)
	if !e.gpu() || !narrow || n.Attr.Drop > 0 || n.Attr.Softcap > 0 || n.Attr.Alibi || len(n.Joins()) > 0 ||
		len(seq.Axes)+len(keys.Axes) > 0 || local(at(q, ir.HeadDim)) != local(at(v, ir.VDim)) {
		return
	}
	a := attended{elem, local(q.Dims[0]), local(seq), local(keys), local(at(q, ir.Head)), local(group),
		local(at(q, ir.HeadDim)), n.Attr.Window, n.Attr.Scale, n.Attr.Causal}
	e.attend(a)
	if a.window > 0 && n.Attr.Layers != "" {
		a.window = 0
		e.attend(a)
	}
}

func (g *generator) attend(a attended) {
	if !slices.Contains(g.attention, a) {
		g.attention = append(g.attention, a)
	}
}

func (g *generator) attendsTable(d jen.Dict) {
	if len(g.attention) == 0 {
		return
	}
	d[jen.Id("Attentions")] = jen.Index().Add(rt("AttentionShape")).ValuesFunc(func(v *jen.Group) {
		for _, a := range g.attention {
			row := jen.Dict{jen.Id("Elem"): rt(a.elem), jen.Id("Scale"): jen.Lit(a.scale),
				jen.Id("Causal"): jen.Lit(a.causal)}
			for name, n := range map[string]int{"Batch": a.batch, "Seq": a.seq, "KSeq": a.kSeq, "Heads": a.heads,
				"Group": a.group, "Dim": a.dim, "Window": a.window} {
				row[jen.Id(name)] = jen.Lit(n) // a Dict is printed sorted
			}
			v.Values(row)
		}
	})
}
