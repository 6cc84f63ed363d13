package runtime

import (
	"cmp"
	"slices"

	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/rng"
)

// roundingKey sets the bits by which parameters are rounded apart from the other uses of the seed.
const roundingKey = 0x726f756e64 // "round"

// RoundingKey is the key of the bits by which the step's update rounds parameters by chance: upper 16 bits of number n
// of its stream are those of the model's element n. It is the update's, whatever steps were skipped, so that a run that
// continues has it too. h says which update it is.
func RoundingKey(r *Rank, h *Hyper) uint64 { return rng.Key(r.Seed, roundingKey, uint64(h.T)) }

// numbered is, for each of the parameters, the number of its first element among all of the model's: layer by layer, in
// the order of names, so that it is the same on every plan.
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

// overlapping are the tensors that lie in [lo, hi) of the flat space, or parts of which do, in order.
func overlapping(ts []tensor, lo, hi int) (out []tensor) {
	for _, t := range ts {
		if max(lo, t.offset) < min(hi, t.offset+t.local) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b tensor) int { return a.offset - b.offset })
	return out
}

// storeStochastic stores updated parameters of a bucket from element at of the flat space on, each rounded to one of
// its two neighbours in bf16 by the bits that the update's key and its number in the model give. Padding, which is
// zero, has no number.
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

// Numbers say which of the model's elements those of a run are, by [RoundingKey]'s count: element i is number First + Σ
// digit·Stride, where the digits are those of From+i in a system whose bases are the Widths, the first varying fastest.
type Numbers struct {
	From, First int
	Digits      []Digit
}

// Digit is one dim of a tensor, or several that lie in one run here and in the whole.
type Digit struct{ Width, Stride int }

// numbers are those of the tensor's local elements from one on.
func (t *tensor) numbers(from int) *Numbers {
	out := &Numbers{From: from, First: t.number}
	stride, whole := 1, true // whether the dims so far lie whole in the last digit
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

// updatesOf are a run of a bucket's part, cut where another tensor begins if elements are numbered.
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
