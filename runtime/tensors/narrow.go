package tensors

import (
	"encoding/binary"
	"io"
	"math"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/program"
)

// PublishedAs is Published with elements of a 16-bit type, BF16 or F16, rounded to nearest.
func (s *Stores) PublishedAs(to ckpt.DType) ckpt.Content {
	c := s.Published()
	whole := c.Fill
	for i := range c.Tensors {
		c.Tensors[i].DType = to
	}
	wide := ckpt.F32
	if s.program().Elem == program.F64 {
		wide = ckpt.F64
	}
	c.Fill = func(i int, w io.Writer) error {
		return whole(i, &narrower{to: w, wide: wide, kind: to, tensor: c.Tensors[i].Name})
	}
	return c
}

// narrower writes the numbers that it is given, of type wide, in 16 bits.
type narrower struct {
	to     io.Writer
	wide   ckpt.DType
	kind   ckpt.DType
	tensor string
	first  int64 // index of the next element
}

// Write takes whole elements, as files have them.
func (n *narrower) Write(b []byte) (int, error) {
	elem, width := num.ElemBF16, 4
	if n.kind == ckpt.F16 {
		elem = num.ElemF16
	}
	if n.wide == ckpt.F64 {
		width = 8
	}
	var x, back [BlockElems]float64
	var bits [BlockElems]uint16
	for at := 0; at < len(b); at += BlockElems * width {
		part := b[at:min(at+BlockElems*width, len(b))]
		k := len(part) / width
		for i := range k {
			if width == 8 {
				x[i] = math.Float64frombits(binary.LittleEndian.Uint64(part[8*i:]))
			} else {
				x[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(part[4*i:])))
			}
		}
		num.StoreBits(bits[:k], x[:k], elem)
		num.LoadBits(back[:k], bits[:k], elem)
		for i, v := range back[:k] {
			if !num.Finite(v) {
				return 0, exit.Errorf(exit.Input, "element %d of tensor %s is %v, which is too large for %s: export "+
					"in another type", n.first+int64(i), n.tensor, x[i], n.kind)
			}
		}
		if err := binary.Write(n.to, binary.LittleEndian, bits[:k]); err != nil {
			return 0, err
		}
		n.first += int64(k)
	}
	return len(b), nil
}
