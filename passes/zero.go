package passes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// zero determines how each parameter's gradient is resolved at the end of the step, and where its state is located. The
// accumulated gradient is partial over the replicas (dp and cp; edp for experts). It may also be partial over axes that
// split the dims that its computation reduces (seq under sequence parallelism, group if K/V heads are replicated): over
// those it is all-reduced first. The replica part is all-reduced at ZeRO 0. From ZeRO 1 on it is reduce-scattered over
// the replicas or a group of them, whose ranks each own a part of the optimizer state, and all-reduced over the rest.
// At ZeRO 2 the scatter runs after each micro-batch, so that whole gradients exist for one or two blocks at a time. At
// ZeRO 3 parameters are sharded too, and gathered for each block in forward and backward.
func zero(p *ir.Program) error {
	owner, tied := tiesOf(p)
	for i := len(p.Model.Segments) - 1; i >= 0; i-- {
		s := p.Model.Segments[i]
		for j := len(s.Forward.Inputs) - 1; j >= 0; j-- {
			w := s.Forward.Inputs[j]
			if w.Kind != ir.Weight {
				continue
			}
			key := owned{s, w}
			if w.Param.Tied != "" {
				if !apart(p) {
					continue
				}
				key = owner[w]
			}
			c, err := classOf(p, key, tied[key])
			if err != nil {
				return err
			}
			c.TiedStages = apart(p) && len(tied[key]) > 0
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

// tiesOf returns the owner of each tied parameter, and the parameters that are tied to each owner.
func tiesOf(p *ir.Program) (owner map[*ir.Value]owned, tied map[owned][]owned) {
	owner, tied = map[*ir.Value]owned{}, map[owned][]owned{}
	for _, s := range p.Model.Segments {
		for _, w := range s.Forward.Inputs {
			if w.Kind != ir.Weight || w.Param.Tied == "" {
				continue
			}
			name, param, _ := strings.Cut(w.Param.Tied, ".")
			at := slices.IndexFunc(p.Model.Segments, func(o *ir.Segment) bool { return o.Name == name })
			key := owned{p.Model.Segments[at], p.Model.Segments[at].Forward.Value(param)}
			owner[w], tied[key] = key, append(tied[key], owned{s, w})
		}
	}
	return owner, tied
}

// classOf returns how the gradient of a parameter, and of those that are tied to it, is resolved.
func classOf(p *ir.Program, owner owned, tied []owned) (ir.Class, error) {
	s, w := owner.segment, owner.weight
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
		c.ShardedGrads, c.ShardedParams = p.Plan.Zero >= 2 && len(c.Shard) > 0, p.Plan.Zero >= 3 && len(c.Shard) > 0
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
		if !split[a.Name] && a.Name != "pp" { // stages have different parameters
			c.Repeat = append(c.Repeat, a.Name)
		}
	}
	return c, nil
}

// sameGradient checks that the gradient of a segment's parameter is partial over the same axes in its recomputed
// variant, if there is one.
func sameGradient(p *ir.Program, s *ir.Segment, w *ir.Value, partial []ir.Axis) error {
	if s.Remat != nil && !slices.Equal(gradAxes(p.Mesh, s.Remat, w.Name), partial) {
		return fmt.Errorf("the gradient of %s is partial over other axes if its block is recomputed", w.Name)
	}
	return nil
}

// replicaAxes returns the atoms of the axes over which a parameter of type t has replicas that process different
// tokens.
func replicaAxes(m ir.Mesh, t ir.Type) []ir.Axis {
	if t.Has(ir.Expert) {
		return m.Expand(ir.ExpertReplicas(m))
	}
	return m.Expand(present(m, "dp", "cp"))
}

// shardGroup returns the part of the replicas whose ranks share one copy of the state: all of them, or zero_group
// consecutive ones.
func shardGroup(p *ir.Program, replicas []ir.Axis) ([]ir.Axis, error) {
	want := p.Plan.ZeroGroup
	all := p.Mesh.Ranks(replicaAxes(p.Mesh, ir.Type{}))
	// for experts, a group of all replicas is all of edp
	if want <= 1 || want >= all || want >= p.Mesh.Ranks(replicas) {
		return replicas, nil
	}
	for i := range replicas {
		if p.Mesh.Ranks(replicas[i:]) == want {
			return replicas[i:], nil
		}
	}
	return nil, fmt.Errorf("no axes of the replicas %v have the size zero_group %d", replicas, want)
}

// gradAxes returns the axes over which the segment accumulates the parameter's gradient, in the order of the mesh.
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

// classIndex returns the index of the class in the program, which it adds if it is new.
func classIndex(p *ir.Program, c ir.Class) int {
	for i, o := range p.Classes {
		if slices.Equal(o.Reduce, c.Reduce) && slices.Equal(o.Replicas, c.Replicas) && slices.Equal(o.Shard,
			c.Shard) && slices.Equal(o.Repeat, c.Repeat) && o.TiedStages == c.TiedStages {
			return i
		}
	}
	p.Classes = append(p.Classes, c)
	return len(p.Classes) - 1
}
