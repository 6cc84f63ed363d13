package num

import (
	"unsafe"

	"github.com/planc-dev/planc/runtime/vec"
)

// bits returns the bit patterns of 16-bit numbers.
func bits[H Half](x []H) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// Load sets dst[i] = src[i]. A float64 is rounded if dst is float32.
func Load[F float32 | float64, S Stored](dst []F, src []S) {
	dst = dst[:len(src)]
	switch src := any(src).(type) {
	case []F:
		copy(dst, src)
	case []float32:
		for i, x := range src {
			dst[i] = F(x)
		}
	case []float64:
		for i, x := range src {
			dst[i] = F(x)
		}
	case []BF16:
		done := 0
		if dst, ok := any(dst).([]float32); ok {
			done = vec.WidenBF16(dst[:len(src)], bits(src))
		}
		for i := done; i < len(src); i++ {
			dst[i] = F(src[i].Wide())
		}
	case []F16:
		done := 0
		if dst, ok := any(dst).([]float32); ok {
			done = vec.WidenF16(dst[:len(src)], bits(src))
		}
		for i := done; i < len(src); i++ {
			dst[i] = F(src[i].Wide())
		}
	}
}

// Store sets dst[i] to src[i], rounded to its type. A float64 is rounded to float32 before it is rounded to
// a 16-bit type.
func Store[S Stored, F float32 | float64](dst []S, src []F) {
	dst = dst[:len(src)]
	switch dst := any(dst).(type) {
	case []F:
		copy(dst, src)
	case []float32:
		for i, x := range src {
			dst[i] = float32(x)
		}
	case []float64:
		for i, x := range src {
			dst[i] = float64(x)
		}
	case []BF16:
		done := 0
		if src, ok := any(src).([]float32); ok {
			done = vec.NarrowBF16(bits(dst)[:len(src)], src)
		}
		for i := done; i < len(src); i++ {
			dst[i] = ToBF16(float32(src[i]))
		}
	case []F16:
		done := 0
		if src, ok := any(src).([]float32); ok {
			done = vec.NarrowF16(bits(dst)[:len(src)], src)
		}
		for i := done; i < len(src); i++ {
			dst[i] = ToF16(float32(src[i]))
		}
	}
}

// Convert sets dst[i] to src[i], rounded to its type, through float32 if the types differ.
func Convert[D, S Stored](dst []D, src []S) {
	if same, ok := any(src).([]D); ok {
		copy(dst, same)
		return
	}
	var wide [256]float32
	for len(src) > 0 {
		n := min(len(src), len(wide))
		Load(wide[:], src[:n])
		Store(dst[:n], wide[:n])
		dst, src = dst[n:], src[n:]
	}
}

// Elem names a storage type in tables.
type Elem uint8

const (
	Native   Elem = iota // the compute type
	ElemBF16             // BF16
	ElemF16              // F16
)

// halves converts bit patterns to 16-bit numbers.
func halves[H Half](x []uint16) []H {
	return unsafe.Slice((*H)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// LoadBits is Load from 16-bit patterns.
func LoadBits[F float32 | float64](dst []F, src []uint16, e Elem) {
	if e == ElemBF16 {
		Load(dst, halves[BF16](src))
	} else {
		Load(dst, halves[F16](src))
	}
}

// StoreBits is Store to 16-bit patterns.
func StoreBits[F float32 | float64](dst []uint16, src []F, e Elem) {
	if e == ElemBF16 {
		Store(halves[BF16](dst), src)
	} else {
		Store(halves[F16](dst), src)
	}
}

// Round rounds x to the values of e, in place.
func Round[F float32 | float64](x []F, e Elem) {
	var b [256]uint16
	for e != Native && len(x) > 0 {
		n := min(len(x), len(b))
		StoreBits(b[:n], x[:n], e)
		LoadBits(x[:n], b[:n], e)
		x = x[n:]
	}
}
