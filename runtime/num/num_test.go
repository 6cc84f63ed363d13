package num

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// format is a binary format by its definition: bits of the fraction, the smallest exponent of a normal
// number, and the largest.
type format struct {
	name     string
	fraction uint
	low, top int
	wide     func(uint16) float32
	round    func(float32) uint16
}

var formats = []format{
	{"bf16", 7, -126, 127, func(b uint16) float32 {
		return BF16{b}.Wide()
	}, func(x float32) uint16 {
		return ToBF16(x).Bits
	}},
	{"f16", 10, -14, 15, func(b uint16) float32 {
		return F16{b}.Wide()
	}, func(x float32) uint16 {
		return ToF16(x).Bits
	}},
}

// value returns the value of the bits, from sign, exponent and fraction.
func (f format) value(b uint16) float64 {
	sign := 1 - 2*float64(b>>15)
	exp, frac := int(b&0x7fff>>f.fraction), float64(b&(1<<f.fraction-1))
	switch {
	case exp == f.top-f.low+2 && frac != 0:
		return math.NaN()
	case exp == f.top-f.low+2:
		return math.Inf(int(sign))
	case exp == 0:
		return sign * math.Ldexp(frac, f.low-int(f.fraction))
	}
	return sign * math.Ldexp(frac+float64(int(1)<<f.fraction), exp-1+f.low-int(f.fraction))
}

// Each of the 65536 patterns has the value that its format defines, and rounds to itself. NaN stays NaN.
func TestEveryPattern(t *testing.T) {
	for _, f := range formats {
		for b := range 1 << 16 {
			want, got := f.value(uint16(b)), float64(f.wide(uint16(b)))
			back := f.round(float32(got))
			if math.IsNaN(want) {
				if !math.IsNaN(got) || !math.IsNaN(f.value(back)) {
					t.Fatalf("%s %#04x is NaN and reads %v, which rounds to %#04x", f.name, b, got, back)
				}
				continue
			}
			if got != want || math.Signbit(got) != math.Signbit(want) || back != uint16(b) {
				t.Fatalf("%s %#04x is %v and reads %v, which rounds to %#04x", f.name, b, want, got, back)
			}
		}
	}
}

// Stochastic rounding gives one of the neighbours, and on average the number itself: the mean of n lies
// within five standard deviations, those of a coin with the probability of rounding up, times the distance
// of the neighbours.
func TestStochasticRound(t *testing.T) {
	const n = 1 << 16
	r := rand.New(rand.NewPCG(1, 2))
	for _, x := range []float32{1, 1 + 0x1p-9, -1 - 0x1p-8, 1 + 0x1.9p-8, -3e-3, 0.1, 1e30, 0x1.1p-127, -0x1p-149,
		0x1.fefefep127} {
		low := BF16{uint16(math.Float32bits(x) >> 16)}
		down, up := float64(low.Wide()), float64(BF16{low.Bits + 1}.Wide())
		mean := 0.0
		for range n {
			y := float64(StochasticRound(x, uint16(r.Uint32())).Wide())
			if y != down && y != up {
				t.Fatalf("%v became %v, which is not a neighbor", x, y)
			}
			mean += y / n
		}
		share := (float64(x) - down) / (up - down)
		if off := math.Abs(mean - float64(x)); off > 5*math.Abs(up-down)*math.Sqrt(share*(1-share)/n)+
			1e-12*math.Abs(up) {
			t.Errorf("%v is %v on average", x, mean)
		}
	}
	for b := range 1 << 16 { // exactly representable numbers are unchanged
		x := BF16{uint16(b)}.Wide()
		if got := StochasticRound(x, 0xffff).Wide(); got != x && (x == x || got == got) {
			t.Errorf("%v became %v", x, got)
		}
	}
	if got := StochasticRound(0, 0xffff); got.Bits != 0 {
		t.Errorf("0 became %v", got.Wide())
	}
}

// nearest rounds x with math/big to the format's number of bits at x's exponent: to nearest, ties to even.
func (f format) nearest(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) {
		return x
	}
	_, exp := math.Frexp(x) // x = m·2^exp, m from 1/2
	bits := int(f.fraction) + 1
	if exp-1 < f.low {
		bits -= f.low - (exp - 1)
	}
	unit := math.Ldexp(1, f.low-int(f.fraction))
	if bits < 1 { // below the smallest subnormal: zero, or that
		if math.Abs(x) > unit/2 {
			return math.Copysign(unit, x)
		}
		return math.Copysign(0, x)
	}
	y, _ := new(big.Float).SetMode(big.ToNearestEven).SetPrec(uint(bits)).SetFloat64(x).Float64()
	if math.Abs(y) >= math.Ldexp(1, f.top+1) {
		return math.Inf(int(math.Copysign(1, x)))
	}
	return y
}

// Rounding is to nearest, ties to even: at every pattern, half way to the next, slightly to both sides of
// that, and at random.
func TestNearestEven(t *testing.T) {
	for _, f := range formats {
		check := func(x float32) {
			if x != x {
				return
			}
			if got, want := f.value(f.round(x)), f.nearest(float64(x)); got != want ||
				math.Signbit(got) != math.Signbit(want) {
				t.Fatalf("%s: %g (%#08x) rounds to %g, want %g", f.name, x, math.Float32bits(x), got, want)
			}
		}
		for b := range 1 << 15 {
			at, next := f.value(uint16(b)), f.value(uint16(b+1))
			if math.IsInf(next, 1) { // the tie that becomes infinite
				next = math.Ldexp(1, f.top+1)
			}
			half := float32((at + next) / 2)
			for _, x := range []float32{half, math.Nextafter32(half, 0), math.Nextafter32(half, math.MaxFloat32)} {
				check(x)
				check(-x)
			}
		}
		r := rand.New(rand.NewPCG(1, 2))
		for range 1 << 20 {
			check(math.Float32frombits(r.Uint32()))
		}
	}
}

// Slices convert like single elements, between all types.
func TestSlices(t *testing.T) {
	src := []float32{1, -2.5, 1e-7, 70000, 0.1}
	b, h, d := make([]BF16, len(src)), make([]F16, len(src)), make([]float64, len(src))
	Store(b, src)
	Store(h, src)
	Store(d, src)
	for i, x := range src {
		if b[i] != ToBF16(x) || h[i] != ToF16(x) || d[i] != float64(x) {
			t.Errorf("%g became %v, %v, %v", x, b[i].Wide(), h[i].Wide(), d[i])
		}
	}
	var f [5]float32
	for _, load := range []func(){func() { Load(f[:], b) }, func() { Store(f[:], f[:]) }} {
		load()
		for i := range f {
			if f[i] != RoundBF16(src[i]) {
				t.Errorf("%g came back as %g", src[i], f[i])
			}
		}
	}
	Load(f[:], h)
	if f[3] != float32(math.Inf(1)) || f[4] != RoundF16(0.1) {
		t.Errorf("f16 came back as %v", f)
	}
}
