package vec_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/vec"
)

// tables runs a test with each table that this machine supports.
func tables(t *testing.T, f func(t *testing.T, k *vec.Kernels)) {
	ran := false
	for isa, k := range map[cpu.ISA]*vec.Kernels{cpu.AVX2: vec.AVX2, cpu.AVX512: vec.AVX512} {
		if k != nil && isa <= cpu.Best() {
			ran = true
			t.Run(isa.String(), func(t *testing.T) { f(t, k) })
		}
	}
	if !ran {
		t.Skip("this machine has no vectors")
	}
}

// lengths has every remainder of a vector, and some whole blocks. offsets are those of unaligned slices.
var lengths = func() (ns []int) {
	for n := range 70 {
		ns = append(ns, n)
	}
	return append(ns, 100, 127, 128, 129, 255, 1000, 4099)
}()

const fence = 12345.678

// fenced returns an output of n elements with fences around it, at an offset.
func fenced(n, offset int) (all, y []float32) {
	all = make([]float32, n+2*20+offset)
	for i := range all {
		all[i] = fence
	}
	return all, all[20+offset:][:n:n]
}

func intact(t *testing.T, what string, all []float32, n, offset int) {
	t.Helper()
	for i, v := range all {
		if (i < 20+offset || i >= 20+offset+n) && v != fence {
			t.Fatalf("%s of %d elements at offset %d wrote element %d: %v", what, n, offset, i-20-offset, v)
		}
	}
}

var odd = []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	1e-40, -1e-40, 3e38, -3e38, 88.7, -88.7, 104, -104, 1e-20, 1}

// draw returns n normal numbers; with special ones among them if with.
func draw(seed uint64, n int, hasSpecials bool) []float32 {
	r := rand.New(rand.NewPCG(seed, 7))
	x := make([]float32, n+3)
	for i := range x {
		x[i] = float32(3 * r.NormFloat64())
		if hasSpecials && r.IntN(4) == 0 {
			x[i] = odd[r.IntN(len(odd))]
		}
	}
	return x[3:] // unaligned
}

// near reports whether got is within ulps of want, or within floor of it.
func near(got float32, want, ulps, floor float64) bool {
	w := float32(want)
	switch {
	case want != want:
		return got != got
	case got == w:
		return true
	case got != got || math.IsInf(float64(got), 0) && !math.IsInf(float64(w), 0):
		return math.Abs(want) > 3.4e38 && math.Abs(float64(got)) > 3.4e38
	case math.IsInf(float64(w), 0):
		return math.Abs(float64(got)) > 3.4e38
	}
	unit := math.Max(math.Abs(float64(w))*0x1p-23, 0x1p-149)
	return math.Abs(float64(got)-want) <= math.Max(ulps*unit, floor)
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func phi(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

func twoU(x float64) float64 { return 2 * math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x) }

func geluSlope(x float64) float64 {
	s := sigmoid(twoU(x))
	return s + x*s*(1-s)*2*math.Sqrt(2/math.Pi)*(1+3*0.044715*x*x)
}

// elements lists the loops in float64. floor is the error allowed for terms that cancel, or for rounding an
// exponent.
var elements = []struct {
	name        string
	call        func(k *vec.Kernels, y, a, b []float32)
	want        func(a, b float64) float64
	ulps, floor float64
	tame        bool // the result for infinities is undefined
}{
	{name: "add", call: func(k *vec.Kernels, y, a, b []float32) {
		k.Add(y, a, b)
	}, want: func(a, b float64) float64 {
		return a + b
	}, ulps: 0.5},
	{name: "sub", call: func(k *vec.Kernels, y, a, b []float32) {
		k.Sub(y, a, b)
	}, want: func(a, b float64) float64 {
		return a - b
	}, ulps: 0.5},
	{name: "mul", call: func(k *vec.Kernels, y, a, b []float32) {
		k.Mul(y, a, b)
	}, want: func(a, b float64) float64 {
		return a * b
	}, ulps: 0.5},
	{name: "scale", call: func(k *vec.Kernels, y, a, b []float32) {
		k.Scale(y, a, 0.7)
	}, want: func(a, b float64) float64 {
		return float64(float32(0.7)) * a
	}, ulps: 0.5},
	{name: "exp", call: func(k *vec.Kernels, y, a, b []float32) {
		k.Exp(y, a)
	}, want: func(a, b float64) float64 {
		return math.Exp(a)
	}, ulps: 1},
	{name: "expScale", call: func(k *vec.Kernels, y, a, b []float32) { k.ExpScale(y, a, 1.5, -0.25) },
		want: func(a, b float64) float64 { return -0.25 * math.Exp(float64(float32(a)-1.5)) }, ulps: 2},
	{name: "gelu", call: func(k *vec.Kernels, y, a, b []float32) {
		k.Gelu(y, a)
	}, want: func(a, b float64) float64 {
		return a * sigmoid(twoU(a))
	}, ulps: 4, floor: 1e-7},
	{name: "geluGrad", call: func(k *vec.Kernels, y, a, b []float32) {
		k.GeluGrad(y, b, a)
	}, want: func(a, b float64) float64 {
		return b * geluSlope(a)
	}, ulps: 4, floor: 1e-6, tame: true},
	{name: "silu", call: func(k *vec.Kernels, y, a, b []float32) {
		k.Silu(y, a)
	}, want: func(a, b float64) float64 {
		return a * sigmoid(a)
	}, ulps: 4, floor: 1e-37},
	{name: "siluGrad", call: func(k *vec.Kernels, y, a, b []float32) { k.SiluGrad(y, b, a) },
		want: func(a, b float64) float64 {
			s := sigmoid(a)
			return b * (s + a*s*(1-s))
		}, ulps: 4, floor: 1e-6, tame: true},
	{name: "siluMul", call: func(k *vec.Kernels, y, a, b []float32) {
		k.SiluMul(y, a, b)
	}, want: func(a, b float64) float64 {
		return b * (a * sigmoid(a))
	},
		ulps: 5, floor: 1e-37, tame: true},
	{name: "geluErf", call: func(k *vec.Kernels, y, a, b []float32) {
		k.GeluErf(y, a)
	}, want: func(a, b float64) float64 {
		return a * phi(a)
	}, ulps: 6, floor: 2e-7, tame: true},
	{name: "geluErfGrad", call: func(k *vec.Kernels, y, a, b []float32) { k.GeluErfGrad(y, b, a) },
		want: func(a, b float64) float64 {
			return b * (phi(a) + a*math.Exp(-a*a/2)/math.Sqrt(2*math.Pi))
		}, ulps: 6, floor: 1e-6, tame: true},
	{name: "sigmoid", call: func(k *vec.Kernels, y, a, b []float32) {
		k.Sigmoid(y, a)
	}, want: func(a, b float64) float64 {
		return sigmoid(a)
	}, ulps: 4, floor: 1e-37},
	{name: "sigmoidGrad", call: func(k *vec.Kernels, y, a, b []float32) { k.SigmoidGrad(y, b, a) },
		want: func(a, b float64) float64 { s := sigmoid(a); return b * s * (1 - s) }, ulps: 4, floor: 1e-6, tame: true},
	{name: "softcap", call: func(k *vec.Kernels, y, a, b []float32) { k.Softcap(y, a, 2.5, 0.4) },
		want: func(a, b float64) float64 { return 2.5 * math.Tanh(a*float64(float32(0.4))) }, ulps: 4},
	{name: "softcapGrad", call: func(k *vec.Kernels, y, a, b []float32) { k.SoftcapGrad(y, b, a, 0.4) },
		want: func(a, b float64) float64 {
			t := math.Tanh(a * float64(float32(0.4)))
			return b * (1 - t*t)
		}, ulps: 4, floor: 1e-6, tame: true},
	{name: "relu", call: func(k *vec.Kernels, y, a, b []float32) {
		k.Relu(y, a)
	}, want: func(a, b float64) float64 {
		return math.Max(a, 0)
	}},
	{name: "reluGrad", call: func(k *vec.Kernels, y, a, b []float32) {
		k.ReluGrad(y, b, a)
	}, want: func(a, b float64) float64 {
		if a > 0 {
			return b
		}
		return 0 * b
	}},
}

func TestElements(t *testing.T) {
	tables(t, func(t *testing.T, k *vec.Kernels) {
		for _, e := range elements {
			for i, n := range lengths {
				a, b := draw(1, n, !e.tame), draw(2, n, !e.tame)
				all, y := fenced(n, i%5)
				e.call(k, y, a, b)
				intact(t, e.name, all, n, i%5)
				for j := range y {
					if want := e.want(float64(a[j]), float64(b[j])); !near(y[j], want, e.ulps, e.floor) {
						t.Fatalf("%s(%v, %v) is %v, want %v (element %d of %d)", e.name, a[j], b[j], y[j], want, j, n)
					}
				}
				copy(y, a)
				e.call(k, y, y, b) // in place
				z := make([]float32, n)
				e.call(k, z, a, b)
				for j := range y {
					if math.Float32bits(y[j]) != math.Float32bits(z[j]) {
						t.Fatalf("%s in place: element %d of %d is %v, want %v", e.name, j, n, y[j], z[j])
					}
				}
			}
		}
	})
}

// For float32s of a wide range, in steps, e^x is within 1.01 ulp. The largest error is logged.
func TestExpEverywhere(t *testing.T) {
	tables(t, func(t *testing.T, k *vec.Kernels) {
		var x, y [512]float32
		worst, at := 0.0, float32(0)
		for b := uint32(0); b < 0x42ce0000; b += 512 * 97 {
			for i := range x {
				x[i] = math.Float32frombits((b + uint32(i)*97) | uint32(i&1)<<31)
			}
			k.Exp(y[:], x[:])
			for i, v := range x {
				want := math.Exp(float64(v))
				if w := float32(want); !math.IsInf(float64(w), 0) && w > 0x1p-126 {
					_, exp := math.Frexp(want)
					if ulps := math.Abs(float64(y[i])-want) / math.Ldexp(1, exp-24); ulps > worst {
						worst, at = ulps, v
					}
				} else if !near(y[i], want, 1, 0) {
					t.Fatalf("e^%v is %v, want %v", v, y[i], want)
				}
			}
		}
		t.Logf("e^x is at most %.3f ulp off, at %v", worst, at)
		if worst > 1.01 {
			t.Errorf("e^%v is %.3f ulp off", at, worst)
		}
	})
}

// Rows with a stride have the same bits as loops over one row, and elements in between are unchanged.
func TestElementRows(t *testing.T) {
	tables(t, func(t *testing.T, k *vec.Kernels) {
		for _, n := range lengths[1:] {
			const rows, between = 3, 5
			stride := n + between
			a, b := draw(1, rows*stride, true), draw(2, rows*stride, true)
			for _, op := range []struct {
				name string
				rows func(y []float32)
				row  func(y, a, b []float32)
			}{
				{"AddRows", func(y []float32) { k.AddRows(y, a, b, rows, n, stride) }, k.Add},
				{"GeluRows", func(y []float32) {
					k.GeluRows(y, a, rows, n, stride)
				}, func(y, a, _ []float32) {
					k.Gelu(y, a)
				}},
				{"GeluGradRows", func(y []float32) { k.GeluGradRows(y, a, b, rows, n, stride) }, k.GeluGrad},
			} {
				got, want := make([]float32, rows*stride), make([]float32, rows*stride)
				op.rows(got)
				for r := range rows {
					op.row(want[r*stride:][:n], a[r*stride:][:n], b[r*stride:][:n])
				}
				for i := range got {
					if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
						t.Fatalf("%s of rows of %d: element %d is %v, want %v", op.name, n, i, got[i], want[i])
					}
				}
			}
		}
	})
}

// The loops of a gate have the same bits as its separate operations.
func TestGateIsItsParts(t *testing.T) {
	tables(t, func(t *testing.T, k *vec.Kernels) {
		for _, n := range lengths {
			a, b, dy := draw(1, n, true), draw(2, n, true), draw(3, n, true)
			y, da, db, want := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
			same := func(what string, got []float32) {
				t.Helper()
				for i := range got {
					if math.Float32bits(got[i]) != math.Float32bits(want[i]) &&
						(got[i] == got[i] || want[i] == want[i]) {
						t.Fatalf("%s of %d: element %d, of %v, %v and %v, is %v, want %v", what, n, i, a[i], b[i],
							dy[i], got[i], want[i])
					}
				}
			}
			k.SiluMul(y, a, b)
			k.Silu(want, a)
			k.Mul(want, want, b)
			same("SiluMul", y)
			k.SiluMulGrad(da, db, dy, a, b)
			k.Silu(want, a)
			k.Mul(want, want, dy)
			same("SiluMulGrad by b", db)
			k.Mul(want, dy, b)
			k.SiluGrad(want, want, a)
			same("SiluMulGrad by a", da)
		}
	})
}

// Derivatives of activations far below 0 are 0, and so are all intermediate results: some Intel processors
// take thirty times as long for subnormal numbers.
func TestDerivativesVanish(t *testing.T) {
	tables(t, func(t *testing.T, k *vec.Kernels) {
		for name, at := range map[string]struct {
			grad func(y, dy, a []float32)
			from float32
		}{"gelu": {k.GeluGrad, -10.2}, "silu": {k.SiluGrad, -89}, "sigmoid": {k.SigmoidGrad, -89}} {
			for x := at.from; x > -1e12; x *= 1.3 {
				y := []float32{1}
				at.grad(y, []float32{2}, []float32{x})
				if y[0] != 0 {
					t.Errorf("the derivative of %s at %v is %v", name, x, y[0])
				}
			}
		}
	})
}
