package rank

import (
	"cmp"
	"slices"
)

// part is the byte range [lo, hi) of the arena.
type part struct{ lo, hi int }

// clearedParts returns the parts of the gradient region that no layer of the chunks writes as a whole in the first
// micro-batch, and which must therefore be zeroed. The runtime only adds to buckets that are scattered after each
// micro-batch.
func clearedParts(r *Rank, chunks []*chunk) (out []part) {
	var written []part
	size := r.Program.TensorTypes().Grads.Size()
	for _, c := range chunks {
		for _, l := range c.layers {
			for _, w := range l.seg.FirstWrites {
				if ref := l.refs[w.Ref]; !r.Stage.Buckets[ref.bucket].ShardedGrads {
					lo := ref.grad + w.Offset*size
					written = append(written, part{lo, lo + w.Elems*size})
				}
			}
		}
	}
	slices.SortFunc(written, func(a, b part) int { return cmp.Compare(a.lo, b.lo) })
	g := r.Stage.Arena.Grads
	at := g.Offset
	for _, w := range append(written, part{g.Offset + g.Size, g.Offset + g.Size}) {
		if at < w.lo {
			out = append(out, part{at, w.lo})
		}
		at = max(at, w.hi)
	}
	return out
}

// clearGradients zeroes the gradients that are added to without being written first. The others need no pass over
// memory.
func clearGradients(r *Rank) {
	g := r.Stage.Arena.Grads
	taint(r, g.Offset, g.Size)
	if r.updates != nil && r.updates.stale > 0 { // running updates still read the others; see readyGradients
		for i, b := range r.updates.buckets {
			if b == nil || !b.stale {
				clearBucket(r, i)
			}
		}
		return
	}
	for _, p := range r.exec.cleared {
		zeroBytes(r, p.lo, p.hi-p.lo)
	}
}
