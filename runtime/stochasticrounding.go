package runtime

import (
	"cmp"
	"slices"

	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/rng"
)

// roundingKey separates the random bits of stochastic rounding from other uses of the seed.
const roundingKey = 0x726f756e64 // "round"

// RoundingKey returns the key of the random bits of an update's stochastic rounding. The upper 16 bits of number n of
// its stream belong to the model's element n. The key depends on the number of the update, in h, and not on skipped
// steps, so that a resumed run has the same bits.
func RoundingKey(r *Rank, h *Hyper) uint64 { return rng.Key(r.Seed, roundingKey, uint64(h.T)) }

// numbered returns for each parameter the number of its first element in the whole model, counted layer by layer in the
// order of names, so that it is the same on every plan.
func numbered(params []Param) []int {
	order := make([]int, len(params))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(params[a].Name, params[b].Name) })
	first, n := make([]int, len(params)), 0
	for _, i := range order {
		first[i] = n
		elems := params[i].Layers
		for _, d := range params[i].Dims {
			elems *= d.Size
		}
		n += elems
	}
	return first
}

// overlapping returns the tensors that are wholly or partly in [lo, hi) of the flat space, in order.
func overlapping(ts []tensor, lo, hi int) (out []tensor) {
	for _, t := range ts {
		if max(lo, t.offset) < min(hi, t.offset+t.local) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b tensor) int { return a.offset - b.offset })
	return out
}

// storeStochastic stores updated parameters of a bucket from element at of the flat space, stochastically rounded to
// bf16. The random bits depend on the update's key and the element's number in the model. Padding, which is zero, has
// no number.
func storeStochastic[F Float](r *Rank, bucket, at int, x []F) {
	dst, key := View[num.BF16](r, r.paramAt(bucket, at), len(x)), RoundingKey(r, &r.Hyper)
	num.Store(dst, x)
	for i := range r.buckets[bucket].tensors {
		t := &r.buckets[bucket].tensors[i]
		lo, hi := max(at-t.offset, 0), min(at+len(x)-t.offset, t.local)
		if lo >= hi {
			continue
		}
		t.runs(lo, hi, func(local, logical, n int) {
			from, number := t.offset+local-at, t.number+logical
			for j := range n {
				dst[from+j] = num.StochasticRound(float32(x[from+j]), uint16(rng.Bits(key, uint64(number+j))>>48))
			}
		})
	}
}

// Numbers maps the elements of a run to their numbers in the model, as RoundingKey counts them. Element i has number
// First + Σ digit·Stride, where the digits are those of From+i in a mixed-radix system with bases Width, the first
// varying fastest.
type Numbers struct {
	From, First int
	Digits      []Digit
}

// Digit is one dim of a tensor, or several dims that are contiguous both locally and in the logical tensor.
type Digit struct{ Width, Stride int }

// numbers returns the numbers of the tensor's local elements from element from.
func (t *tensor) numbers(from int) *Numbers {
	out := &Numbers{From: from, First: t.number}
	stride, whole := 1, true // whole: the last digit's dims are complete
	for i := len(t.dims) - 1; i >= 0; i-- {
		d := &t.dims[i]
		out.First += d.first * stride
		if n := len(out.Digits); n > 0 && whole {
			out.Digits[n-1].Width *= d.width
		} else {
			out.Digits = append(out.Digits, Digit{d.width, stride})
		}
		whole = d.width == d.size
		stride *= d.size
	}
	return out
}

// updatesOf returns a run of a bucket's part as updates, one per tensor if elements are numbered.
func (r *Rank) updatesOf(i int, s span) (out []Update) {
	if !r.Program.StochasticRounding {
		return []Update{r.update(i, s)}
	}
	for j := range r.buckets[i].tensors {
		t, cut := &r.buckets[i].tensors[j], s
		cut.lo, cut.hi = max(s.lo, t.offset), min(s.hi, t.offset+t.local)
		if cut.lo < cut.hi {
			u := r.update(i, cut)
			u.Numbers = t.numbers(cut.lo - t.offset)
			out = append(out, u)
		}
	}
	return out
}
