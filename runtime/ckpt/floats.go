package ckpt

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"unsafe"
)

// chunk is how many elements are converted at a time.
const chunk = 16 << 10

// DTypeOf returns the type of T's elements in a file.
func DTypeOf[T float32 | float64]() DType {
	var z T
	if _, ok := any(z).(float64); ok {
		return F64
	}
	return F32
}

// WriteFloats writes elements of type DTypeOf[T]. All must be finite: a *NonfiniteError names the index in src of the
// first that is not.
func WriteFloats[T float32 | float64](w io.Writer, src []T) error {
	if err := Finite(src); err != nil {
		return err
	}
	if isLittleEndian && len(src) > 0 {
		_, err := w.Write(unsafe.Slice((*byte)(unsafe.Pointer(&src[0])), len(src)*int(unsafe.Sizeof(src[0]))))
		return err
	}
	return binary.Write(w, binary.LittleEndian, src)
}

// isLittleEndian reports whether numbers in memory have the bytes that they have in a file.
var isLittleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// decoders decode one element. A float64 holds every value of these types.
var decoders = map[DType]func(b []byte) float64{
	F64: func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) },
	F32: func(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) },
	BF16: func(b []byte) float64 {
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
	},
	F16: func(b []byte) float64 { return half(binary.LittleEndian.Uint16(b)) },
}

// ReadFloats reads len(dst) elements of a tensor of type d, from element at, and converts them to T. F64 is rounded to
// float32. Types other than F64, F32, BF16 and F16 are an InputError.
func ReadFloats[T float32 | float64](r io.ReaderAt, d DType, at int64, dst []T) error {
	decode, ok := decoders[d]
	if !ok {
		return inputf("elements of type %s cannot be read as numbers; F64, F32, BF16 and F16 can", d)
	}
	width := int(dtypeBits[d] / 8)
	b := make([]byte, width*min(chunk, len(dst)))
	for len(dst) > 0 {
		n := min(chunk, len(dst))
		if _, err := r.ReadAt(b[:n*width], at*int64(width)); err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
		for i := range n {
			dst[i] = T(decode(b[i*width:]))
		}
		dst, at = dst[n:], at+int64(n)
	}
	return nil
}

// half returns the value of an IEEE 754 binary16 number.
func half(h uint16) float64 {
	sign := 1 - 2*float64(h>>15)
	exp, frac := int(h>>10&31), float64(h&1023)
	switch {
	case exp == 31 && frac != 0:
		return math.NaN()
	case exp == 31:
		return math.Inf(int(sign))
	case exp == 0:
		return sign * math.Ldexp(frac, -24)
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}
