package tensors

import (
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/program"
)

// IsNative reports whether numbers of type e are stored as F.
func IsNative[F Float](e program.Elem) bool {
	var z F
	_, wide := any(z).(float64)
	return e == program.F64 && wide || e == program.F32 && !wide
}

// Read converts the numbers of type e at byte offset at of the arena to dst.
func Read[F Float](r *Store, e program.Elem, at int, dst []F) {
	switch n := len(dst); e {
	case program.F32:
		num.Load(dst, View[float32](r, at, n))
	case program.F64:
		num.Load(dst, View[float64](r, at, n))
	case program.BF16:
		num.Load(dst, View[num.BF16](r, at, n))
	case program.F16:
		num.Load(dst, View[num.F16](r, at, n))
	}
}

// Write stores src as numbers of type e at byte offset at of the arena, rounded to nearest.
func Write[F Float](r *Store, e program.Elem, at int, src []F) {
	switch n := len(src); e {
	case program.F32:
		num.Store(View[float32](r, at, n), src)
	case program.F64:
		num.Store(View[float64](r, at, n), src)
	case program.BF16:
		num.Store(View[num.BF16](r, at, n), src)
	case program.F16:
		num.Store(View[num.F16](r, at, n), src)
	}
}

// BlockElems is how many numbers are converted at a time, so that they stay in the L1 cache.
const BlockElems = 2048

// Float is the element type of a program's tensors.
type Float interface{ float32 | float64 }
