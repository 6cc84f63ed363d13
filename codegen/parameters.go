package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// parameters says in which runs of the arena the parameters of a program's layers are.
type parameters struct{ p *ir.Program }

// cutOwner splits the name of the parameter that a tied one is.
func cutOwner(tied string) (segment, param string) {
	segment, param, _ = strings.Cut(tied, ".")
	return segment, param
}

// run is a layer's run of a class of parameters, as a block function refers to it: of its own layer, or of the first
// layer of another segment.
type run struct{ segment, class int }

// runs returns the runs to which a segment's functions refer.
func (ps parameters) runs(s *ir.Segment) []run {
	var out []run
	for _, w := range s.Forward.Weights() {
		if r, _ := ps.runOf(s, w); !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// runOf returns the run of a parameter of segment s, and the parameter's offset in it. A tied parameter has its own
// place if its owner is on another stage.
func (ps parameters) runOf(s *ir.Segment, w *ir.Value) (run, int) {
	segment, name := s.Name, w.Name
	slot, ok := ps.p.Slot(segment, name)
	if !ok && w.Param.Tied != "" {
		segment, name = cutOwner(w.Param.Tied)
		slot, ok = ps.p.Slot(segment, name)
	}
	if !ok {
		panic(fmt.Sprintf("codegen: parameter %s.%s has no slot", segment, name))
	}
	return run{ps.segmentID(segment), slot.Class}, slot.Offset
}

func (ps parameters) segmentID(name string) int {
	return slices.IndexFunc(ps.p.Model.Segments, func(s *ir.Segment) bool { return s.Name == name })
}

// ref returns the index of the run of a parameter of segment s, and the parameter's offset there in elements.
func (ps parameters) ref(s *ir.Segment, name string) (ref, offset int) {
	for _, w := range s.Forward.Weights() {
		if w.Name == name {
			r, offset := ps.runOf(s, w)
			return slices.Index(ps.runs(s), r), offset
		}
	}
	panic("codegen: no parameter " + name)
}
