package passes

import (
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// sides puts weights by which the same value is multiplied side by side, if the recipe says so: those of the
// projections to queries, keys and values, and of the gate and up projections of an MLP. They become one parameter with
// a dim side, and so do their biases. One GEMM then computes all projections, one the gradient of the input, which
// needs no additions, and one the gradients of the weights. Attention, and the ops after gate and up, read views of the
// one result.
//
// The pass does nothing with FP8, which scales each parameter, and with stochastic rounding, whose kernel numbers the
// elements of one parameter after the other.
func sides(p *ir.Program) error {
	if !p.Recipe.Sides || p.Plan.Precision.FP8 || p.Recipe.StochasticRounding {
		return nil
	}
	for _, s := range p.Model.Segments {
		for _, n := range slices.Clone(s.Forward.Nodes) {
			if ps := gateAndUp(s.Forward, n); ps != nil {
				join(s.Forward, ps, ".gate", ".gate_up")
			} else if ps := queriesKeysValues(p, s.Forward, n); ps != nil {
				join(s.Forward, ps, ".q", ".qkv")
			}
		}
	}
	return nil
}

// queriesKeysValues returns the projections to attention's queries, keys and values; nil if they cannot be joined.
// Between the projections and attention there may be only rotary positions of queries and keys: one op then rotates
// both, in place. Queries that share keys and values take as many sides as share them, which no axis may split. Context
// parallelism moves keys and values alone.
func queriesKeysValues(p *ir.Program, f *ir.Func, n *ir.Node) []*projection {
	if n.Op != ir.OpAttention || p.Plan.CP > 1 {
		return nil
	}
	ps := projections(f, n.Args[:3])
	if ps == nil || len(p.Layouts[ps[0].matmul.Region][ir.Group]) > 0 {
		return nil
	}
	q, k, v := ps[0].rope, ps[1].rope, ps[2].rope
	if v != nil || (q == nil) != (k == nil) || q != nil && q.Attr.String() != k.Attr.String() {
		return nil
	}
	return ps
}

// gateAndUp returns the gate and up projections if n multiplies them, the gate after an activation; else nil. Those of
// each expert lie side by side, too.
func gateAndUp(f *ir.Func, n *ir.Node) []*projection {
	if n.Op != ir.OpMul {
		return nil
	}
	act, up := n.Args[0].Def, n.Args[1]
	if act == nil || len(act.Args) != 1 || !act.Op.Element() || f.Users()[act.Outs[0]] > 1 {
		return nil
	}
	ps := projections(f, []*ir.Value{act.Args[0], up})
	if ps == nil || ps[0].rope != nil || ps[1].rope != nil {
		return nil
	}
	return ps
}

// projection is the computation of queries, keys or values: a matmul with a weight, the addition of a bias, and a
// rotation by position.
type projection struct {
	matmul *ir.Node
	weight *ir.Value
	add    *ir.Node  // nil if there is no bias
	bias   *ir.Value // nil if there is none
	rope   *ir.Node  // nil if there is none
	result *ir.Value // of all
}

// projections returns the projections of which operands are views; nil if they cannot be joined.
func projections(f *ir.Func, operands []*ir.Value) (ps []*projection) {
	users := f.Users()
	for _, v := range operands {
		p := projectionOf(users, v)
		if p == nil || len(ps) > 0 && !ps[0].fits(p) {
			return nil
		}
		ps = append(ps, p)
	}
	return ps
}

// projectionOf returns the projection of which v is a view; nil if there is none.
func projectionOf(users map[*ir.Value]int, v *ir.Value) *projection {
	p := &projection{}
	for v.Def != nil && v.Def.Op == ir.OpRename && users[v] == 1 {
		v = v.Def.Args[0]
	}
	p.result = v
	if n := v.Def; n != nil && n.Op == ir.OpRope && users[v] == 1 {
		p.rope, v = n, n.Args[0]
	}
	if n := v.Def; n != nil && n.Op == ir.OpAdd && users[v] == 1 && n.Args[1].Kind == ir.Weight {
		p.add, p.bias, v = n, n.Args[1], n.Args[0]
	}
	n := v.Def
	if n == nil || n.Op != ir.OpMatMul || users[v] != 1 || n.Args[1].Kind != ir.Weight {
		return nil
	}
	p.matmul, p.weight = n, n.Args[1]
	return p
}

// fits reports whether two projections can lie side by side: they have the same input, sizes and treatment. The first
// may have several queries for each key.
func (p *projection) fits(q *projection) bool {
	same := func(a, b *ir.Value) bool {
		if a == nil || b == nil {
			return a == b
		}
		return a.Param.Init == b.Param.Init && a.Param.Std == b.Param.Std && a.Param.Decay == b.Param.Decay &&
			a.Param.LRMultiplier == b.Param.LRMultiplier &&
			slices.EqualFunc(alone(a.Type).Dims, b.Type.Dims, func(x, y ir.Extent) bool { return x.Size == y.Size })
	}
	return p.matmul.Args[0] == q.matmul.Args[0] && p.matmul.Region == q.matmul.Region && same(p.weight, q.weight) &&
		same(p.bias, q.bias)
}

// alone returns the type of one query for each key.
func alone(t ir.Type) ir.Type {
	t = t.Clone()
	t.Dims = slices.DeleteFunc(t.Dims, func(e ir.Extent) bool { return e.Dim == ir.Group })
	return t
}

// join replaces projections by one, of whose result their results are views. Names get whole instead of part.
func join(f *ir.Func, ps []*projection, part, whole string) {
	first := ps[0]
	nodes := joined(f, ps, part, whole)
	at := slices.Index(f.Nodes, first.matmul)
	all, from := nodes[len(nodes)-1].Outs[0], 0
	for i, p := range ps {
		t := alone(first.result.Type)
		if i == 0 {
			t = first.result.Type.Clone()
		}
		side := view(&ir.Node{Op: ir.OpSide, Args: []*ir.Value{all}, Attr: ir.Attr{Offset: from}}, p, t)
		from += ir.GroupSize(t)
		nodes = append(nodes, side)
		for j, e := range t.Dims { // v_dim
			if to := p.result.Type.Dims[j].Dim; to != e.Dim {
				side.Outs[0].Name += "0"
				side = view(&ir.Node{Op: ir.OpRename, Args: side.Outs, Attr: ir.Attr{Dim: e.Dim, To: to}}, p,
					p.result.Type)
				nodes = append(nodes, side)
			}
		}
		replaceUses(f, p.result, side.Outs[0])
	}
	f.Nodes = slices.Insert(f.Nodes, at, nodes...)
	f.Nodes = slices.DeleteFunc(f.Nodes, func(m *ir.Node) bool {
		return slices.ContainsFunc(ps, func(p *projection) bool { return m == p.matmul || m == p.add || m == p.rope })
	})
}

// replaceUses makes the ops of a function read another value instead of v.
func replaceUses(f *ir.Func, v, now *ir.Value) {
	for _, n := range f.Nodes {
		for i, a := range n.Args {
			if a == v {
				n.Args[i] = now
			}
		}
	}
}

// joined returns the nodes that compute all projections at once: the matmul, the addition of the bias, the rotation.
func joined(f *ir.Func, ps []*projection, part, whole string) (nodes []*ir.Node) {
	first := ps[0]
	x, n := first.matmul.Args[0], ir.GroupSize(first.result.Type)+len(ps)-1
	heads := slices.IndexFunc(first.weight.Type.Dims, func(e ir.Extent) bool { return !x.Type.Has(e.Dim) })
	before := first.weight.Type.Dims[heads].Dim
	join := func(param func(*projection) *ir.Value) *ir.Value {
		w := joinParams(f, withSides(alone(param(first).Type), before, n), ps, param)
		w.Param.Name = strings.Replace(param(first).Name, part, whole, 1)
		w.Name = w.Param.Name
		return w
	}
	nodes = []*ir.Node{{Op: ir.OpMatMul,
		Args: []*ir.Value{x, join(func(p *projection) *ir.Value { return p.weight })}}}
	if first.bias != nil {
		nodes = append(nodes, &ir.Node{Op: ir.OpAdd,
			Args: []*ir.Value{nil, join(func(p *projection) *ir.Value { return p.bias })}})
	}
	if first.rope != nil {
		nodes = append(nodes, &ir.Node{Op: ir.OpRope, Args: []*ir.Value{nil}, Attr: first.rope.Attr})
	}
	t := withSides(alone(first.result.Type), before, n)
	for i, m := range nodes {
		m.Region, m.Attr.Round = first.matmul.Region, first.matmul.Attr.Round
		name := whole[1:]
		if first.weight.Type.Has(ir.Expert) {
			name = "moe_" + name
		}
		switch {
		case m.Op == ir.OpRope:
			name += "_rot"
		case first.bias != nil && i == 0:
			name += "0"
		}
		m.Outs = []*ir.Value{{Name: name, Type: t.Clone(), Def: m}}
		if i > 0 {
			m.Args[0] = nodes[i-1].Outs[0]
		}
	}
	return nodes
}

// view completes a view that has the name of a projection's result.
func view(n *ir.Node, p *projection, t ir.Type) *ir.Node {
	n.Region, n.Attr.Round = p.matmul.Region, p.matmul.Attr.Round
	n.Outs = []*ir.Value{{Name: p.result.Name, Type: t, Def: n}}
	return n
}

// joinParams replaces parameters of a function by one of type t, in the place of the first.
func joinParams(f *ir.Func, t ir.Type, ps []*projection, param func(*projection) *ir.Value) *ir.Value {
	first := param(ps[0])
	one := *first.Param
	for _, p := range ps {
		one.Sides = append(one.Sides, param(p).Name)
	}
	w := &ir.Value{Name: one.Name, Kind: ir.Weight, Param: &one, Type: t}
	f.Inputs[slices.Index(f.Inputs, first)] = w
	f.Inputs = slices.DeleteFunc(f.Inputs, func(v *ir.Value) bool {
		return slices.ContainsFunc(ps, func(p *projection) bool { return param(p) == v })
	})
	return w
}

// withSides returns t with n sides before one of its dims.
func withSides(t ir.Type, before ir.Dim, n int) ir.Type {
	t = t.Clone()
	at := slices.IndexFunc(t.Dims, func(e ir.Extent) bool { return e.Dim == before })
	t.Dims = slices.Insert(t.Dims, at, ir.Extent{Dim: ir.Side, Size: n})
	return t
}
