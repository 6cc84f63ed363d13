package ir

// Collective is one communication of a rank, for pricing and tracing.
type Collective struct {
	Op    Op     // all_reduce, reduce_scatter, all_gather, all_to_all, shift, send or receive
	Axes  []Axis // of its group, the major axis first
	Bytes int    // size of the whole buffer: a rank's operand, or the gathered result of an all_gather
	Ends  bool   // only the first and the last rank of the group take part
}

// Ranks returns the number of ranks that take part.
func (c *Collective) Ranks(m Mesh) int {
	if c.Ends {
		return 2
	}
	return m.Ranks(c.Axes)
}

// Collective returns the node's communication, if it has one.
func (n *Node) Collective(m Mesh) (Collective, bool) {
	c := Collective{Op: n.Op, Axes: n.Attr.Axes, Ends: n.Attr.Ends}
	switch n.Op {
	case OpAllReduce, OpReduceScatter, OpAllToAll, OpShift:
		c.Bytes = n.Args[0].Type.LocalBytes(m)
	case OpAllGather:
		c.Bytes = n.Outs[0].Type.LocalBytes(m)
	case OpCountTokens, OpLossReduce, OpRounds: // one f64
		c.Op, c.Bytes = OpAllReduce, F64.Size()
	case OpGradNorm: // the sum of squares, and whether a loss is not finite
		c.Op, c.Bytes = OpAllReduce, 2*F64.Size()
	default:
		return c, false
	}
	if n.Op == OpShift { // the bytes determine the price; the distance does not matter
		c.Axes = Plain(c.Axes)
	}
	return c, len(c.Axes) > 0
}

// Messages returns what a rank of a stage receives from and sends to other stages in an action: the block's input in
// forward, its gradient in backward. Both have the stream's size, which sequence parallelism shards. Consecutive chunks
// on the same stage (zb-v) send nothing.
func (p *Program) Messages(stage int, a Action) []Collective {
	if a.Kind != Forward && a.Kind != Backward {
		return nil
	}
	at := p.Stages[stage].Chunks[a.Chunk].Index
	from, to := at-1, at+1
	if a.Kind == Backward {
		from, to = to, from
	}
	var out []Collective
	for _, m := range []struct {
		op    Op
		other int
	}{{OpReceive, from}, {OpSend, to}} {
		if m.other >= 0 && m.other < p.Plan.PP*p.Plan.VPP && p.Plan.StageOf(m.other) != stage {
			out = append(out, Collective{Op: m.op, Axes: []Axis{"pp"}, Bytes: p.Stream})
		}
	}
	return out
}
