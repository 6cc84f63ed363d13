package passes

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/ir"
)

// zero finds how each parameter's gradient is resolved at the end of the step, and where its state lives.
//
// The gradient as it is accumulated is partial over the replicas (dp and cp, of experts edp) and perhaps over axes
// that split what the parameter is summed over (seq under sequence parallelism, group where K/V heads are replicated):
// those are all-reduced first. The replica part is all-reduced at ZeRO 0; from 1 on it is reduce-scattered over the
// replicas or a group of them, whose ranks each own a part of the optimizer state, and the rest is all-reduced. At ZeRO 2 the
// scattering is done after each micro-batch, so that whole gradients are kept for a block or two at a time; at ZeRO 3 the
// parameters are kept scattered too, and gathered for each block, forward and backward.
func zero(p *ir.Program) error {
	for i := len(p.Model.Segments) - 1; i >= 0; i-- {
		s := p.Model.Segments[i]
		weights := s.Forward.Weights()
		for j := len(weights) - 1; j >= 0; j-- {
			w := weights[j]
			owner, o := s, w
			if w.Param.Tied != "" {
				if !apart(p) {
					continue
				}
				owner, o = tiedTo(p, w)
			}
			c, err := classOf(p, owner, o)
			if err != nil {
				return err
			}
			c.Ends = apart(p) && isTied(p, owner, o)
			p.Slots = append(p.Slots, ir.Slot{Segment: s.Name, Param: w.Name, Class: classIndex(p, c), Elems: w.Type.LocalElems(p.Mesh)})
		}
	}
	return nil
}

// tiedTo is the parameter that w is, and its segment.
func tiedTo(p *ir.Program, w *ir.Value) (*ir.Segment, *ir.Value) {
	for _, s := range p.Model.Segments {
		for _, o := range s.Forward.Weights() {
			if w.Param.Tied == s.Name+"."+o.Name {
				return s, o
			}
		}
	}
	panic("passes: nothing is " + w.Param.Tied)
}

// isTied tells whether another segment's parameter is this one.
func isTied(p *ir.Program, owner *ir.Segment, o *ir.Value) bool {
	for _, s := range p.Model.Segments {
		for _, w := range s.Forward.Weights() {
			if w.Param.Tied == owner.Name+"."+o.Name {
				return true
			}
		}
	}
	return false
}

// classOf is how the gradient of parameter w of segment s is resolved.
func classOf(p *ir.Program, s *ir.Segment, w *ir.Value) (ir.Class, error) {
	partial := gradAxes(p.Mesh, s, w.Name)
	if s.Remat != nil && !slices.Equal(gradAxes(p.Mesh, s.Remat, w.Name), partial) {
		return ir.Class{}, fmt.Errorf("the gradient of %s is partial over other axes where its block is recomputed", w.Name)
	}
	for _, o := range p.Model.Segments {
		for _, t := range o.Forward.Weights() {
			if t.Param.Tied == s.Name+"."+w.Name && !slices.Equal(gradAxes(p.Mesh, o, t.Name), partial) {
				return ir.Class{}, fmt.Errorf("gradients of %s and of %s.%s, which is tied to it, are partial over different axes", w.Name, o.Name, t.Name)
			}
		}
	}
	var c ir.Class
	replicas := replicaAxes(p.Mesh, w.Type)
	for _, a := range partial {
		if slices.Contains(replicas, a) {
			c.Replicas = append(c.Replicas, a)
		} else {
			c.Reduce = append(c.Reduce, a)
		}
	}
	if p.Plan.Zero >= 1 {
		var err error
		if c.Shard, err = shardGroup(p, c.Replicas); err != nil {
			return c, err
		}
		c.Each, c.Fetch = p.Plan.Zero >= 2 && len(c.Shard) > 0, p.Plan.Zero >= 3 && len(c.Shard) > 0
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
		if !split[a.Name] && a.Name != "pp" { // stages have parameters of their own
			c.Repeat = append(c.Repeat, a.Name)
		}
	}
	return c, nil
}

// replicaAxes are the atoms of the axes over which a parameter of type t has replicas that see different tokens.
func replicaAxes(m ir.Mesh, t ir.Type) []ir.Axis {
	if t.Has(ir.Expert) {
		return m.Expand(ir.ExpertReplicas(m))
	}
	return m.Expand(present(m, "dp", "cp"))
}

// shardGroup is the part of the replicas whose ranks share one copy of the state: all of them, or the plan's
// zero_group consecutive ones.
func shardGroup(p *ir.Program, replicas []ir.Axis) ([]ir.Axis, error) {
	want := p.Plan.ZeroGroup
	all := p.Mesh.Ranks(replicaAxes(p.Mesh, ir.Type{}))
	if want <= 1 || want >= all || want >= p.Mesh.Ranks(replicas) { // of experts a global group is all of edp
		return replicas, nil
	}
	for i := range replicas {
		if p.Mesh.Ranks(replicas[i:]) == want {
			return replicas[i:], nil
		}
	}
	return nil, fmt.Errorf("no axes of the replicas %v make zero_group %d", replicas, want)
}

// gradAxes are the axes over which the segment accumulates the parameter's gradient, as the mesh orders them.
func gradAxes(m ir.Mesh, s *ir.Segment, param string) []ir.Axis {
	for _, n := range s.Accumulates() {
		if n.Attr.Into == param {
			return majorFirst(m, m.Expand(n.Args[0].Type.Axes))
		}
	}
	panic("passes: no gradient of " + param)
}

// classIndex finds the class among the program's, or adds it.
func classIndex(p *ir.Program, c ir.Class) int {
	for i, o := range p.Classes {
		if slices.Equal(o.Reduce, c.Reduce) && slices.Equal(o.Replicas, c.Replicas) && slices.Equal(o.Shard, c.Shard) && slices.Equal(o.Repeat, c.Repeat) && o.Ends == c.Ends {
			return i
		}
	}
	p.Classes = append(p.Classes, c)
	return len(p.Classes) - 1
}
