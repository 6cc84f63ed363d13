package passes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// zero finds how each parameter's gradient is resolved at the end of the step, and where its state lives.
//
// The gradient as it is accumulated is partial over the replicas (dp and cp, of experts edp) and perhaps over axes that
// split what the parameter is summed over (seq under sequence parallelism, group where K/V heads are replicated): those
// are all-reduced first. The replica part is all-reduced at ZeRO 0; from 1 on it is reduce-scattered over the replicas
// or a group of them, whose ranks each own a part of the optimizer state, and the rest is all-reduced. At ZeRO 2 the
// scattering is done after each micro-batch, so that whole gradients are kept for a block or two at a time; at ZeRO 3
// the parameters are kept scattered too, and gathered for each block, forward and backward.
func zero(p *ir.Program) error {
	owner, tied := tiesOf(p)
	for i := len(p.Model.Segments) - 1; i >= 0; i-- {
		s := p.Model.Segments[i]
		for j := len(s.Forward.Inputs) - 1; j >= 0; j-- {
			w := s.Forward.Inputs[j]
			if w.Kind != ir.Weight {
				continue
			}
			of := owned{s, w}
			if w.Param.Tied != "" {
				if !apart(p) {
					continue
				}
				of = owner[w]
			}
			c, err := classOf(p, of, tied[of])
			if err != nil {
				return err
			}
			c.Ends = apart(p) && len(tied[of]) > 0
			p.Slots = append(p.Slots, ir.Slot{Segment: s.Name, Param: w.Name, Class: classIndex(p, c),
				Elems: w.Type.LocalElems(p.Mesh)})
		}
	}
	return nil
}

// owned is a parameter with its segment.
type owned struct {
	segment *ir.Segment
	weight  *ir.Value
}

// tiesOf are, of a parameter that is another segment's, that one; and of that one, those that it is.
func tiesOf(p *ir.Program) (owner map[*ir.Value]owned, tied map[owned][]owned) {
	owner, tied = map[*ir.Value]owned{}, map[owned][]owned{}
	for _, s := range p.Model.Segments {
		for _, w := range s.Forward.Inputs {
			if w.Kind != ir.Weight || w.Param.Tied == "" {
				continue
			}
			name, param, _ := strings.Cut(w.Param.Tied, ".")
			at := slices.IndexFunc(p.Model.Segments, func(o *ir.Segment) bool { return o.Name == name })
			of := owned{p.Model.Segments[at], p.Model.Segments[at].Forward.Value(param)}
			owner[w], tied[of] = of, append(tied[of], owned{s, w})
		}
	}
	return owner, tied
}

// classOf is how the gradient of a parameter is resolved, which is also those that are tied to it.
func classOf(p *ir.Program, of owned, tied []owned) (ir.Class, error) {
	s, w := of.segment, of.weight
	partial := gradAxes(p.Mesh, s, w.Name)
	if err := sameGradient(p, s, w, partial); err != nil {
		return ir.Class{}, err
	}
	for _, t := range tied {
		if !slices.Equal(gradAxes(p.Mesh, t.segment, t.weight.Name), partial) {
			return ir.Class{}, fmt.Errorf("gradients of %s and of %s.%s, which is tied to it, are partial over "+
				"different axes", w.Name, t.segment.Name, t.weight.Name)
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
		c.Shard, err = shardGroup(p, c.Replicas)
		if err != nil {
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

// sameGradient holds the gradient of a segment's parameter against that of its recomputed variant, if it has one.
func sameGradient(p *ir.Program, s *ir.Segment, w *ir.Value, partial []ir.Axis) error {
	if s.Remat != nil && !slices.Equal(gradAxes(p.Mesh, s.Remat, w.Name), partial) {
		return fmt.Errorf("the gradient of %s is partial over other axes where its block is recomputed", w.Name)
	}
	return nil
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
	for _, f := range []*ir.Func{s.Backward, s.Weights} {
		if f == nil {
			continue
		}
		for _, n := range f.Nodes {
			if n.Op == ir.OpAccumulate && n.Attr.Into == param {
				return majorFirst(m, m.Expand(n.Args[0].Type.Axes))
			}
		}
	}
	panic("passes: no gradient of " + param)
}

// classIndex finds the class among the program's, or adds it.
func classIndex(p *ir.Program, c ir.Class) int {
	for i, o := range p.Classes {
		if slices.Equal(o.Reduce, c.Reduce) && slices.Equal(o.Replicas, c.Replicas) && slices.Equal(o.Shard,
			c.Shard) && slices.Equal(o.Repeat, c.Repeat) && o.Ends == c.Ends {
			return i
		}
	}
	p.Classes = append(p.Classes, c)
	return len(p.Classes) - 1
}
