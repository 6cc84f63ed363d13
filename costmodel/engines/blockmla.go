package engines

import "github.com/planc-dev/planc/ir"

// mla adds the projections of MLA's queries, keys and values (DeepSeek-AI, "DeepSeek-V2", 2024), in the way of
// Megatron-Core's MLASelfAttention. The down-projections run on the tokens that sp shards, with replicated weights on
// each rank of tp, followed by the norms. tp then gathers the latent vectors instead of the residual stream. The
// up-projections are sharded by heads. It returns a rank's columns: the mean of queries and results, the mean of keys
// and values, and results.
func (b *builder) mla(l *Layer) (q, kv, out float64) {
	s, h := b.s, float64(b.s.Hidden)
	ql, kvl, shared := float64(s.QLatent), float64(s.KVLatent), float64(s.SharedKey)
	heads := float64(s.Heads) / b.tp
	in, from, near := ql, b.tokens, b.near
	if s.QLatent == 0 { // queries are projected from the residual stream
		in = h
		b.edge(l, true)
	} else {
		b.matmul(l, near, ql, h)
	}
	b.matmul(l, near, kvl+shared, h)
	b.stream(&l.Forward, near, 2*(ql+kvl), 2)
	b.stream(&l.Backward, near, 3*(ql+kvl), 2)
	b.gatherLatents(l, ql+kvl+shared)
	up := len(l.Forward.Ops)
	b.matmul(l, from, heads*float64(s.HeadDim), in)
	b.matmul(l, from, heads*float64(s.HeadDim-s.SharedKey+s.ValueDim), kvl)
	if b.recomputesUp {
		l.Backward.Ops = append(l.Backward.Ops, l.Forward.Ops[up:]...)
	}
	q, out = b.mlaWidths()
	return q, q, out
}

// gatherLatents adds the collectives of the latent vectors over tp, which sp shards. Without sp each rank has them
// whole, and their gradients are reduced over the ranks' heads. If queries are projected from the residual stream, edge
// adds the collective of theirs.
func (b *builder) gatherLatents(l *Layer, columns float64) {
	bytes := b.size * b.tokens * columns
	if !b.p.SP {
		if b.p.TP > 1 {
			l.Backward.Comms = append(l.Backward.Comms, Exchange{Op: ir.OpAllReduce, Bytes: bytes})
		}
		return
	}
	l.Forward.Comms = append(l.Forward.Comms, Exchange{Op: ir.OpAllGather, Bytes: bytes})
	l.Backward.Comms = append(l.Backward.Comms, Exchange{Op: ir.OpReduceScatter, Bytes: bytes})
}

// mlaWidths returns a rank's columns in MLA: the mean of queries and results, which is also the mean of keys and
// values, and the columns of results.
func (b *builder) mlaWidths() (mean, out float64) {
	heads := float64(b.s.Heads) / b.tp
	return heads * b.headDim(), heads * float64(b.s.ValueDim)
}

// headDim returns the width of a head; if values have their own width, the mean of both.
func (b *builder) headDim() float64 {
	if b.s.ValueDim == 0 {
		return float64(b.s.HeadDim)
	}
	return float64(b.s.HeadDim+b.s.ValueDim) / 2
}

// mlaSaved returns the elements per token that a block saves of the latent vectors: before and after their norms.
func (b *builder) mlaSaved() float64 { return 2 * float64(b.s.QLatent+b.s.KVLatent) }
