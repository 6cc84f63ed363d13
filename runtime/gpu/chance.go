//go:build cuda && linux

package gpu

import (
	"encoding/binary"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// chance is where the key lies by which a run of parameters is rounded, null for those that are rounded to the nearest.
func (d *device) chance(u *rt.Update) cuda.Pointer {
	if u.Numbers == nil {
		return 0
	}
	return d.step.value(chanceKey)
}

// numbersKey stands for the table of numbers of the run that begins at an element of the flat space.
type numbersKey struct{ first int }

// numbers are those of a run's elements, as cuda/kernels/optimizer.cu reads them; null where nothing asks for them.
func (d *device) numbers(u *rt.Update) cuda.Pointer {
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
