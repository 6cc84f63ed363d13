package rank

import (
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/rng"
	"github.com/planc-dev/planc/runtime/tensors"
)

// roundingKey separates the random bits of stochastic rounding from other uses of the seed.
const roundingKey = 0x726f756e64 // "round"

// RoundingKeyOf returns the key of the random bits of an update's stochastic rounding. The upper 16 bits of number n of
// its stream belong to the model's element n. The key depends on the number of the update, in h, and not on skipped
// steps, so that a resumed run has the same bits.
func RoundingKeyOf(r *Rank, h *Hyper) uint64 { return rng.Key(r.Seed, roundingKey, uint64(h.T)) }

// storeStochastic stores updated parameters of a bucket from element at of the flat space, stochastically rounded to
// bf16. The random bits depend on the update's key and the element's number in the model. Padding, which is zero, has
// no number.
func storeStochastic[F tensors.Float](r *Rank, bucket, at int, x []F) {
	dst, key := tensors.View[num.BF16](&r.Store, r.ParamAt(bucket, at), len(x)), RoundingKeyOf(r, &r.Hyper)
	num.Store(dst, x)
	for i := range r.buckets[bucket].tensors {
		t := &r.buckets[bucket].tensors[i]
		lo, hi := max(at-t.Offset, 0), min(at+len(x)-t.Offset, t.Local)
		if lo >= hi {
			continue
		}
		t.Runs(lo, hi, func(local, logical, n int) {
			from, number := t.Offset+local-at, t.Number+logical
			for j := range n {
				dst[from+j] = num.StochasticRound(float32(x[from+j]), uint16(rng.Bits(key, uint64(number+j))>>48))
			}
		})
	}
}

// updatesOf returns a run of a bucket's part as updates, one per tensor if elements are numbered.
func updatesOf(r *Rank, i int, s tensors.Span) (out []Update) {
	if !r.Program.StochasticRounding {
		return []Update{updateOf(r, i, s)}
	}
	for j := range r.buckets[i].tensors {
		t, cut := &r.buckets[i].tensors[j], s
		cut.Lo, cut.Hi = max(s.Lo, t.Offset), min(s.Hi, t.Offset+t.Local)
		if cut.Lo < cut.Hi {
			u := updateOf(r, i, cut)
			u.Numbers = t.Numbers(cut.Lo - t.Offset)
			out = append(out, u)
		}
	}
	return out
}
