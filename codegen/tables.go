package codegen

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// cutOwner splits the name of the parameter that a tied one is.
func cutOwner(tied string) (segment, param string) {
	segment, param, _ = strings.Cut(tied, ".")
	return segment, param
}

// run is a layer's run of a class of parameters, as a block function refers to it: of its own layer, or of the first
// layer of another segment.
type run struct{ segment, class int }

// runs returns the runs to which a segment's functions refer.
func (g *generator) runs(s *ir.Segment) []run {
	var out []run
	for _, w := range s.Forward.Weights() {
		if r, _ := g.runOf(s, w); !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// runOf returns the run of a parameter of segment s, and the parameter's offset in it. A tied parameter has its own
// place if its owner is on another stage.
func (g *generator) runOf(s *ir.Segment, w *ir.Value) (run, int) {
	segment, name := s.Name, w.Name
	slot, ok := g.p.Slot(segment, name)
	if !ok && w.Param.Tied != "" {
		segment, name = cutOwner(w.Param.Tied)
		slot, ok = g.p.Slot(segment, name)
	}
	if !ok {
		panic(fmt.Sprintf("codegen: parameter %s.%s has no slot", segment, name))
	}
	return run{g.segmentID(segment), slot.Class}, slot.Offset
}

func (g *generator) segmentID(name string) int {
	return slices.IndexFunc(g.p.Model.Segments, func(s *ir.Segment) bool { return s.Name == name })
}

// ref returns the index of the run of a parameter of segment s, and the parameter's offset there in elements.
func (g *generator) ref(s *ir.Segment, name string) (ref, offset int) {
	for _, w := range s.Forward.Weights() {
		if w.Name == name {
			r, offset := g.runOf(s, w)
			return slices.Index(g.runs(s), r), offset
		}
	}
	panic("codegen: no parameter " + name)
}

// segmentTable lists the segments with their functions.
func (g *generator) segmentTable() jen.Code {
	return jen.Index().Add(rt("Segment")).ValuesFunc(func(v *jen.Group) {
		for _, s := range g.p.Model.Segments {
			data := rt("SegmentData").Values(g.printer().fields(reflect.ValueOf(g.lowerSegment(s))))
			d := jen.Dict{jen.Id("SegmentData"): data}
			if g.p.Uses(s) {
				d[jen.Id("Forward")], d[jen.Id("Backward")] = jen.Id(funcName(s.Forward)), jen.Id(funcName(s.Backward))
				if s.Weights != nil {
					d[jen.Id("Weights")] = jen.Id(funcName(s.Weights))
				}
			}
			if v := s.Remat; v != nil && g.p.Uses(v) {
				d[jen.Id("RematForward")], d[jen.Id("RematBackward")] = jen.Id(funcName(v.Forward)),
					jen.Id(funcName(v.Backward))
			}
			if s.Logits != nil {
				d[jen.Id("Logits")] = jen.Id(funcName(s.Logits))
			}
			v.Values(d)
		}
	})
}

// update returns the node of the step's update that executes op.
func (g *generator) update(op ir.Op) *ir.Node {
	for _, n := range g.p.Stages[0].Update.Nodes {
		if n.Op == op {
			return n
		}
	}
	panic(fmt.Sprintf("codegen: the step's end has no %v", op))
}
