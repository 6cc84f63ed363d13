package passes

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/ir"
)

// grad gives every segment a backward function by reverse accumulation over the logical graph. Nothing here knows of
// ranks: backward collectives follow from the partitioner's one rule. A backward function takes the gradient of the
// block's output and the forward values that it needs, adds each parameter's gradient to its accumulator, and returns
// the gradient of the block's input.
func grad(p *ir.Program) error {
	for _, s := range p.Model.Segments {
		g := &gradient{seg: s, back: &ir.Func{Name: s.Name + ".backward"}, contributions: map[*ir.Value][]*ir.Value{},
			in: map[*ir.Value]*ir.Value{}, names: map[string]int{}}
		g.build()
		gatherRounds(g.back)
		s.Backward = g.back
	}
	return nil
}

// gradient builds one backward function.
type gradient struct {
	seg           *ir.Segment
	back          *ir.Func
	contributions map[*ir.Value][]*ir.Value // contributions to each forward value's gradient
	in            map[*ir.Value]*ir.Value   // forward values as they appear in the backward function
	names         map[string]int
	node          *ir.Node // the forward node whose gradient is being built
	need          map[*ir.Value]bool
	left          map[*ir.Value]int // users of a value that have not contributed yet
}

func (g *gradient) build() {
	f := g.seg.Forward
	g.need, g.left = needed(f), f.Users()
	for _, y := range f.Outputs {
		dy := &ir.Value{Name: g.name("d." + y.Name), Type: y.Type.Clone(), Kind: ir.Input}
		g.back.Inputs = append(g.back.Inputs, dy)
		g.contributions[y] = append(g.contributions[y], dy)
	}
	for i := len(f.Nodes) - 1; i >= 0; i-- {
		g.reverse(f.Nodes[i])
	}
	for _, v := range f.Inputs {
		if v.Kind != ir.Weight {
			g.finish(v)
		}
	}
}

// needed marks the values through which a gradient flows: the block's input x, the parameters, and values that depend
// on them.
func needed(f *ir.Func) map[*ir.Value]bool {
	need := map[*ir.Value]bool{}
	for _, v := range f.Inputs {
		need[v] = v.Kind == ir.Weight || v.Name == StreamName
	}
	for _, n := range f.Nodes {
		for _, a := range n.Args {
			if need[a] {
				for _, o := range n.Outs {
					need[o] = true
				}
			}
		}
	}
	return need
}

// StreamName is the input of a block that the previous block returned.
const StreamName = ir.StreamName

// reverse adds node n's contributions to its operands' gradients.
func (g *gradient) reverse(n *ir.Node) {
	g.node = n
	ds := make([]*ir.Value, len(n.Outs))
	any := n.Op == ir.OpAccumulate
	for i, o := range n.Outs {
		ds[i] = g.sum(o)
		if ds[i] != nil {
			any = true
		}
	}
	if !any {
		return
	}
	derive := gradients[n.Op]
	if derive == nil {
		for _, a := range n.Args {
			if g.need[a] {
				panic(fmt.Sprintf("passes: a gradient reaches %v, which is not differentiable", n))
			}
		}
		return
	}
	derive(g, n, ds)
}

// sum returns the gradient of v so far, the sum of its contributions. Contributions of one region are added there
// first, so that one collective resolves their sum.
func (g *gradient) sum(v *ir.Value) *ir.Value {
	cs := g.contributions[v]
	if len(cs) == 0 {
		return nil
	}
	var regions []ir.Region
	totals := map[ir.Region]*ir.Value{}
	for _, c := range cs {
		r := ir.Norm
		if c.Def != nil {
			r = c.Def.Region
		}
		if totals[r] == nil {
			regions, totals[r] = append(regions, r), c
		} else {
			totals[r] = g.plus(v, r, totals[r], c)
		}
	}
	total := totals[regions[0]]
	for _, r := range regions[1:] {
		total = g.plus(v, ir.Norm, total, totals[r])
	}
	g.contributions[v] = []*ir.Value{total}
	return total
}

func (g *gradient) plus(v *ir.Value, r ir.Region, a, b *ir.Value) *ir.Value {
	return g.emit(&ir.Node{Op: ir.OpAdd, Region: r, From: v.Name}, v.Type, a, b)
}

// finish ends the gradient of an input: a parameter's is accumulated, the stream's is returned.
func (g *gradient) finish(v *ir.Value) {
	d := g.sum(v)
	if !g.need[v] {
		return
	}
	if d == nil {
		panic(fmt.Sprintf("passes: %s of segment %s has no gradient", v.Name, g.seg.Name))
	}
	if v.Name == StreamName {
		g.back.Outputs = append(g.back.Outputs, d)
		return
	}
	n := &ir.Node{Op: ir.OpAccumulate, Args: []*ir.Value{d}, Attr: ir.Attr{Into: v.Name, Round: ofRound(d)},
		Region: d.Def.Region, From: v.Name}
	g.back.Nodes = append(g.back.Nodes, n)
}

// add records d as a contribution to v's gradient. A parameter's gradient is accumulated as soon as it is complete, so
// that it does not stay in memory.
func (g *gradient) add(v *ir.Value, d *ir.Value) {
	g.contributions[v] = append(g.contributions[v], d)
	g.left[v]--
	if v.Kind == ir.Weight && g.left[v] == 0 {
		g.finish(v)
	}
}

// op emits a node of the backward function in the forward node's region. Its result has t's logical type.
func (g *gradient) op(op ir.Op, attr ir.Attr, t ir.Type, args ...*ir.Value) *ir.Value {
	return g.emit(&ir.Node{Op: op, Attr: attr, Region: g.node.Region, From: g.origin()}, t, args...)
}

func (g *gradient) origin() string {
	if len(g.node.Outs) > 0 {
		return g.node.Outs[0].Name
	}
	return g.node.Attr.Into
}

func (g *gradient) emit(n *ir.Node, t ir.Type, args ...*ir.Value) *ir.Value {
	n.Attr.Round = n.Op == ir.OpDispatch || n.Op == ir.OpDeal || n.Op == ir.OpCombine || n.Op == ir.OpCollect
	n.Attr.Round = n.Attr.Round && g.node.Attr.Round || slices.ContainsFunc(args, ofRound)
	out := &ir.Value{Name: g.name("d." + n.From), Type: t.Clone(), Def: n}
	n.Args, n.Outs = args, []*ir.Value{out}
	g.back.Nodes = append(g.back.Nodes, n)
	return out
}

// name makes a name unique in the backward function.
func (g *gradient) name(s string) string {
	g.names[s]++
	if k := g.names[s]; k > 1 {
		return fmt.Sprintf("%s_%d", s, k)
	}
	return s
}

// use returns a forward value as seen by the backward function: an input. A value that costs nothing to compute, such
// as a view or a function of positions, is recomputed instead.
func (g *gradient) use(v *ir.Value) *ir.Value {
	if w := g.in[v]; w != nil {
		return w
	}
	if v.Def != nil && (v.Def.Op.View() || v.Def.Op == ir.OpIota || ofRound(v)) {
		n := &ir.Node{Op: v.Def.Op, Attr: v.Def.Attr, Region: v.Def.Region, From: v.Def.From}
		for _, a := range v.Def.Args {
			n.Args = append(n.Args, g.use(a))
		}
		w := &ir.Value{Name: g.name(v.Name), Type: v.Type.Clone(), Def: n}
		n.Outs = []*ir.Value{w}
		g.back.Nodes = append(g.back.Nodes, n)
		g.in[v] = w
		return w
	}
	w := &ir.Value{Name: g.name(v.Name), Type: v.Type.Clone(), Kind: ir.Input, Param: v.Param}
	if v.Kind == ir.Weight {
		w.Kind = ir.Weight
	}
	g.back.Inputs = append(g.back.Inputs, w)
	g.in[v] = w
	return w
}
