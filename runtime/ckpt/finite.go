package ckpt

import (
	"encoding/binary"
	"fmt"
)

// NonfiniteError is a tensor's element that is NaN or infinite, where every element must be a finite number.
type NonfiniteError struct {
	Tensor string // "" if only the elements are known
	Elem   int64  // its index in row-major order
	Value  float64
}

func (e *NonfiniteError) Error() string {
	if e.Tensor == "" {
		return fmt.Sprintf("element %d is %v, which is not a finite number", e.Elem, e.Value)
	}
	return fmt.Sprintf("element %d of tensor %s is %v, which is not a finite number", e.Elem, e.Tensor, e.Value)
}

// Finite returns a *NonfiniteError for the first element that is NaN or infinite.
func Finite[T float32 | float64](x []T) error {
	for i, v := range x {
		if v-v != 0 {
			return &NonfiniteError{Elem: int64(i), Value: float64(v)}
		}
	}
	return nil
}

// finiteScan reads a safetensors file as it is written to it, and finds the first element that is not finite. A file whose
// header breaks the format is not scanned: whoever opens the file refuses it.
type finiteScan struct {
	size    int64 // of the file
	at      int64 // bytes of tensors read so far
	head    []byte
	header  int // bytes of the header with its length; 0 until it is known
	entries []entry
	parsed  bool
	rest    []byte // the first bytes of an element whose others are to come
	err     *NonfiniteError
}

func (s *finiteScan) Write(p []byte) (int, error) {
	n := len(p)
	if !s.parsed {
		if p = s.readHeader(p); !s.parsed {
			return n, nil
		}
	}
	for len(p) > 0 && len(s.entries) > 0 && s.err == nil {
		e := &s.entries[0]
		take := min(int64(len(p)), e.end-s.at)
		s.elements(e, p[:take])
		p, s.at = p[take:], s.at+take
		if s.at == e.end {
			s.entries, s.rest = s.entries[1:], s.rest[:0]
		}
	}
	return n, nil
}

// readHeader takes the header's bytes from p and returns those after it.
func (s *finiteScan) readHeader(p []byte) []byte {
	for !s.parsed {
		want := max(8, s.header)
		n := min(want-len(s.head), len(p))
		s.head, p = append(s.head, p[:n]...), p[n:]
		switch {
		case len(s.head) < want:
			return nil
		case s.header == 0:
			s.header = 8 + int(min(binary.LittleEndian.Uint64(s.head), maxHeader))
		default:
			s.entries, _, _ = parseHeader(s.head[8:], s.size-int64(s.header))
			s.head, s.parsed = nil, true
		}
	}
	return p
}

// elements checks the next bytes of a tensor.
func (s *finiteScan) elements(e *entry, p []byte) {
	infinite := exponents[e.DType]
	if infinite == nil {
		return
	}
	width := int(dtypeBits[e.DType] / 8)
	first := (s.at - int64(len(s.rest)) - e.begin) / int64(width)
	b := append(s.rest, p...)
	whole := len(b) / width * width
	for at := 0; at < whole; at += width {
		if infinite(b[at:]) {
			s.err = &NonfiniteError{e.Name, first + int64(at/width), decoders[e.DType](b[at:])}
			return
		}
	}
	s.rest = append(b[:0], b[whole:]...)
}

// exponents report, for each type of real numbers, whether an element's exponent is that of NaN and infinity.
var exponents = map[DType]func(b []byte) bool{
	F64:  func(b []byte) bool { return binary.LittleEndian.Uint64(b)&(0x7ff<<52) == 0x7ff<<52 },
	F32:  func(b []byte) bool { return binary.LittleEndian.Uint32(b)&(0xff<<23) == 0xff<<23 },
	BF16: func(b []byte) bool { return binary.LittleEndian.Uint16(b)&(0xff<<7) == 0xff<<7 },
	F16:  func(b []byte) bool { return binary.LittleEndian.Uint16(b)&(0x1f<<10) == 0x1f<<10 },
}
