package codegen

import (
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/runtime/program"
)

// registerAttention records an attention shape that a device prepares for, if a library may compute it: in 16 bits,
// over all keys at once in order, and with no change of the scores except the mask.
func (e *emitter) registerAttention(n *ir.Node, q, k, v ir.Type, group ir.Extent) {
	narrow := q.Elem == ir.BF16 || q.Elem == ir.F16
	at := func(t ir.Type, d ir.Dim) ir.Extent { x, _ := t.Extent(d); return x }
	local := func(x ir.Extent) int { return e.count([]ir.Extent{x}) }
	seq, keys := at(q, ir.Seq), at(k, ir.KSeq)
	if !e.gpu() || !narrow || n.Attr.Drop > 0 || n.Attr.Softcap > 0 || n.Attr.Alibi || len(n.Joins()) > 0 ||
		len(seq.Axes)+len(keys.Axes) > 0 || local(at(q, ir.HeadDim)) != local(at(v, ir.VDim)) {
		return
	}
	a := program.AttentionShape{Elem: elemOf(q.Elem), Batch: local(q.Dims[0]), Seq: local(seq), KSeq: local(keys),
		Heads: local(at(q, ir.Head)), Group: local(group), Dim: local(at(q, ir.HeadDim)), Window: n.Attr.Window,
		Scale: n.Attr.Scale, Causal: n.Attr.Causal}
	e.used.attend(a)
	if a.Window > 0 && n.Attr.Layers != "" {
		a.Window = 0
		e.used.attend(a)
	}
}
