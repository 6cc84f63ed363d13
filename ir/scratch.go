package ir

// Widened lists the values of a node that are in 16 bits and that a CPU's kernels, which compute in f32, need whole in
// f32: operands widened before, results rounded after. Loops over elements, moves and accumulation convert as they go,
// as does cross-entropy row by row. Attention widens operands of bf16 by itself, unless its CPU multiplies them.
func (n *Node) Widened() []*Value {
	row := n.Op.Info()
	if row.element || row.view || row.copies || row.comm || row.gathers || row.effect || n.Op == OpCrossEntropy {
		return nil
	}
	var out []*Value
	seen := map[*Value]bool{}
	args := n.Args
	if n.Matmuls16() {
		if n.Outs[0].Type.Elem == BF16 && n.Outs[0].Place.Region != PlaceGrad { // rounded as its sums come
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

// Matmuls16 tells whether a node multiplies matrices of bf16, which a CPU's kernel reads as they are, with sums in
// f32. What is rounded to 8 bits first is a widened copy.
func (n *Node) Matmuls16() bool {
	return n.Op == OpMatMul && n.Attr.In == "" && n.Args[0].Type.Elem == BF16 && n.Args[1].Type.Elem == BF16
}

// RegionScratch is the name of what [Program.Scratch] sizes. A program's arena has no such region, since devices that
// compute in 16 bits do without: it is behind the arena of a CPU rank.
const RegionScratch = "scratch"

// Scratch is the bytes that a CPU rank needs to widen the 16-bit values of any one node, in whole cache lines.
func (p *Program) Scratch() int {
	most := 0
	for _, s := range p.Model.Segments {
		for _, f := range s.Funcs() {
			for _, n := range f.Nodes {
				sum := 0
				for _, v := range n.Widened() {
					sum += v.Type.LocalElems(p.Mesh) * F32.Size()
				}
				most = max(most, sum)
			}
		}
	}
	return (most + scratchAlign - 1) / scratchAlign * scratchAlign
}

// scratchAlign is a cache line, which every region of an arena starts on.
const scratchAlign = 64
