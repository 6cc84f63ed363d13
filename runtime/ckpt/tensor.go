package ckpt

import (
	"fmt"
	"math/bits"
)

// DType is the element type of a tensor, as spelled in safetensors.
type DType string

const (
	F64  DType = "F64"
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
	I64  DType = "I64"
	U64  DType = "U64"
	I32  DType = "I32"
	U32  DType = "U32"
	U8   DType = "U8"
)

// dtypeBits is the size in bits of an element of each type in safetensors.
var dtypeBits = map[DType]int64{
	"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
	"BOOL": 8, U8: 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E5M2FNUZ": 8, "F8_E4M3FNUZ": 8,
	"I16": 16, "U16": 16, F16: 16, BF16: 16,
	I32: 32, U32: 32, F32: 32,
	"C64": 64, F64: 64, I64: 64, U64: 64,
}

// Tensor is a logical tensor in a file, with elements in row-major order and little-endian.
type Tensor struct {
	Name  string
	DType DType
	Shape []int64 // empty is a scalar
}

// Elems returns the number of elements.
func (t Tensor) Elems() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Bytes returns the size in a file. The tensor must be valid, as those of a File are.
func (t Tensor) Bytes() int64 {
	n, err := t.bytes()
	if err != nil {
		panic("ckpt: " + err.Error())
	}
	return n
}

// bytes returns the size, or an error if the tensor is not valid.
func (t Tensor) bytes() (int64, error) {
	width, ok := dtypeBits[t.DType]
	if !ok {
		return 0, fmt.Errorf("tensor %q has the unknown type %q", t.Name, t.DType)
	}
	n := uint64(width)
	for _, d := range t.Shape {
		if d < 0 {
			return 0, fmt.Errorf("tensor %q has the negative dimension %d", t.Name, d)
		}
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > 1<<62 {
			return 0, fmt.Errorf("tensor %q has too many elements: shape %v", t.Name, t.Shape)
		}
		n = lo
	}
	if n%8 != 0 {
		return 0, fmt.Errorf("tensor %q of %d bits does not end at a byte", t.Name, n)
	}
	return int64(n / 8), nil
}
