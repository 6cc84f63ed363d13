package codegen

import (
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/runtime/program"
)

// registerAttention records an attention shape that a device prepares for, if a library may compute it.
func (e *emitter) registerAttention(n *ir.Node, q ir.Type) {
	x, ok := ir.LibraryAttentionOf(n, e.mesh)
	if !e.gpu() || !ok {
		return
	}
	a := program.AttentionShape{Elem: elemOf(q.Elem), Batch: x.Batch, Seq: x.Seq, KSeq: x.KSeq, Heads: x.Heads,
		Group: x.Group, Dim: x.Dim, Window: n.Attr.Window, Pitch: pitchOf(e, n), Scale: n.Attr.Scale,
		Causal: n.Attr.Causal}
	e.used.attend(a)
	if a.Window > 0 && n.Attr.Layers != "" {
		a.Window = 0
		e.used.attend(a)
	}
}
