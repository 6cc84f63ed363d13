package passes

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// split cuts backward functions in two where the schedule asks for it. What stays in Backward is what the gradient of
// the block's input needs, on which the stage before waits; gradients of parameters go to Weights, which can wait (Qi
// et al. 2023). One that takes no matmul, of a norm's gain, a bias, an embedding, stays: it is one pass over what is at
// hand, which would have to be kept for it.
//
// Recomputed variants are left whole: what their Weights would read would have to be kept, which is what they are there
// to avoid.
//
// Weights reads what forward saved, the gradient of the block's output, and values that Backward keeps for it. Views,
// what reads nothing and all-gathers are made again there, so that values are kept as they were produced.
func split(p *ir.Program) error {
	if !p.Plan.Splits() {
		return nil
	}
	for _, s := range p.Model.Segments {
		sp := &splitter{each: p.Plan.Zero >= 2, back: s.Backward, rest: &ir.Func{Name: s.Name + ".weights"},
			stays: map[*ir.Node]bool{}, in: map[*ir.Value]*ir.Value{}}
		sp.run()
		if len(sp.rest.Nodes) > 0 {
			s.Weights = sp.rest
		}
	}
	return nil
}

// splitter cuts one function.
type splitter struct {
	back, rest *ir.Func
	each       bool                    // gradients are scattered after each micro-batch
	mixed      bool                    // though some cannot go to rest: then none does
	stays      map[*ir.Node]bool       // in back
	in         map[*ir.Value]*ir.Value // values of back as rest sees them
}

func (sp *splitter) run() {
	sp.choose()
	if sp.mixed {
		return
	}
	nodes := sp.back.Nodes
	sp.back.Nodes = nil
	for _, n := range nodes {
		if sp.stays[n] {
			sp.back.Nodes = append(sp.back.Nodes, n)
			continue
		}
		for i, a := range n.Args {
			n.Args[i] = sp.use(a)
		}
		for _, o := range n.Outs {
			sp.in[o] = o
		}
		sp.rest.Nodes = append(sp.rest.Nodes, n)
	}
	sp.back.Inputs = slices.DeleteFunc(sp.back.Inputs, func(v *ir.Value) bool {
		return !sp.back.Reads(v)
	})
}

// choose marks what stays: what the returned gradient is made of; gradients that read what is returned, which is not
// kept, or a parameter, which ZeRO 3 would have to gather once more; and those that take no matmul, unless they are
// scattered after each micro-batch: then all of a block's are made by one function.
func (sp *splitter) choose() {
	critical := map[*ir.Node]bool{}
	for _, o := range sp.back.Outputs {
		ancestors(o.Def, critical)
	}
	for n := range critical {
		sp.stays[n] = true
	}
	for _, n := range sp.back.Nodes {
		sp.stays[n] = sp.stays[n] || n.Op == ir.OpRounds || n.Attr.Round
		if n.Op != ir.OpAccumulate {
			continue
		}
		made := map[*ir.Node]bool{}
		ancestors(n, made)
		goes, bound := sp.each, n.Attr.Round // what rounds sum is made where they are
		for m := range made {
			goes = goes || !critical[m] && m.Op == ir.OpMatMul
			bound = bound || !critical[m] && slices.ContainsFunc(m.Args, sp.bound)
		}
		for m := range made {
			sp.stays[m] = sp.stays[m] || !goes || bound
		}
		sp.mixed = sp.mixed || sp.each && bound
	}
}

// bound tells whether only back may read v.
func (sp *splitter) bound(v *ir.Value) bool {
	return v.Kind == ir.Weight || slices.Contains(sp.back.Outputs, v)
}

// ancestors adds n and what it is made of to seen.
func ancestors(n *ir.Node, seen map[*ir.Node]bool) {
	if n == nil || seen[n] {
		return
	}
	seen[n] = true
	for _, a := range n.Args {
		ancestors(a.Def, seen)
	}
}

// use is a value of back as rest sees it: an input, or made again.
func (sp *splitter) use(v *ir.Value) *ir.Value {
	if w := sp.in[v]; w != nil {
		return w
	}
	w := &ir.Value{Name: v.Name, Type: v.Type.Clone(), Kind: v.Kind, Param: v.Param}
	sp.in[v] = w
	if n := v.Def; n != nil && (n.Op.View() || len(n.Args) == 0 || n.Op == ir.OpAllGather) {
		c := *n
		c.Args, c.Outs = nil, []*ir.Value{w}
		for _, a := range n.Args {
			c.Args = append(c.Args, sp.use(a))
		}
		w.Def = &c
		sp.rest.Nodes = append(sp.rest.Nodes, &c)
		return w
	}
	if w.Kind == ir.Temp {
		w.Kind = ir.Input
	}
	sp.rest.Inputs = append(sp.rest.Inputs, w)
	return w
}

// keptNames are the values of a segment's backward function that its second part reads.
func keptNames(s *ir.Segment) map[string]bool {
	names := map[string]bool{}
	if s.Weights != nil {
		for _, v := range s.Weights.Inputs {
			if b := s.Backward.Value(v.Name); b != nil && b.Kind == ir.Temp {
				names[v.Name] = true
			}
		}
	}
	return names
}
