//go:build cuda && linux

package gpu

import (
	"fmt"
	"unsafe"

	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/num"
)

// Buf is a buffer of N elements in the device's copy of the rank's arena, from byte offset At on.
type Buf[T num.Stored | int32] struct{ At, N int }

// View returns a buffer of n elements from byte offset at of the rank's arena. It panics if the buffer
// exceeds the arena, because then the memory plan is wrong.
func View[T num.Stored | int32](r *rt.Rank, at, n int) Buf[T] {
	b := Buf[T]{at, n}
	if at < 0 || n < 0 || n > 0 && b.end() > r.Stage.Arena.Size {
		panic(fmt.Sprintf("gpu: %d elements at %d exceed the arena of %d bytes", n, at, r.Stage.Arena.Size))
	}
	return b
}

// From returns the buffer without its first i elements.
func (b Buf[T]) From(i int) Buf[T] {
	if i > b.N {
		panic(fmt.Sprintf("gpu: index %[2]d exceeds a buffer of %[1]d elements", b.N, i))
	}
	return Buf[T]{b.At + i*size[T](), b.N - i}
}

func (b Buf[T]) end() int { return b.At + b.N*size[T]() }

// size returns the number of bytes of an element.
func size[T any]() int {
	var z T
	return int(unsafe.Sizeof(z))
}

// suffix returns the suffix of the names of kernels that work on a type: f32, f64, bf16, f16, i32.
func suffix[T num.Stored | int32]() string {
	var z T
	switch any(z).(type) {
	case float32:
		return "f32"
	case float64:
		return "f64"
	case num.BF16:
		return "bf16"
	case num.F16:
		return "f16"
	}
	return "i32"
}
