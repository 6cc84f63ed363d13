package tensors

import (
	"encoding/binary"
	"io"
	"math"
	"regexp"
	"slices"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/num"
)

// ExportTypes are the types that an export can have, and their names in config.json.
var ExportTypes = map[string]struct {
	elem ckpt.DType
	name string
}{"bf16": {ckpt.BF16, "bfloat16"}, "fp16": {ckpt.F16, "float16"}, "fp32": {ckpt.F32, "float32"}}

// torchType is the type of the tensors in a config.json.
var torchType = regexp.MustCompile(`("torch_dtype": ?)"float(32|64)"`)

// Exported returns published tensors and their config.json in one of ExportTypes, rounded to nearest. "" leaves their
// type as it is.
func Exported(c ckpt.Content, config, exportType string) (ckpt.Content, []byte) {
	to, ok := ExportTypes[exportType]
	if !ok {
		return c, []byte(config)
	}
	whole, wide := c.Fill, slices.Clone(c.Tensors)
	c.Tensors = slices.Clone(c.Tensors)
	for i := range c.Tensors {
		c.Tensors[i].DType = to.elem
	}
	c.Fill = func(i int, w io.Writer) error {
		if wide[i].DType == to.elem {
			return whole(i, w)
		}
		return whole(i, &narrower{to: w, wide: wide[i].DType, kind: to.elem, tensor: wide[i].Name})
	}
	return c, []byte(torchType.ReplaceAllString(config, `${1}"`+to.name+`"`))
}

// narrower writes the numbers that it is given, of type wide, as kind.
type narrower struct {
	to     io.Writer
	wide   ckpt.DType
	kind   ckpt.DType
	tensor string
	first  int64 // index of the next element
}

// Write takes whole elements, as files have them.
func (n *narrower) Write(b []byte) (int, error) {
	width := 4
	if n.wide == ckpt.F64 {
		width = 8
	}
	var x, back [BlockElems]float64
	var out [4 * BlockElems]byte
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
		bytes := n.round(out[:], back[:k], x[:k])
		for i, v := range back[:k] {
			if !num.Finite(v) {
				return 0, exit.Errorf(exit.Input, "element %d of tensor %s is %v, which is too large for %s: export "+
					"in another type", n.first+int64(i), n.tensor, x[i], n.kind)
			}
		}
		if _, err := n.to.Write(bytes); err != nil {
			return 0, err
		}
		n.first += int64(k)
	}
	return len(b), nil
}

// round rounds numbers to kind. It returns their bytes, and in back their values.
func (n *narrower) round(out []byte, back, x []float64) []byte {
	if n.kind == ckpt.F32 {
		for i, v := range x {
			back[i] = float64(float32(v))
			binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(float32(v)))
		}
		return out[:4*len(x)]
	}
	elem := num.ElemBF16
	if n.kind == ckpt.F16 {
		elem = num.ElemF16
	}
	var bits [BlockElems]uint16
	num.StoreBits(bits[:len(x)], x, elem)
	num.LoadBits(back, bits[:len(x)], elem)
	for i, b := range bits[:len(x)] {
		binary.LittleEndian.PutUint16(out[2*i:], b)
	}
	return out[:2*len(x)]
}
