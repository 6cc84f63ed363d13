package passes

import "github.com/planc-dev/planc/ir"

// precision gives values the plan's element types. The model comes in the plan's compute type, with statistics in at
// least f32. An op reads its operands in their types, computes in f32 (or f64) and rounds each result once to the
// result's type. What remains are the values for which the plan has other types:
//
//   - parameters: those that GEMMs read are cast first;
//   - gradients of parameters, which GEMMs add directly to the accumulator.
func precision(p *ir.Program) error {
	prec := p.Plan.Precision
	for _, s := range p.Model.Segments {
		for _, f := range s.Funcs() {
			castWeights(f, prec)
		}
		users := s.Backward.Users()
		for _, n := range s.Backward.Nodes {
			if n.Op == ir.OpAccumulate && !n.Attr.Scalar() {
				widen(n.Args[0], prec.Grads, users)
			}
		}
	}
	return nil
}

// castWeights gives a function's parameters their type, and casts those that GEMMs read. A table is read row by row and
// needs no cast.
func castWeights(f *ir.Func, prec ir.Precision) {
	cast := map[*ir.Value]*ir.Value{}
	var nodes []*ir.Node
	for _, n := range f.Nodes {
		for i, a := range n.Args {
			if a.Kind != ir.Weight || prec.Params == prec.Compute || n.Op == ir.OpEmbed {
				continue
			}
			if cast[a] == nil {
				c := &ir.Node{Op: ir.OpCast, Args: []*ir.Value{a}, Region: n.Region, From: n.From}
				c.Outs = []*ir.Value{{Name: a.Name + ".cast", Type: a.Type.Clone(), Def: c}}
				nodes, cast[a] = append(nodes, c), c.Outs[0]
			}
			n.Args[i] = cast[a]
		}
		nodes = append(nodes, n)
	}
	f.Nodes = nodes
	for _, w := range f.Weights() {
		w.Type.Elem = prec.Params
	}
}

// widen gives a parameter's gradient its type, and also the values of which it is the sum or a view.
func widen(d *ir.Value, elem ir.Elem, users map[*ir.Value]int) {
	if d.Def == nil || users[d] > 1 || d.Def.Op.Statistic(0) && elem.Narrow() { // counts of choices keep their type
		return
	}
	d.Type.Elem = elem
	for _, a := range d.Def.Args {
		// of positions, over the batch
		summed := d.Def.Op == ir.OpEmbedGrad && a.Def != nil && a.Def.Op == ir.OpReduceSum
		if d.Def.Op.View() || d.Def.Op == ir.OpAdd || summed {
			widen(a, elem, users)
		}
	}
}
