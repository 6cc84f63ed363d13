package engines

import "github.com/planc-dev/planc/ir"

// context adds the communication of context parallelism, for q and kv columns of a rank's queries and keys. The ranks
// have even shares of causal work, because chunks are distributed in zigzag order.
//
//	gather  the keys and values of all ranks are gathered, in forward and again in backward; their gradients are
//	        reduced
//	ring    the same amount is exchanged from rank to rank, overlapping attention to the keys that are already there.
//	        The partial results are merged by their log-sum-exp (Liu, Zaharia, Abbeel, "Ring Attention", 2023). In
//	        backward, gradients travel along with the keys
//	heads   all-to-all of queries, keys and values before attention, and of its result after it (Jacobs et al.,
//	        "DeepSpeed Ulysses", 2023)
func (b *builder) context(l *Layer, q, kv float64) {
	if b.cp == 1 {
		return
	}
	ring := b.p.Context == "ring"
	add := func(f *Function, op ir.Op, columns float64) {
		f.Comms = append(f.Comms, Exchange{Op: op, Bytes: b.size * b.tokens * columns, Axis: "cp", Overlapped: ring})
	}
	if b.p.Context == "heads" {
		for _, f := range []*Function{&l.Forward, &l.Backward} {
			add(f, ir.OpAllToAll, q+2*kv)
			add(f, ir.OpAllToAll, q)
		}
		return
	}
	add(&l.Forward, ir.OpAllGather, 2*kv*b.cp)
	add(&l.Backward, ir.OpAllGather, 2*kv*b.cp)
	add(&l.Backward, ir.OpReduceScatter, 2*kv*b.cp)
	if ring {
		b.stream(&l.Forward, b.tokens, (b.cp+1)*q, b.cp) // merging the partial results
		l.Work += 2 * b.size * b.tokens * 2 * kv         // double-buffered keys and values
		return
	}
	l.Work += b.size * b.tokens * 2 * kv * b.cp
}
