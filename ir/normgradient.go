package ir

import "slices"

// NormGradient is the gradient of a norm's input with the gradients of its gain and its bias. A GPU computes them with
// one kernel, which reads each operand once.
type NormGradient struct {
	Node *Node  // the op or fused group that is computed: DX, plus More
	DX   *Node  // layer_norm_dx or rms_norm_dx
	Gain *Node  // the gradient of the gain
	Bias *Node  // the gradient of the bias; nil if there is none
	More *Value // what the group adds to DX; nil if it adds nothing
}

// NormRow is the longest row of a norm whose gradients a GPU computes with one kernel, and NormPack is what its length
// must be a multiple of.
const (
	NormRow  = 8192
	NormPack = 8
)

var gainGradients = map[Op]Op{OpLayerNormDX: OpLayerNormDGain, OpRMSNormDX: OpRMSNormDGain}

// NormGradients returns the gradients of norms in a function that a GPU computes with one kernel each: those in 16 bits
// with sums in f32. The sums are added to accumulators that nothing reads before the step's end, so that they may move.
func (f *Func) NormGradients(m Mesh) (out []NormGradient) {
	for _, n := range f.Nodes {
		g, ok := inputGradient(n, m)
		if !ok {
			continue
		}
		for _, sum := range f.Nodes {
			switch {
			case g.Gain == nil && g.isGain(sum):
				g.Gain = sum
			case g.Bias == nil && g.isBias(sum):
				g.Bias = sum
			}
		}
		if g.Gain != nil {
			out = append(out, g)
		}
	}
	return out
}

// Sums returns the ops of the gradients of the gain and the bias.
func (g *NormGradient) Sums() []*Node {
	if g.Bias == nil {
		return []*Node{g.Gain}
	}
	return []*Node{g.Gain, g.Bias}
}

// inputGradient returns the gradient of a norm's input that an op, or a group of it and an addition, computes.
func inputGradient(n *Node, m Mesh) (g NormGradient, ok bool) {
	body := n.Body
	if n.Op != OpFused {
		body = []*Node{n}
	}
	g = NormGradient{Node: n, DX: body[0]}
	_, known := gainGradients[g.DX.Op]
	if !known || len(body) > 2 || len(n.Outs) != 1 || n.Attr.Round {
		return g, false
	}
	out := n.Outs[0].Type
	for _, v := range append(g.DX.Args, g.DX.Outs[0]) {
		if v.Type.Elem != out.Elem || !out.Elem.Narrow() {
			return g, false
		}
	}
	cols := g.DX.Args[2].Type.LocalElems(m)
	if cols%NormPack != 0 || cols > NormRow {
		return g, false
	}
	return g, len(body) == 1 || g.adds(body[1])
}

// adds reports whether the second op of a group adds a value of the same type to DX, and sets More.
func (g *NormGradient) adds(n *Node) bool {
	dx, out := g.DX.Outs[0], g.Node.Outs[0]
	if n.Op != OpAdd || n.Outs[0] != out || (n.Args[0] == dx) == (n.Args[1] == dx) {
		return false
	}
	g.More = n.Args[0]
	if g.More == dx {
		g.More = n.Args[1]
	}
	return g.More.Type.Elem == out.Type.Elem && sameDims(g.More.Type, out.Type)
}

// isGain reports whether an op adds to the gradient of the norm's gain.
func (g *NormGradient) isGain(n *Node) bool {
	return n.Op == gainGradients[g.DX.Op] && n.Args[0] == g.DX.Args[0] && n.Args[1] == g.DX.Args[1] &&
		n.Attr.Eps == g.DX.Attr.Eps && g.isSum(n)
}

// isBias reports whether an op adds to the gradient of the norm's bias.
func (g *NormGradient) isBias(n *Node) bool {
	return g.DX.Op == OpLayerNormDX && n.Op == OpReduceSum && n.Args[0] == g.DX.Args[0] && g.isSum(n)
}

// isSum reports whether an op adds a sum over rows to an f32 accumulator that has the dims of the gain.
func (g *NormGradient) isSum(n *Node) bool {
	out := n.Outs[0]
	return out.Place.Region == PlaceGrad && !n.Attr.Round && out.Type.Elem == F32 &&
		sameDims(out.Type, g.DX.Args[2].Type)
}

// sameDims reports whether two types have the same dims in the same order.
func sameDims(a, b Type) bool {
	return slices.EqualFunc(a.Dims, b.Dims, func(x, y Extent) bool { return x.Dim == y.Dim })
}
