package costmodel

import "github.com/planc-dev/planc/ir"

// context adds what context parallelism moves around attention, for q and kv columns of a rank's queries and keys. The
// ranks' shares of causal work are even, as zigzag chunks make them.
//
//	gather  keys and values of all ranks are joined, forward and once more in backward, and their gradients summed
//	ring    as much, rank after rank, beside the attention to what is there already;
//	        what each turn gave is merged by the sums of its exponentials (Liu, Zaharia, Abbeel, "Ring Attention", 2023);
//	        backward the gradients travel along with the keys
//	heads   all-to-all of queries, keys and values before, of the result after (Jacobs et al., "DeepSpeed Ulysses", 2023)
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
		b.stream(&l.Forward, b.tokens, (b.cp+1)*q, b.cp) // what the turns gave, merged
		l.Work += 2 * b.size * b.tokens * 2 * kv         // one comes while another is in use
		return
	}
	l.Work += b.size * b.tokens * 2 * kv * b.cp
}
