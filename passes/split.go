package passes

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// split divides backward functions in two if the schedule needs it. Backward keeps what the gradient of the block's
// input needs, for which the previous stage waits. Gradients of parameters move to Weights, which can run later (Qi et
// al. 2023). Those without a matmul (of a norm's gain, a bias, an embedding) stay: they take one pass over values that
// are at hand, which would otherwise have to be saved for them.
//
// Recomputed variants are not divided, because the values that their Weights would read would have to be saved, which
// recomputation is meant to avoid.
//
// Weights reads what forward saved, the gradient of the block's output, and values that Backward saves for it. It
// repeats views, ops without operands, and all-gathers, so that values are saved in the form in which they were
// computed.
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

// splitter divides one function.
type splitter struct {
	back, rest *ir.Func
	each       bool                    // gradients are scattered after each micro-batch
	mixed      bool                    // with each, some gradients cannot move to rest: then none does
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

// choose marks the nodes that stay: those that compute the returned gradient; gradients that read the returned value,
// which is not saved, or a parameter, which ZeRO 3 would have to gather again; and those without a matmul. If gradients
// are scattered after each micro-batch, one function computes all gradients of a block.
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
		goes, bound := sp.each, n.Attr.Round // what the rounds sum is computed where they run
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

// bound reports whether only back may read v.
func (sp *splitter) bound(v *ir.Value) bool {
	return v.Kind == ir.Weight || slices.Contains(sp.back.Outputs, v)
}

// ancestors adds n and the nodes on which it depends to seen.
func ancestors(n *ir.Node, seen map[*ir.Node]bool) {
	if n == nil || seen[n] {
		return
	}
	seen[n] = true
	for _, a := range n.Args {
		ancestors(a.Def, seen)
	}
}

// use returns a value of back as rest sees it: an input, or computed again.
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

// savedForWeights returns the values of a segment's backward function that its second part reads.
func savedForWeights(s *ir.Segment) map[string]bool {
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
