package elem

import "unsafe"

// Float is the constraint of element types.
type Float interface{ ~float32 | ~float64 }

// Size returns the bytes of an F.
func Size[F Float]() uintptr {
	var z F
	return unsafe.Sizeof(z)
}
