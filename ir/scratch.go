package ir

// Widened returns the values of a node that have 16 bits and that CPU kernels, which compute in f32, need as a whole in
// f32: operands that are widened before the kernel, and results that are rounded after it. Element-wise loops, moves
// and accumulation convert as they go, and so does cross-entropy, row by row. Attention widens bf16 operands itself,
// unless the CPU multiplies them directly.
func (n *Node) Widened() []*Value {
	row := n.Op.Info()
	if row.element || row.view || row.copies || row.comm || row.gathers || row.effect || n.Op == OpCrossEntropy {
		return nil
	}
	var out []*Value
	seen := map[*Value]bool{}
	args := n.Args
	if n.Matmuls16() {
		if n.Outs[0].Type.Elem == BF16 && n.Outs[0].Place.Region != PlaceGrad { // rounded as its sums are computed
			return nil
		}
		args = nil
	}
	for _, vs := range [][]*Value{n.Outs, args} {
		for _, v := range vs {
			if narrow(v) && !seen[v] {
				seen[v] = true
				out = append(out, v)
			}
		}
	}
	return out
}

// Matmuls16 reports whether a node is a matmul of bf16, which a CPU kernel reads directly, accumulating in f32.
// Operands that are rounded to FP8 first are widened copies.
func (n *Node) Matmuls16() bool {
	return n.Op == OpMatMul && n.Attr.In == "" && n.Args[0].Type.Elem == BF16 && n.Args[1].Type.Elem == BF16
}

// RegionScratch is the name of the memory whose size [Program.Scratch] returns. A program's arena has no such region,
// because devices that compute in 16 bits do not need it. It follows the arena of a CPU rank.
const RegionScratch = "scratch"

// Scratch returns the bytes that a CPU rank needs to widen the 16-bit values of any one node, in whole cache lines.
func (p *Program) Scratch() int {
	largest := 0
	for _, s := range p.Model.Segments {
		for _, f := range s.Funcs() {
			for _, n := range f.Nodes {
				sum := 0
				for _, v := range n.Widened() {
					sum += v.Type.LocalElems(p.Mesh) * F32.Size()
				}
				largest = max(largest, sum)
			}
		}
	}
	return (largest + scratchAlign - 1) / scratchAlign * scratchAlign
}

// scratchAlign is the size of a cache line, to which every region of an arena is aligned.
const scratchAlign = 64
