package kernels

import (
	"fmt"
	"math"
	"testing"

	"github.com/planc-dev/planc/cuda/kernels/emulate"
	"github.com/planc-dev/planc/runtime/cpu"
)

// sizes lists rows × cols for a warp, with and without whole packs, and for a block.
var sizes = [][2]int{{1, 1}, {3, 5}, {9, 64}, {2, 33}, {17, 136}, {2, 1032}, {3, 2051}}

func TestNorms(t *testing.T) {
	const eps = 1e-5
	inEachType(t, "rms_norm", func(b bench) {
		k := cpu.Table[float64]()
		for _, s := range sizes {
			rows, cols := s[0], s[1]
			n := rows * cols
			x, gain, bias := b.draw(n, "x"), b.draw(cols, "gain"), b.draw(cols, "bias")
			if cols > 32 {
				x[n-1] = 6e4 // near the limit of float16
			}
			want := make([]float64, n)
			k.RMSNorm(want, x, gain, rows, cols, eps, true)
			y := b.buffer(nans(n))
			b.run("rms_norm", rows, cols, y, nil, b.buffer(x), nil, b.buffer(gain), rows, cols, eps, 1)
			b.near(b.T, fmt.Sprint("rms_norm", s), b.values(y), want, 12, math.Sqrt(float64(cols)))

			k.LayerNorm(want, x, gain, bias, rows, cols, eps)
			y = b.buffer(x)
			b.run("layer_norm", rows, cols, y, nil, y, nil, b.buffer(gain), b.buffer(bias), rows, cols, eps)
			b.near(b.T, fmt.Sprint("layer_norm", s), b.values(y), want, 12, math.Sqrt(float64(cols)))
		}
	})
}

// A residual is added first, and the sum is stored in the storage type.
func TestNormsOfSums(t *testing.T) {
	inEachType(t, "rms_norm", func(b bench) {
		rows, cols := 5, 72
		n := rows * cols
		x, residual, gain := b.draw(n, "x"), b.draw(n, "residual"), b.draw(cols, "gain")
		s, want := make([]float64, n), make([]float64, n)
		for i := range s {
			s[i] = x[i] + residual[i]
		}
		s = b.values(b.buffer(s))
		cpu.Table[float64]().RMSNorm(want, s, gain, rows, cols, 1e-6, false)
		y, sum := b.buffer(nans(n)), b.buffer(nans(n))
		b.run("rms_norm", rows, cols, y, sum, b.buffer(x), b.buffer(residual), b.buffer(gain), rows, cols, 1e-6, 0)
		b.near(b.T, "sum", b.values(sum), s, 0, 0)
		b.near(b.T, "y", b.values(y), want, 40, 6)
		cpu.Table[float64]().LayerNorm(want, s, gain, nil, rows, cols, 1e-6)
		sum = b.buffer(x) // in place of x
		b.run("layer_norm", rows, cols, y, sum, sum, b.buffer(residual), b.buffer(gain), nil, rows, cols, 1e-6)
		b.near(b.T, "centred sum", b.values(sum), s, 0, 0)
		b.near(b.T, "centred y", b.values(y), want, 80, 6)
	})
}

func TestNormsDX(t *testing.T) {
	const eps = 1e-5
	inEachType(t, "rms_norm_dx", func(b bench) {
		k := cpu.Table[float64]()
		for _, s := range sizes {
			rows, cols := s[0], s[1]
			n := rows * cols
			x, dy, more, gain := b.draw(n, "x"), b.draw(n, "dy"), b.draw(n, "more"), b.draw(cols, "gain")
			want := make([]float64, n)
			add := func() {
				for i := range want {
					want[i] += more[i]
				}
			}
			k.RMSNormDX(want, dy, x, gain, rows, cols, eps, true)
			add()
			dx := b.buffer(dy)
			b.run("rms_norm_dx", rows, cols, dx, dx, b.buffer(more), b.buffer(x), b.buffer(gain), rows, cols, eps, 1)
			b.near(b.T, fmt.Sprint("rms_norm_dx", s), b.values(dx), want, 16, 8/minNorm(x, rows, cols, false))

			k.LayerNormDX(want, dy, x, gain, rows, cols, eps)
			dx = b.buffer(nans(n))
			b.run("layer_norm_dx", rows, cols, dx, b.buffer(dy), nil, b.buffer(x), b.buffer(gain), rows, cols, eps)
			b.near(b.T, fmt.Sprint("layer_norm_dx", s), b.values(dx), want, 16, 8/minNorm(x, rows, cols, true))
		}
	})
}

// minNorm returns the smallest root mean square of the rows.
func minNorm(x []float64, rows, cols int, centred bool) float64 {
	least := math.Inf(1)
	for i := range rows {
		mean, square := 0.0, 0.0
		for _, v := range x[i*cols:][:cols] {
			mean += v / float64(cols)
		}
		if !centred {
			mean = 0
		}
		for _, v := range x[i*cols:][:cols] {
			square += (v - mean) * (v - mean) / float64(cols)
		}
		least = min(least, math.Sqrt(square+1e-5))
	}
	return least
}

func TestNormsDGain(t *testing.T) {
	const eps = 1e-5
	inEachType(t, "norm_dgain", func(b bench) {
		a := b.computed()
		for _, s := range [][2]int{{1, 1}, {3, 5}, {333, 264}, {701, 33}} {
			rows, cols := s[0], s[1]
			x, dy, old := b.draw(rows*cols, "x"), b.draw(rows*cols, "dy"), a.draw(cols, "old")
			for _, kernel := range []string{"rms_norm", "layer_norm"} {
				want := append([]float64(nil), old...)
				grad := cpu.Table[float64]().RMSNormDGain
				if kernel == "layer_norm" {
					grad = cpu.Table[float64]().LayerNormDGain
				}
				grad(want, dy, x, rows, cols, eps, true)
				stats := a.buffer(nans(2 * rows))
				b.run(kernel+"_stats", rows, cols, stats, b.buffer(x), rows, cols, eps)
				got, parts := old, Parts(rows)
				part := a.buffer(old)
				acc := 1
				if parts > 1 {
					part, acc = a.buffer(nans(parts*cols)), 0
				}
				b.run("norm_dgain", rows, cols, part, b.buffer(dy), b.buffer(x), stats, rows, cols, acc)
				got = a.values(part)
				if parts > 1 {
					got = sumParts(old, got, parts)
				}
				a.near(b.T, fmt.Sprint(kernel, "_dgain", s), got, want, 8, 2*float64(rows)/minNorm(x, rows, cols,
					kernel == "layer_norm"))
			}
		}
	})
}

// sumParts adds parts to the previous values.
func sumParts(old, part []float64, parts int) []float64 {
	sum := append([]float64(nil), old...)
	for p := range parts {
		for j := range sum {
			sum[j] += part[p*len(sum)+j]
		}
	}
	return sum
}

// All gradients of a norm in one kernel equal those of the loops.
func TestNormsGrads(t *testing.T) {
	for _, s := range [][2]int{{1, 8}, {9, 64}, {333, 264}, {21, 768}, {5, 1024}, {3, 1032}, {2, 4096}, {2, 6160},
		{1, 8192}} {
		packs, _ := NormGrads(s[0], s[1])
		inEachType(t, fmt.Sprint("layer_norm_grads", packs), func(b bench) {
			n := s[0] * s[1]
			x, dy, more, gain := b.draw(n, "x"), b.draw(n, "dy"), b.draw(n, "more"), b.draw(s[1], "gain")
			g := normGrads{b, s[0], s[1], x, dy, more, gain}
			g.layerNorm(packs)
			g.rmsNorm(packs)
		})
	}
}

// normGrads are the operands of a norm's gradients.
type normGrads struct {
	bench
	rows, cols        int
	x, dy, more, gain []float64
}

// layerNorm runs the kernel in place of dy, with an addend and with the gradient of a bias.
func (g *normGrads) layerNorm(packs int) {
	const eps = 1e-5
	k, a := cpu.Table[float64](), g.computed()
	dx, dgain, dbias := make([]float64, len(g.x)), make([]float64, g.cols), make([]float64, g.cols)
	k.LayerNormDX(dx, g.dy, g.x, g.gain, g.rows, g.cols, eps)
	k.LayerNormDGain(dgain, g.dy, g.x, g.rows, g.cols, eps, false)
	k.SumRows(dbias, g.dy, g.rows, g.cols, false)
	_, parts := NormGrads(g.rows, g.cols)
	got, gainPart, biasPart := g.buffer(g.dy), a.buffer(nans(parts*g.cols)), a.buffer(nans(parts*g.cols))
	g.run(fmt.Sprint("layer_norm_grads", packs), g.rows, g.cols, got, gainPart, biasPart, got, g.buffer(g.more),
		g.buffer(g.x), g.buffer(g.gain), g.rows, g.cols, eps)
	g.check("layer_norm_grads", got, g.rounded(dx, g.more), true)
	g.checkParts("layer_norm_grads gain", a.values(gainPart), dgain, parts, minNorm(g.x, g.rows, g.cols, true))
	g.checkParts("layer_norm_grads bias", a.values(biasPart), dbias, parts, 1)
}

// rmsNorm runs the kernel without an addend.
func (g *normGrads) rmsNorm(packs int) {
	const eps = 1e-5
	k, a := cpu.Table[float64](), g.computed()
	dx, dgain := make([]float64, len(g.x)), make([]float64, g.cols)
	k.RMSNormDX(dx, g.dy, g.x, g.gain, g.rows, g.cols, eps, true)
	k.RMSNormDGain(dgain, g.dy, g.x, g.rows, g.cols, eps, false)
	_, parts := NormGrads(g.rows, g.cols)
	got, gainPart := g.buffer(nans(len(g.x))), a.buffer(nans(parts*g.cols))
	g.run(fmt.Sprint("rms_norm_grads", packs), g.rows, g.cols, got, gainPart, g.buffer(g.dy), nil, g.buffer(g.x),
		g.buffer(g.gain), g.rows, g.cols, eps, 1)
	g.check("rms_norm_grads", got, dx, false)
	g.checkParts("rms_norm_grads gain", a.values(gainPart), dgain, parts, minNorm(g.x, g.rows, g.cols, false))
}

// rounded returns dx rounded to the storage type, plus an addend.
func (g *normGrads) rounded(dx, more []float64) []float64 {
	out := g.values(g.buffer(dx))
	for i := range out {
		out[i] += more[i]
	}
	return out
}

// check compares dx. If it was rounded twice, near-ties may differ by a unit in the last place.
func (g *normGrads) check(what string, got *emulate.Buffer, want []float64, twice bool) {
	scale := 8 / minNorm(g.x, g.rows, g.cols, what == "layer_norm_grads")
	roundings := 16.0
	if twice {
		roundings += 2 * g.unit / g.sums
	}
	g.near(g.T, fmt.Sprint(what, g.rows, g.cols), g.values(got), want, roundings, scale)
}

// checkParts compares sums over rows in parts.
func (g *normGrads) checkParts(what string, part, want []float64, parts int, least float64) {
	got := sumParts(make([]float64, g.cols), part, parts)
	g.computed().near(g.T, fmt.Sprint(what, g.rows, g.cols), got, want, 8, 2*float64(g.rows)/least)
}
