package cpu

import (
	"math"
	"testing"
)

const eps = 1e-5

// naiveNorm computes layer norm, or RMS norm if not centred, in float64.
func naiveNorm(x, gain, bias []float64, cols int, centred bool) []float64 {
	y := make([]float64, len(x))
	for at := 0; at < len(x); at += cols {
		row, mean, square := x[at:at+cols], 0.0, 0.0
		for _, v := range row {
			if centred {
				mean += v / float64(cols)
			}
		}
		for _, v := range row {
			square += (v - mean) * (v - mean) / float64(cols)
		}
		for j, v := range row {
			y[at+j] = (v - mean) / math.Sqrt(square+eps) * gain[j]
			if bias != nil {
				y[at+j] += bias[j]
			}
		}
	}
	return y
}

// unit returns 1 + gain.
func unit(gain []float64) []float64 {
	g := make([]float64, len(gain))
	for j := range g {
		g[j] = 1 + gain[j]
	}
	return g
}

func TestNorm(t *testing.T) { both(t, testNorm[float32], testNorm[float64]) }

func testNorm[F Float](t *testing.T, tol float64) {
	k := Table[F]()
	for _, z := range shapes {
		rows, cols := z[0], z[1]
		x, gain, bias, y := draw[F](1, rows*cols), draw[F](2, cols), draw[F](3, cols), make([]F, rows*cols)
		k.LayerNorm(y, x, gain, bias, rows, cols, eps)
		near(t, name("layer norm ", z), y, naiveNorm(wide(x), wide(gain), wide(bias), cols, true), tol)
		k.LayerNorm(y, x, gain, nil, rows, cols, eps)
		near(t, name("layer norm, no bias ", z), y, naiveNorm(wide(x), wide(gain), nil, cols, true), tol)
		k.RMSNorm(y, x, gain, rows, cols, eps, false)
		near(t, name("rms norm ", z), y, naiveNorm(wide(x), wide(gain), nil, cols, false), tol)
		k.RMSNorm(y, x, gain, rows, cols, eps, true)
		near(t, name("unit rms norm ", z), y, naiveNorm(wide(x), unit(wide(gain)), nil, cols, false), tol)
		copy(y, x)
		k.RMSNorm(y, y, gain, rows, cols, eps, false)
		near(t, name("rms norm in place ", z), y, naiveNorm(wide(x), wide(gain), nil, cols, false), tol)
		testGainGrad(t, rows, cols, tol, x)
	}
}

func testGainGrad[F Float](t *testing.T, rows, cols int, tol float64, x []F) {
	k := Table[F]()
	dy, one := draw[F](4, rows*cols), make([]float64, cols)
	for j := range one {
		one[j] = 1
	}
	for _, acc := range accs {
		l, r := draw[F](5, cols), draw[F](6, cols)
		wantL, wantR := start(l, acc), start(r, acc)
		hatL, hatR := naiveNorm(wide(x), one, nil, cols, true), naiveNorm(wide(x), one, nil, cols, false)
		for i, v := range dy {
			wantL[i%cols] += float64(v) * hatL[i]
			wantR[i%cols] += float64(v) * hatR[i]
		}
		k.LayerNormDGain(l, dy, x, rows, cols, eps, acc)
		near(t, name("layer norm dgain ", rows, cols, acc), l, wantL, tol)
		k.RMSNormDGain(r, dy, x, rows, cols, eps, acc)
		near(t, name("rms norm dgain ", rows, cols, acc), r, wantR, tol)
	}
}

func TestNormDX(t *testing.T) {
	k := Table[float64]()
	k32 := Table[float32]()
	for _, z := range [][2]int{{1, 2}, {3, 7}, {2, 65}} {
		rows, cols := z[0], z[1]
		n := rows * cols
		x, dy, gain, dx := draw[float64](1, n), draw[float64](2, n), draw[float64](3, cols), make([]float64, n)
		x32, dy32, gain32, dx32 := draw[float32](1, n), draw[float32](2, n), draw[float32](3, cols), make([]float32, n)
		k.LayerNormDX(dx, dy, x, gain, rows, cols, eps)
		slope(t, name("layer norm ", z), x, dx, func() float64 {
			return along(naiveNorm(x, gain, nil, cols, true), dy)
		})
		if cols > 2 { // with two columns the gradient is only rounding errors
			k32.LayerNormDX(dx32, dy32, x32, gain32, rows, cols, eps)
			near(t, name("layer norm f32 ", z), dx32, dx, 2e-5)
		}
		for _, one := range []bool{false, true} {
			factor := gain
			if one {
				factor = unit(gain)
			}
			k.RMSNormDX(dx, dy, x, gain, rows, cols, eps, one)
			slope(t, name("rms norm ", z, one), x, dx, func() float64 {
				return along(naiveNorm(x, factor, nil, cols, false), dy)
			})
			k32.RMSNormDX(dx32, dy32, x32, gain32, rows, cols, eps, one)
			near(t, name("rms norm f32 ", z, one), dx32, dx, 2e-5)
		}
	}
}
