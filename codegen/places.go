package codegen

import (
	"fmt"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// places writes where the values of a segment's functions are in the arena.
type places struct {
	parameters
	on    Target
	seg   *ir.Segment
	segID int
}

// view is rt.View[type](r, offset, n).
func (l places) view(t ir.Type, at jen.Code, n int) jen.Code {
	return l.on.runtime("View").Index(elemCode(t)).Call(jen.Id("r"), at, jen.Lit(n))
}

// at is the byte offset of a value in the arena.
func (l places) at(v *ir.Value) jen.Code {
	if v.Kind == ir.Weight {
		return l.paramAt(v.Name, "Params")
	}
	field, ok := blockFields[v.Place.Region]
	if !ok {
		return l.batchAt(v)
	}
	return plus(jen.Id("b").Dot(field), v.Place.Offset)
}

// blockFields are the fields of rt.Block that say where a place begins.
var blockFields = map[string]string{
	ir.PlaceX: "X", ir.PlaceOut: "Out", ir.PlaceSlot: "Slot", ir.PlaceDY: "DY", ir.PlaceDX: "DX", ir.PlaceWork: "Work",
	ir.PlaceHead: "Logits",
}

func plus(base *jen.Statement, n int) jen.Code {
	if n == 0 {
		return base
	}
	return base.Op("+").Lit(n)
}

// batchAt is where the micro-batch's part of a batch input lies.
func (l places) batchAt(v *ir.Value) jen.Code {
	field, ok := batchFields[v.Name]
	if !ok {
		panic(fmt.Sprintf("codegen: %s of %s has no place", v.Name, l.seg.Name))
	}
	return jen.Id("r").Dot("Stage").Dot("Inputs").Dot(field).Op("+").Id("b").Dot("Micro").Op("*").Lit(
		v.Type.LocalBytes(l.p.Mesh))
}

// paramAt is the byte offset of the layer's parameter or of its gradient.
func (l places) paramAt(name, field string) jen.Code {
	ref, offset := l.ref(l.seg, name)
	elem := l.p.Plan.Precision.Params
	if field == "Grads" {
		elem = l.p.Plan.Precision.Grads
	}
	return plus(jen.Id("b").Dot(field).Index(jen.Lit(ref)), offset*elem.Size())
}

// batchFields are the runtime's names of the batch inputs.
var batchFields = map[string]string{ir.Tokens: "Tokens", ir.Labels: "Labels", ir.Mask: "Mask", ir.Types: "Types",
	ir.Pixels: "Pixels"}
