package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/num"
)

var formats = []num.FP8Format{num.E4M3, num.E5M2}

// codeValue returns the number of a code, by the definition of the formats.
func codeValue(e num.FP8Format, code byte) float64 {
	exponent, mantissa := int(code&0x7f)>>e.Mantissa, float64(int(code)&(1<<e.Mantissa-1))/float64(int(1)<<e.Mantissa)
	x := math.Ldexp(1+mantissa, e.Least-1+exponent)
	switch {
	case exponent == 0:
		x = math.Ldexp(mantissa, e.Least)
	case code&0x7f == 0x7f:
		x = math.NaN()
	}
	if code >= 0x80 {
		return -x
	}
	return x
}

// drawWide returns n numbers whose magnitudes differ by many powers of two, and the numbers of more.
func (b bench) drawWide(n int, seed uint64, largest float64, more ...float64) []float64 {
	r := rand.New(rand.NewPCG(seed, 2))
	v := make([]float64, n)
	for i := range v {
		v[i] = (r.Float64()*2 - 1) * largest * math.Exp2(-r.Float64()*24)
	}
	copy(v[n/2:], more)
	return b.values(b.buffer(v))
}

// fp8Cases lists absolute maxima, and other numbers in the tensor.
var fp8Cases = []struct {
	largest float64
	more    []float64
}{{1, nil}, {1.75, []float64{-1.75}}, {1.76, []float64{1.7578125}}, {3e30, nil}, {1e-38, nil}, {0, nil},
	{5, []float64{math.NaN()}}, {600, []float64{math.Inf(-1), 500}}}

// Codes and rounded numbers equal those of cpu.MatMul8, for rows as stored or transposed, in one group or
// more.
func TestFP8(t *testing.T) {
	inEachType(t, "fp8_quantize", func(b bench) {
		a := b.computed()
		for i, s := range [][3]int{{1, 1, 1}, {1, 5, 33}, {3, 7, 40}, {2, 64, 64}, {1, 130, 72}, {2, 65, 129},
			{1, 16, 300}} {
			groups, rows, cols := s[0], s[1], s[2]
			for format, e := range formats {
				for transposed := range 2 {
					c := fp8Cases[(i+format*3+transposed*5)%len(fp8Cases)]
					b.quantize(a, fmt.Sprint("fp8", s, format, transposed), c.largest, c.more, e, format, groups, rows,
						cols, transposed)
				}
			}
		}
		for format, e := range formats {
			for i, c := range fp8Cases {
				b.quantize(a, fmt.Sprint("fp8 of ", c, format), c.largest, c.more, e, format, 1, 9, 24, i%2)
			}
		}
	})
}

func (b bench) quantize(a elem, what string, largest float64, more []float64, e num.FP8Format,
	format, groups, rows, cols, transposed int) {
	b.Helper()
	n := groups * rows * cols
	v := b.drawWide(n, uint64(n), largest, more...)
	want := slices.Clone(v)
	cpu.Table[float64]().MatMul8(nil, want, nil, 0, 0, 0, 0, false, false, false, e, e)
	x, parts := b.buffer(v), Blocks(n)
	x.Skew = rows % 3 * b.size
	part := a.buffer(nans(parts))
	b.run("fp8_absmax", 1, n, part, x, int64(n))

	magnitude := 0.0
	for _, v := range v {
		magnitude = max(magnitude, math.Abs(v))
	}
	width := (cols + 15) / 16 * 16
	y, scale := ints(make([]int32, groups*rows*width/4)), a.buffer(nans(1))
	b.run("fp8_quantize", groups*rows, width, y, x, part, scale, parts, groups, rows, cols, width, transposed, format)
	back := 1 / e.Scale(magnitude)
	if got := a.values(scale)[0]; got != back {
		b.Errorf("%s: the scale's inverse is %v, want %v", what, got, back)
	}
	faults := 0
	for i, code := range y.Bytes {
		g, r, c := i/(rows*width), i/width%rows, i%width
		w := 0.0
		if c < cols {
			w = want[(g*rows+r)*cols+c]
			if transposed == 1 {
				w = want[(g*cols+c)*rows+r]
			}
		}
		if got := codeValue(e, code) * back; got != w && (got == got || w == w) {
			b.Errorf("%s: code %d,%d,%d is %v, want %v", what, g, r, c, got, w)
			if faults == 3 {
				break
			}
			faults++
		}
	}
	rounded := b.buffer(nans(n))
	b.run("fp8_round", 1, n, rounded, x, part, parts, int64(n), format)
	for i, got := range b.values(rounded) {
		if w := want[i]; got != w && (got == got || w == w) && math.Abs(w) > 0x1p-130 {
			b.Fatalf("%s: number %d is rounded to %v, want %v", what, i, got, w)
		}
	}
}
