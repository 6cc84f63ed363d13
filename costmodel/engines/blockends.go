package engines

import (
	"math"

	"github.com/planc-dev/planc/ir"
)

// embed builds the embedding lookup.
func (b *builder) embed() Layer {
	l := Layer{}
	h := float64(b.s.Hidden)
	b.stream(&l.Forward, b.tokens, 3*h, 3)
	b.stream(&l.Weights, b.tokens, 5*h, 2)
	if b.p.TP > 1 {
		op := ir.OpAllReduce
		if b.p.SP {
			op = ir.OpReduceScatter
			l.Backward.Comms = append(l.Backward.Comms, Exchange{Op: ir.OpAllGather, Bytes: b.tokens * h * b.size})
		}
		l.Forward.Comms = append(l.Forward.Comms, Exchange{Op: op, Bytes: b.tokens * h * b.size})
	}
	if b.s.Dropout {
		l.Saved = b.near * h
	}
	return l
}

// head builds the final norm, the logits and the loss. Its matmul is in 16 bits even if those of the blocks are in FP8.
func (b *builder) head() Layer {
	l, plain := Layer{}, *b
	plain.p.Narrow = false
	b = &plain
	h, v := float64(b.s.Hidden), float64(b.s.Vocab)/b.tp
	if n := float64(b.e.PadVocab); n > 0 {
		v = n * math.Ceil(v/n)
	}
	b.stream(&l.Forward, b.near, 2*h, 1)
	b.stream(&l.Backward, b.near, 3*h, 2)
	b.edge(&l, true)
	b.matmul(&l, b.tokens, v, h)
	wide := 4 / b.size // elements of an f32
	forward, backward := 2.0, 2.0
	bytes := b.size
	if b.e.FloatLogits {
		forward, backward = (1+wide)+2*wide+2*wide, 2*wide+(1+wide)
		bytes += 4
		l.Work = bytes * b.tokens * v
	}
	b.stream(&l.Forward, b.tokens, forward*v, 4)
	b.stream(&l.Backward, b.tokens, backward*v, 3)
	l.Saved = b.size*b.near*h + bytes*b.tokens*v
	if b.p.TP > 1 {
		for range 3 { // maximum, sum, the label's logit
			l.Forward.Comms = append(l.Forward.Comms, Exchange{Op: ir.OpAllReduce, Bytes: 4 * b.tokens})
		}
	}
	return l
}
