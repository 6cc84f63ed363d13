package passes

import (
	"fmt"

	"github.com/planc-dev/planc/ir"
)

// ring writes attention or its gradient, if its keys are split over the axes that split its queries, as the turns of a
// ring: see [ir.Turns]. The keys and values of a turn are sent before the previous turn computes, so that the transfer
// overlaps it. The same holds for the gradients of keys and values, which the turns add up along the way. Results that
// a turn passes to the next one have at least f32, and are rounded once.
func (pt *partitioner) ring(n *ir.Node) {
	e, _ := n.Keys().Type.Extent(ir.KSeq)
	r := &ringer{pt: pt, n: n, axis: e.Axes[0], at: 1, turns: ir.Turns(&n.Attr, e.Size, pt.prog.Mesh.Ranks(e.Axes))}
	if n.Op == ir.OpAttentionGrad {
		r.at = 2
	}
	r.keys = [2]*ir.Value{n.Args[r.at], n.Args[r.at+1]}
	for i, t := range r.turns {
		args := append([]*ir.Value{}, n.Args...)
		args[r.at], args[r.at+1] = r.keys[0], r.keys[1]
		if i+1 < len(r.turns) {
			for k, v := range r.keys {
				r.keys[k] = r.shift(v, r.turns[i+1], fmt.Sprintf("%s.turn%d", n.Args[r.at+k].Name, i+1))
			}
		}
		if n.Op == ir.OpAttention {
			r.attend(i, args)
		} else {
			r.gradients(i, t, args)
		}
	}
}

// ringer writes the turns of a ring that replace a node.
type ringer struct {
	pt    *partitioner
	n     *ir.Node
	axis  ir.Axis
	at    int // index of the keys among the operands
	turns []int
	keys  [2]*ir.Value // keys and values of the next turn
	sofar []*ir.Value  // results into which the next turn merges
	sums  [2]*ir.Value // gradients of keys and values after the last turn
}

func (r *ringer) last(i int) bool { return i == len(r.turns)-1 }

// turn emits the node's op on a turn's operands and on the results of the previous turns.
func (r *ringer) turn(args, outs []*ir.Value) {
	n := &ir.Node{Op: r.n.Op, Args: append(args, r.sofar...), Outs: outs, Attr: r.n.Attr, Region: r.n.Region,
		From: r.n.From}
	n.Attr.Axes = []ir.Axis{r.axis}
	for _, o := range outs {
		o.Def = n
	}
	r.pt.nodes = append(r.pt.nodes, n)
}

// attend emits turn i of attention. The last turn computes the node's own results.
func (r *ringer) attend(i int, args []*ir.Value) {
	outs := r.n.Outs
	if !r.last(i) {
		outs = []*ir.Value{r.sum(r.n.Outs[0], i), r.sum(r.n.Outs[1], i)}
	}
	r.turn(args, outs)
	r.sofar = outs
}

// gradients emits turn i of attention's gradient, with the keys of turn t.
func (r *ringer) gradients(i, t int, args []*ir.Value) {
	outs := []*ir.Value{r.n.Outs[0], nil, nil}
	if !r.last(i) {
		outs[0] = r.sum(outs[0], i)
	}
	for k := range r.sums {
		outs[1+k] = r.n.Outs[1+k]
		if len(r.turns) > 1 {
			outs[1+k] = r.part(outs[1+k], fmt.Sprintf(".turn%d", i), t)
		}
	}
	for k, v := range r.sums {
		if v != nil { // transferred while this turn computes
			r.sums[k] = r.shift(v, t, v.Name+".sh")
		}
	}
	r.turn(args, outs)
	r.sofar = outs[:1]
	for k := range r.sums {
		r.add(k, i, t, outs[1+k])
	}
}

// add adds a turn's part of a gradient to the parts of the previous turns, and sends the sum to its home rank.
func (r *ringer) add(k, i, t int, part *ir.Value) {
	own := r.n.Outs[1+k]
	if r.sums[k] == nil {
		r.sums[k] = part
		return
	}
	sum := r.part(own, fmt.Sprintf(".sum%d", i), t)
	if r.last(i) {
		sum.Type.Elem = own.Type.Elem
	}
	n := &ir.Node{Op: ir.OpAdd, Args: []*ir.Value{r.sums[k], part}, Outs: []*ir.Value{sum}, Region: r.n.Region,
		From: r.n.From}
	sum.Def = n
	r.pt.nodes = append(r.pt.nodes, n)
	r.sums[k] = sum
	if r.last(i) {
		r.shiftTo(own, sum, 0)
	}
}

// sum returns the value for v's partial result after turn i.
func (r *ringer) sum(v *ir.Value, i int) *ir.Value { return r.part(v, fmt.Sprintf(".turn%d", i), 0) }

// part returns a value like v for the keys of a turn, in at least f32.
func (r *ringer) part(v *ir.Value, suffix string, turn int) *ir.Value {
	t := v.Type.Clone()
	t.Elem = t.Elem.Statistic()
	for i := range t.Dims {
		if d := &t.Dims[i]; d.Dim == ir.KSeq {
			d.Axes[0] = d.Axes[0].Turned(turn)
		}
	}
	return &ir.Value{Name: r.pt.fresh(v.Name + suffix), Type: t}
}

// shift sends v to where a turn needs it.
func (r *ringer) shift(v *ir.Value, turn int, name string) *ir.Value {
	to := &ir.Value{Name: r.pt.fresh(name), Type: v.Type.Clone()}
	for i := range to.Type.Dims {
		if d := &to.Type.Dims[i]; d.Dim == ir.KSeq {
			d.Axes[0] = r.axis.Turned(turn)
		}
	}
	r.shiftTo(to, v, turn)
	return to
}

// shiftTo emits the shift that turns v into to.
func (r *ringer) shiftTo(to, v *ir.Value, turn int) {
	n := &ir.Node{Op: ir.OpShift, Args: []*ir.Value{v}, Outs: []*ir.Value{to}, Region: r.n.Region, From: r.n.From,
		Attr: ir.Attr{Dim: ir.KSeq, Axes: []ir.Axis{r.axis.Turned(turn)}}}
	to.Def = n
	r.pt.nodes = append(r.pt.nodes, n)
}
