package ir

// Collective is one communication of a rank: what prices and traces it.
type Collective struct {
	Op    Op     // all_reduce, reduce_scatter, all_gather or all_to_all
	Axes  []Axis // of its group, the major one first
	Bytes int    // of the whole buffer: a rank's operand, or the gathered result of an all_gather
}

// Collective is the communication that the node does, if it does any.
func (n *Node) Collective(m Mesh) (Collective, bool) {
	c := Collective{Op: n.Op, Axes: n.Attr.Axes}
	switch n.Op {
	case OpAllReduce, OpReduceScatter, OpAllToAll:
		c.Bytes = n.Args[0].Type.LocalBytes(m)
	case OpAllGather:
		c.Bytes = n.Outs[0].Type.LocalBytes(m)
	case OpCountTokens, OpLossReduce, OpGradNorm: // one f64
		c.Op, c.Bytes = OpAllReduce, F64.Size()
	default:
		return c, false
	}
	return c, len(c.Axes) > 0
}
