package ir

// JoinDims returns the dims of a join's operands: shared by both, between those and the last dim of the first operand,
// and the last dims a and b, which become d. Each row of the second operand is appended to all rows of the first that
// differ only in the dims between.
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
