//go:build cuda && linux

package gpu

import (
	"encoding/binary"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// roundingKey returns the address of the key for stochastic rounding of the parameters. It is null for
// parameters that are rounded to nearest.
func (d *device) roundingKey(u *rt.Update) cuda.Pointer {
	if u.Numbers == nil {
		return 0
	}
	return d.step.value(roundingKey)
}

// numbersKey identifies the table of element numbers of the parameters that start at an element of the flat
// space.
type numbersKey struct{ first int }

// elementNumbers returns the address of the numbers of the elements, in the layout that
// cuda/kernels/optimizer.cu reads. It is null if they are not needed.
func (d *device) elementNumbers(u *rt.Update) cuda.Pointer {
	if u.Numbers == nil {
		return 0
	}
	return d.constant(numbersKey{u.First}, func() (b []byte) {
		words := []int{u.Numbers.From, u.Numbers.First, len(u.Numbers.Digits)}
		for _, digit := range u.Numbers.Digits {
			words = append(words, digit.Width, digit.Stride)
		}
		for _, w := range words {
			b = binary.NativeEndian.AppendUint64(b, uint64(w))
		}
		return b
	})
}
