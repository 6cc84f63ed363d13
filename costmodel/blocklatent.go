package costmodel

import "github.com/planc-dev/planc/ir"

// latent adds what queries, keys and values of latent attention are made by (DeepSeek-AI, "DeepSeek-V2", 2024), as
// Megatron-Core's MLASelfAttention does it: down to narrow streams where sp splits the tokens, each rank of tp with all
// of the weights; their norms; what tp gathers is the streams and not the residual one; and up, split by heads. It
// returns a rank's columns: the mean of queries and results, the mean of keys and values, and those of results.
func (b *builder) latent(l *Layer) (q, kv, out float64) {
	s, h := b.s, float64(b.s.Hidden)
	ql, kvl, shared := float64(s.QLatent), float64(s.KVLatent), float64(s.SharedKey)
	heads := float64(s.Heads) / b.tp
	in, from, near := ql, b.tokens, b.near
	if s.QLatent == 0 { // queries come of the residual stream
		in = h
		b.edge(l, true)
	} else {
		b.product(l, near, ql, h)
	}
	b.product(l, near, kvl+shared, h)
	b.stream(&l.Forward, near, 2*(ql+kvl), 2)
	b.stream(&l.Backward, near, 3*(ql+kvl), 2)
	b.gatherLatents(l, ql+kvl+shared)
	up := len(l.Forward.Ops)
	b.product(l, from, heads*float64(s.HeadDim), in)
	b.product(l, from, heads*float64(s.HeadDim-s.SharedKey+s.ValueDim), kvl)
	if b.upAgain {
		l.Backward.Ops = append(l.Backward.Ops, l.Forward.Ops[up:]...)
	}
	q, out = b.latentWidths()
	return q, q, out
}

// gatherLatents moves the narrow streams between the ranks of tp, which sp splits. Without sp each rank has them whole,
// and their gradients are the sum of what all ranks' heads make; where queries come of the residual stream, theirs is
// an edge's.
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

// latentWidths are a rank's columns of latent attention: the mean of queries and results, which is that of keys and
// values too, and results alone.
func (b *builder) latentWidths() (mean, out float64) {
	heads := float64(b.s.Heads) / b.tp
	return heads * b.headDim(), heads * float64(b.s.ValueDim)
}

// headDim is a head's width: where values have their own, the mean of both.
func (b *builder) headDim() float64 {
	if b.s.ValueDim == 0 {
		return float64(b.s.HeadDim)
	}
	return float64(b.s.HeadDim+b.s.ValueDim) / 2
}

// latentKept is what a block saves of the narrow streams for a token, in elements: before and after their norms.
func (b *builder) latentKept() float64 { return 2 * float64(b.s.QLatent+b.s.KVLatent) }
