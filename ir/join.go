package ir

// JoinDims are how the operands of a join lie: the second has a row for every times of the rows of the first, since it
// lacks the dims between those of both and the last. a, b and d are the dims that are joined, and what they become.
func (n *Node) JoinDims() (shared, between []Dim, a, b, d Extent) {
	x, y, z := n.Args[0].Type.Dims, n.Args[1].Type, n.Outs[0].Type.Dims
	for _, e := range x[:len(x)-1] {
		if y.Has(e.Dim) {
			shared = append(shared, e.Dim)
		} else {
			between = append(between, e.Dim)
		}
	}
	return shared, between, x[len(x)-1], y.Dims[len(y.Dims)-1], z[len(z)-1]
}
