package ckpt

import (
	"encoding/binary"
	"fmt"
)

// NonfiniteError reports an element of a tensor that is NaN or infinite although it must be finite.
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

// finiteScan parses a safetensors file that is written to it, and finds the first element that is not finite. It
// ignores a file whose header violates the format, because opening the file fails anyway.
type finiteScan struct {
	size    int64 // of the file
	at      int64 // bytes of tensors read so far
	head    []byte
	header  int // bytes of the header including its length; 0 until known
	entries []entry
	parsed  bool
	rest    []byte // first bytes of an incomplete element
	err     *NonfiniteError
}

func (s *finiteScan) Write(p []byte) (int, error) {
	n := len(p)
	if !s.parsed {
		p = s.readHeader(p)
		if !s.parsed {
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

// readHeader consumes the header's bytes from p and returns the rest.
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
			if entries, _, err := parseHeader(s.head[8:], s.size-int64(s.header)); err == nil {
				s.entries = entries
			}
			s.head, s.parsed = nil, true
		}
	}
	return p
}

// elements checks the next bytes of a tensor.
func (s *finiteScan) elements(e *entry, p []byte) {
	find := nonfinite[e.DType]
	if find == nil {
		return
	}
	width := int(dtypeBits[e.DType] / 8)
	first := (s.at - int64(len(s.rest)) - e.begin) / int64(width)
	b := append(s.rest, p...)
	whole := len(b) / width * width
	if at := find(b[:whole]); at >= 0 {
		s.err = &NonfiniteError{e.Name, first + int64(at/width), decoders[e.DType](b[at:])}
		return
	}
	s.rest = append(b[:0], b[whole:]...)
}

// nonfinite returns, per floating-point type, the offset of the first element with the exponent of NaN and infinity; -1
// if there is none.
var nonfinite = map[DType]func(b []byte) int{
	F64: func(b []byte) int {
		const exponent = 0x7ff << 52
		for at := 0; at+8 <= len(b); at += 8 {
			if binary.LittleEndian.Uint64(b[at:])&exponent == exponent {
				return at
			}
		}
		return -1
	},
	F32: func(b []byte) int {
		const exponent = 0xff << 23
		for at := 0; at+4 <= len(b); at += 4 {
			if binary.LittleEndian.Uint32(b[at:])&exponent == exponent {
				return at
			}
		}
		return -1
	},
	BF16: func(b []byte) int { return nonfinite16(b, 0xff<<7) },
	F16:  func(b []byte) int { return nonfinite16(b, 0x1f<<10) },
}

func nonfinite16(b []byte, exponent uint16) int {
	for at := 0; at+2 <= len(b); at += 2 {
		if binary.LittleEndian.Uint16(b[at:])&exponent == exponent {
			return at
		}
	}
	return -1
}
