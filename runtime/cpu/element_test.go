package cpu

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/runtime/cpu/elem"
	"github.com/planc-dev/planc/runtime/rng"
)

func TestExpAndLn(t *testing.T) {
	for x := -760.0; x < 720; x += 0.0371 {
		want := math.Exp(x)
		if got := Exp(x); math.Abs(got-want) > 4e-16*want+5e-324 {
			t.Fatalf("Exp(%v) = %v, want %v", x, got, want)
		}
		x32 := float32(x / 7)
		want = math.Exp(float64(x32))
		if got := Exp(x32); math.Abs(float64(got)-want) > 7e-8*want+1e-45 &&
			!(want > math.MaxFloat32 && got > math.MaxFloat32) {
			t.Fatalf("Exp(float32 %v) = %v, want %v", x32, got, want)
		}
		if x > 0 {
			if got, want := rng.Log(x), math.Log(x); math.Abs(got-want) > 4e-16*math.Abs(want)+1e-16 {
				t.Fatalf("rng.Log(%v) = %v, want %v", x, got, want)
			}
		}
	}
	inf := math.Inf(1)
	for _, c := range [][2]float64{{inf, inf}, {-inf, 0}, {0, 1}, {1000, inf}, {-1000, 0}} {
		if got := Exp(c[0]); got != c[1] {
			t.Errorf("Exp(%v) = %v", c[0], got)
		}
		if got := Exp(float32(c[0])); got != float32(c[1]) {
			t.Errorf("Exp(float32 %v) = %v", c[0], got)
		}
	}
	if !math.IsNaN(Exp(math.NaN())) || !math.IsNaN(float64(Exp(float32(math.NaN())))) {
		t.Error("Exp(NaN) is a number")
	}
	if rng.Log(inf) != inf || !math.IsNaN(rng.Log(math.NaN())) {
		t.Error("ln of Inf or NaN")
	}
}

func TestActivations(t *testing.T) {
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for _, c := range []struct {
		name     string
		f, grad  func(float64) float64
		f32, g32 func(float32) float32
		want     func(float64) float64
	}{
		{"gelu", Gelu[float64], GeluGrad[float64], Gelu[float32], GeluGrad[float32], func(x float64) float64 {
			return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
		}},
		{"gelu erf", GeluErf[float64], GeluErfGrad[float64], GeluErf[float32], GeluErfGrad[float32],
			func(x float64) float64 {
				return 0.5 * x * (1 + math.Erf(x/math.Sqrt2))
			}},
		{"silu", Silu[float64], SiluGrad[float64], Silu[float32], SiluGrad[float32], func(x float64) float64 {
			return x * sigmoid(x)
		}},
		{"relu", Relu[float64], ReluGrad[float64], Relu[float32], ReluGrad[float32], func(x float64) float64 {
			return math.Max(x, 0)
		}},
		{"softcap", func(x float64) float64 {
			return Softcap(x, 7.5)
		}, func(x float64) float64 {
			return SoftcapGrad(x, 7.5)
		},
			func(x float32) float32 { return Softcap(x, 7.5) }, func(x float32) float32 { return SoftcapGrad(x, 7.5) },
			func(x float64) float64 { return 7.5 * math.Tanh(x/7.5) }},
		{"tanh", elem.Tanh[float64], nil, elem.Tanh[float32], nil, math.Tanh},
		{"sigmoid", Sigmoid[float64], nil, Sigmoid[float32], nil, sigmoid},
	} {
		for x := -30.013; x < 30; x += 0.0317 {
			one := []float64{x}
			near(t, c.name, []float64{c.f(x)}, []float64{c.want(x)}, 1e-14)
			x32 := float32(x)
			near(t, c.name+" f32", []float32{c.f32(x32)}, []float64{c.want(float64(x32))}, 1e-6)
			if c.grad != nil {
				slope(t, c.name, one, []float64{c.grad(x)}, func() float64 { return c.want(one[0]) })
				near(t, c.name+" grad f32", []float32{c.g32(x32)}, []float64{c.grad(float64(x32))}, 1e-6)
			}
		}
	}
}

func TestDropout(t *testing.T) { both(t, testDropout[float32], testDropout[float64]) }

func testDropout[F Float](t *testing.T, tol float64) {
	const p, key = 0.3, 42
	v := GlobalView{Local: [4]int{2, 3, 5}, Global: [4]int{4, 7, 11}, Offset: [4]int{1, 2, 4}, N: 3}
	x, y, want := draw[F](1, 30), make([]F, 30), make([]float64, 30)
	for i := range 2 {
		for j := range 3 {
			for k := range 5 {
				if at := (i*3+j)*5 + k; Keep(key, uint64(((i+1)*7+j+2)*11+k+4), p) {
					want[at] = float64(x[at]) / (1 - p)
				}
			}
		}
	}
	Table[F]().Dropout(y, x, p, key, v)
	near(t, "dropout", y, want, tol)
	all := GlobalView{Local: [4]int{30}, Global: [4]int{30}, N: 1}
	Table[F]().Dropout(y, x, 0, key, all)
	near(t, "dropout of none", y, wide(x), 0)
	Table[F]().Dropout(y, x, 1, key, all)
	near(t, "dropout of all", y, make([]float64, 30), 0)
}

func BenchmarkElements(b *testing.B) {
	const rows, cols = 64, 768
	x, y, g := draw[float32](1, rows*cols), make([]float32, rows*cols), draw[float32](2, rows*cols)
	m, v, l, k := make([]float32, rows*cols), make([]float32, rows*cols), make([]float32, rows), Table[float32]()
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"gelu", func() {
			for i, e := range x {
				y[i] = Gelu(e)
			}
		}},
		{"gelu grad", func() {
			for i, e := range x {
				y[i] = GeluGrad(e)
			}
		}},
		{"layer norm", func() { k.LayerNorm(y, x, g[:cols], nil, rows, cols, eps) }},
		{"layer norm dx", func() { k.LayerNormDX(y, x, g, x[:cols], rows, cols, eps) }},
		{"layer norm dgain", func() { k.LayerNormDGain(y[:cols], x, g, rows, cols, eps, true) }},
		{"sum rows", func() { k.SumRows(y[:cols], x, rows, cols, false) }},
		{"sum squares", func() { k.SumSquares(x) }},
		{"add", func() { k.Add(y, x) }},
		{"log sum exp", func() { k.LogSumExp(l, x, rows, cols, cols) }},
		{"adamw", func() { k.AdamW(y, g, m, v, AdamStep{LR: 1e-9, Beta1: 0.9, Beta2: 0.9, Eps: 1, Scale: 1, T: 9}) }},
		{"dropout", func() {
			k.Dropout(y, x, 0.1, 3, GlobalView{Local: [4]int{rows, cols}, Global: [4]int{rows, cols}, N: 2})
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				c.f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(rows*cols), "ns/element")
		})
	}
}
