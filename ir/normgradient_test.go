package ir

import "testing"

// normed is a function with the gradients of a norm of 16 rows.
type normed struct {
	dy, x, other, more, gain *Value
	dx                       *Node
}

func newNormed(elem Elem, hidden int) *normed {
	rows := Type{Elem: elem, Dims: []Extent{{Dim: Seq, Size: 16}, {Dim: Hidden, Size: hidden}}}
	n := &normed{dy: &Value{Type: rows}, x: &Value{Type: rows}, other: &Value{Type: rows}, more: &Value{Type: rows},
		gain: &Value{Type: Type{Elem: elem, Dims: rows.Dims[1:]}}}
	n.dx = &Node{Op: OpLayerNormDX, Args: []*Value{n.dy, n.x, n.gain}, Outs: []*Value{{Type: rows}}}
	return n
}

// sum returns an op that adds to an accumulator.
func (n *normed) sum(op Op, elem Elem, args ...*Value) *Node {
	out := &Value{Type: Type{Elem: elem, Dims: n.gain.Type.Dims}, Place: Place{Region: PlaceGrad}}
	return &Node{Op: op, Args: args, Outs: []*Value{out}}
}

// group returns the group of dx and an addition.
func (n *normed) group(a, b *Value) *Node {
	add := &Node{Op: OpAdd, Args: []*Value{a, b}, Outs: []*Value{{Type: n.dy.Type}}}
	return &Node{Op: OpFused, Body: []*Node{n.dx, add}, Args: append(n.dx.Args, n.more), Outs: add.Outs}
}

// A norm's gradients are found wherever their ops are in the function, alone or with an addition.
func TestNormGradients(t *testing.T) {
	n := newNormed(BF16, 64)
	gain, bias := n.sum(OpLayerNormDGain, F32, n.dy, n.x), n.sum(OpReduceSum, F32, n.dy)
	left, right := n.group(n.dx.Outs[0], n.more), n.group(n.more, n.dx.Outs[0])
	for name, c := range map[string]struct {
		nodes []*Node
		want  NormGradient
	}{
		"alone":           {[]*Node{gain, bias, n.dx}, NormGradient{Node: n.dx, DX: n.dx, Gain: gain, Bias: bias}},
		"sums later":      {[]*Node{n.dx, gain, bias}, NormGradient{Node: n.dx, DX: n.dx, Gain: gain, Bias: bias}},
		"without a bias":  {[]*Node{gain, n.dx}, NormGradient{Node: n.dx, DX: n.dx, Gain: gain}},
		"addend behind":   {[]*Node{gain, left}, NormGradient{Node: left, DX: n.dx, Gain: gain, More: n.more}},
		"addend in front": {[]*Node{gain, right}, NormGradient{Node: right, DX: n.dx, Gain: gain, More: n.more}},
	} {
		f := &Func{Nodes: c.nodes}
		got := f.NormGradients(Mesh{})
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// Other sums, types and rows stay separate ops.
func TestNormGradientsThatStaySeparate(t *testing.T) {
	n := newNormed(BF16, 64)
	gain := n.sum(OpLayerNormDGain, F32, n.dy, n.x)
	elsewhere := n.sum(OpLayerNormDGain, F32, n.dy, n.x)
	elsewhere.Outs[0].Place.Region = PlaceWork
	twice := n.group(n.dx.Outs[0], n.dx.Outs[0])
	wide, long, odd := newNormed(F32, 64), newNormed(BF16, NormRow+NormPack), newNormed(BF16, 60)
	for name, nodes := range map[string][]*Node{
		"no gain":                 {n.sum(OpReduceSum, F32, n.dy), n.dx},
		"gain of another norm":    {n.sum(OpRMSNormDGain, F32, n.dy, n.x), n.dx},
		"gain of another x":       {n.sum(OpLayerNormDGain, F32, n.dy, n.other), n.dx},
		"gain in bf16":            {n.sum(OpLayerNormDGain, BF16, n.dy, n.x), n.dx},
		"gain that is read":       {elsewhere, n.dx},
		"twice the gradient":      {gain, twice},
		"in f32":                  {wide.sum(OpLayerNormDGain, F32, wide.dy, wide.x), wide.dx},
		"a row that is too long":  {long.sum(OpLayerNormDGain, F32, long.dy, long.x), long.dx},
		"a row of no whole packs": {odd.sum(OpLayerNormDGain, F32, odd.dy, odd.x), odd.dx},
	} {
		got := (&Func{Nodes: nodes}).NormGradients(Mesh{})
		if got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	f := &Func{Nodes: []*Node{gain, n.sum(OpReduceSum, F32, n.other), n.dx}}
	if got := f.NormGradients(Mesh{}); len(got) != 1 || got[0].Bias != nil {
		t.Errorf("bias of another gradient: %+v", got)
	}
}
