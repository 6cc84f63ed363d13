package tensors

import (
	"cmp"
	"slices"

	"github.com/planc-dev/planc/runtime/program"
)

// numberParams returns for each parameter the number of its first element in the whole model, counted layer by layer in
// the order of names, so that it is the same on every plan.
func numberParams(params []program.Param) []int {
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

// Overlapping returns the tensors that are wholly or partly in [lo, hi) of the flat space, in order.
func Overlapping(ts []Tensor, lo, hi int) (out []Tensor) {
	for _, t := range ts {
		if max(lo, t.Offset) < min(hi, t.Offset+t.Local) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b Tensor) int { return a.Offset - b.Offset })
	return out
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

// Numbers returns the numbers of the tensor's local elements from element from.
func (t *Tensor) Numbers(from int) *Numbers {
	out := &Numbers{From: from, First: t.Number}
	stride, whole := 1, true // whole: the last digit's dims are complete
	for i := len(t.dims) - 1; i >= 0; i-- {
		d := &t.dims[i]
		out.First += d.first * stride
		if n := len(out.Digits); n > 0 && whole {
			out.Digits[n-1].Width *= d.pitch
		} else {
			out.Digits = append(out.Digits, Digit{d.pitch, stride})
		}
		whole = d.pitch == d.size
		stride *= d.size
	}
	return out
}
