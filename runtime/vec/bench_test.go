package vec_test

import (
	"testing"

	"github.com/planc-dev/planc/runtime/vec"
)

// BenchmarkLoops reports nanoseconds per element in the first- and second-level cache.
func BenchmarkLoops(b *testing.B) {
	const n = 4096
	x, y, z, v := draw(1, n, false), draw(2, n, false), draw(3, n, false), make([]float32, n)
	h, low := make([]uint16, n), make([]float32, n)
	for i := range low {
		low[i] = -100
	}
	for name, k := range map[string]*vec.Kernels{"avx2": vec.AVX2, "avx512": vec.AVX512} {
		if k == nil {
			continue
		}
		const rows, cols = n / 384, 384
		mean, rstd := make([]float32, rows), make([]float32, rows)
		row := func(f func(lo, hi int)) func() {
			return func() {
				for i := 0; i+cols <= n; i += cols {
					f(i, i+cols)
				}
			}
		}
		c := [10]float32{1, 0, 0.9, 0.1, 0.95, 0.05, 1, 1e-9, 1, 1}
		for _, f := range []struct {
			name string
			call func()
		}{
			{"add", func() { k.Add(z, x, y) }},
			{"exp", func() { k.Exp(z, x) }},
			{"gelu", func() { k.Gelu(z, x) }},
			{"gelu grad", func() { k.GeluGrad(z, y, x) }},
			{"gelu grad, far below 0", func() { k.GeluGrad(z, y, low) }},
			{"silu", func() { k.Silu(z, x) }},
			{"siluMul", func() { k.SiluMul(z, x, y) }},
			{"adam", func() { k.Adam(x, y, z, v, &c) }},
			{"layer norm", func() {
				k.Moments(mean, rstd, x, cols, 0)
				k.NormBias(z, x, y[:cols], y[cols:2*cols], mean, rstd, 0)
			}},
			{"layer norm dx", func() {
				k.Moments(mean, rstd, x, cols, 0)
				k.NormGrad(z, y, x, y[:cols], mean, rstd, 0, 1)
			}},
			{"softmax", row(func(lo, hi int) {
				top := k.Largest(x[lo:hi], -1e30)
				k.ExpScale(z[lo:hi], x[lo:hi], top, float32(1/k.SumExp(x[lo:hi], top)))
			})},
			{"sum squares", func() { k.SumSquares(x) }},
			{"sum rows", func() { k.SumRows(z[:512], x, 8, 512) }},
			{"gain grad", func() { k.GainGrad(z[:512], x, y, y[:8], y[8:16], 512) }},
			{"drop", func() { k.Drop(z, x, 1, 2, 1<<50, 2) }},
			{"to bf16", func() { k.ToBF16(h, x) }},
			{"from bf16", func() { k.FromBF16(z, h) }},
		} {
			b.Run(name+"/"+f.name, func(b *testing.B) {
				for b.Loop() {
					f.call()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/element")
			})
		}
	}
}
