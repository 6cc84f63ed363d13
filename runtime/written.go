package runtime

import (
	"cmp"
	"slices"
)

// part is the bytes of the arena from lo to hi-1.
type part struct{ lo, hi int }

// clearedParts lists the parts of the region of gradients that no layer of the chunks writes whole in the first
// micro-batch. Buckets that are scattered after each micro-batch have there only what the runtime adds to.
func (r *Rank) clearedParts(chunks []*chunk) (out []part) {
	var written []part
	size := r.Program.types().Grads.Size()
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

// clearGradients makes those gradients zero that are added to, not written first: the others need no pass over memory.
func (r *Rank) clearGradients() {
	g := r.Stage.Arena.Grads
	r.taint(g.Offset, g.Size)
	if r.updates != nil && r.updates.stale > 0 { // those that an update may still read, before the first backward pass
		for i, b := range r.updates.buckets {
			if b == nil || !b.stale {
				r.clearBucket(i)
			}
		}
		return
	}
	for _, p := range r.exec.cleared {
		r.zero(p.lo, p.hi-p.lo)
	}
}
