package num

import (
	"fmt"
	"math"
	"testing"
)

// valueOf returns the magnitude of a code, ignoring its sign, by the format's definition.
func valueOf(e FP8Format, code int) float64 {
	exponent, mantissa := code>>e.Mantissa, float64(code&(1<<e.Mantissa-1))/float64(int(1)<<e.Mantissa)
	if exponent == 0 {
		return math.Ldexp(mantissa, e.Least)
	}
	return math.Ldexp(1+mantissa, e.Least-1+exponent)
}

// finite returns the number of codes of finite numbers: all except the last one of E4M3, and except the
// last exponent of E5M2.
func finite(e FP8Format) (n int) {
	if e == E4M3 {
		return 0x7f
	}
	return 0x7c
}

// Every code rounds to itself, numbers between two codes to the nearer one, and the middle to the even
// code.
func TestFP8RoundsEveryCode(t *testing.T) {
	for name, e := range map[string]FP8Format{"e4m3": E4M3, "e5m2": E5M2} {
		if last := valueOf(e, finite(e)-1); last != e.Max {
			t.Errorf("%s: the last code is %v, want %v", name, last, e.Max)
		}
		for code := range finite(e) {
			x := valueOf(e, code)
			want := map[float64]float64{x: x}
			if next := valueOf(e, code+1); code+1 < finite(e) {
				middle := (x + next) / 2
				want[middle], want[math.Nextafter(middle, 0)], want[math.Nextafter(middle, next)] = x, x, next
				if code%2 == 1 {
					want[middle] = next
				}
			}
			for from, to := range want {
				for _, sign := range []float64{1, -1} {
					if got := e.Round(sign * from); got != sign*to || math.Signbit(got) != (sign < 0) {
						t.Errorf("%s: %v is rounded to %v, want %v", name, sign*from, got, sign*to)
					}
				}
			}
		}
		for _, x := range []float64{e.Max * 1.01, 1e30, math.MaxFloat64} {
			if got := e.Round(-x); got != -e.Max {
				t.Errorf("%s: %v is rounded to %v", name, -x, got)
			}
		}
		for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			if got := e.Round(x); got == got {
				t.Errorf("%s: %v is rounded to %v, want NaN", name, x, got)
			}
		}
	}
}

// A scale is the largest power of two that keeps the maximum within the format.
func TestFP8Scale(t *testing.T) {
	for name, e := range map[string]FP8Format{"e4m3": E4M3, "e5m2": E5M2} {
		for _, most := range []float64{1, 1.75, math.Nextafter(1.75, 2), 1.99, 447, 448, 449, 57344, 60000, 3e-5,
			1e30, 0x1p-100} {
			s := e.Scale(most)
			if f, _ := math.Frexp(s); f != 0.5 || most*s > e.Max || most*s*2 <= e.Max {
				t.Errorf("%s: the scale of %v is %v", name, most, s)
			}
		}
		for most, want := range map[float64]float64{0: 1, math.Inf(1): 1, 0x1p-149: 0x1p126,
			math.MaxFloat32: 0x1p-120 * math.Ldexp(1, int(math.Log2(e.Max/448))+0)} {
			if got := e.Scale(most); got != want {
				t.Errorf("%s: the scale of %v is %v, want %v", name, most, got, want)
			}
		}
		if got := e.Scale(math.NaN()); got != 1 {
			t.Errorf("%s: the scale of NaN is %v", name, got)
		}
	}
}

func ExampleFP8Format() {
	s := E4M3.Scale(3.1)
	fmt.Println(s, E4M3.Round(3.1*s)/s, E4M3.Round(0.3*s)/s)
	// Output: 128 3 0.3125
}
