package passes

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/ir"
)

// zero finds how each parameter's gradient is resolved at the end of the step, and where its state lives.
//
// The gradient as it is accumulated is partial over the replicas (dp) and perhaps over axes that split what the
// parameter is summed over (seq under sequence parallelism, group where K/V heads are replicated): those are
// all-reduced first. The replica part is all-reduced at ZeRO 0; from 1 on it is reduce-scattered, and each
// rank of the group owns a part of the optimizer state.
func zero(p *ir.Program) error {
	for i := len(p.Model.Segments) - 1; i >= 0; i-- {
		s := p.Model.Segments[i]
		weights := s.Forward.Weights()
		for j := len(weights) - 1; j >= 0; j-- {
			w := weights[j]
			if w.Param.Tied != "" {
				continue
			}
			c, err := classOf(p, s, w)
			if err != nil {
				return err
			}
			p.Slots = append(p.Slots, ir.Slot{Segment: s.Name, Param: w.Name, Class: classIndex(p, c), Elems: w.Type.LocalElems(p.Mesh)})
		}
	}
	return nil
}

// classOf is how the gradient of parameter w of segment s is resolved.
func classOf(p *ir.Program, s *ir.Segment, w *ir.Value) (ir.Class, error) {
	partial := gradAxes(s, w.Name)
	for _, o := range p.Model.Segments {
		for _, t := range o.Forward.Weights() {
			if t.Param.Tied == s.Name+"."+w.Name && !slices.Equal(gradAxes(o, t.Name), partial) {
				return ir.Class{}, fmt.Errorf("gradients of %s and of %s.%s, which is tied to it, are partial over different axes", w.Name, o.Name, t.Name)
			}
		}
	}
	var c ir.Class
	for _, a := range partial {
		if a == "dp" {
			c.Replicas = append(c.Replicas, a)
		} else {
			c.Reduce = append(c.Reduce, a)
		}
	}
	if p.Plan.Zero >= 1 {
		c.Shard = c.Replicas
	}
	split := map[ir.Axis]bool{}
	for _, e := range w.Type.Dims {
		for _, a := range p.Mesh.Expand(e.Axes) {
			split[a] = true
		}
	}
	for _, a := range p.Mesh.Expand(c.Replicas) {
		split[a] = true
	}
	for _, a := range p.Mesh.Atoms {
		if !split[a.Name] {
			c.Repeat = append(c.Repeat, a.Name)
		}
	}
	return c, nil
}

// gradAxes are the axes over which the segment accumulates the parameter's gradient.
func gradAxes(s *ir.Segment, param string) []ir.Axis {
	for _, n := range s.Backward.Nodes {
		if n.Op == ir.OpAccumulate && n.Attr.Into == param {
			return slices.Sorted(slices.Values(n.Args[0].Type.Axes))
		}
	}
	panic("passes: no gradient of " + param)
}

// classIndex finds the class among the program's, or adds it.
func classIndex(p *ir.Program, c ir.Class) int {
	for i, o := range p.Classes {
		if slices.Equal(o.Reduce, c.Reduce) && slices.Equal(o.Replicas, c.Replicas) && slices.Equal(o.Repeat, c.Repeat) {
			return i
		}
	}
	p.Classes = append(p.Classes, c)
	return len(p.Classes) - 1
}
