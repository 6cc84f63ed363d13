//go:build cuda && linux

package main

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/bench/gpu/trial"
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/runtime/num"
)

// Sums that keep 14 bits are within the bound of FP8 GEMMs, if they are truncated towards zero, or downwards and then
// promoted to f32. Sums that are truncated downwards and never promoted are not.
func TestFP8Bound(t *testing.T) {
	for _, k := range []int{768, 3072, 16384} {
		bound := newFP8Measured(fp8GEMM{cuda.GEMM{M: 8, N: 8, K: k, Out: cuda.ValueFloat32}, [2]num.FP8Format{num.E4M3,
			num.E4M3}}).Bound
		for _, c := range []struct {
			name    string
			cut     func(float64) float64
			promote int
			within  bool
		}{{"towards zero, promoted", math.Trunc, 128, true}, {"towards zero", math.Trunc, k, true},
			{"downwards, promoted", math.Floor, 128, true}, {"downwards", math.Floor, k, false}} {
			x := cutProduct(8, k, c.promote, c.cut)
			if x <= bound != c.within {
				t.Errorf("%d terms cut %s: off by %.2g, and the bound is %.2g", k, c.name, x, bound)
			}
			t.Logf("%d terms cut %s: off by %.2g of %.2g", k, c.name, x, bound)
		}
	}
}

// cutProduct returns the error of n × n sums of k terms, if 32 terms at a time and the sum so far are truncated to 14
// bits of the largest of them.
func cutProduct(n, k, promote int, cut func(float64) float64) float64 {
	a, b := trial.Numbers(n*k, 0), trial.Numbers(n*k, 1)
	roundFP8(a, num.E4M3)
	roundFP8(b, num.E4M3)
	var got, want []float64
	for i := range n * n {
		x, y := a[i/n*k:][:k], b[i%n*k:][:k]
		total, sum, exact := 0.0, 0.0, 0.0
		for at := 0; at < k; at += 32 {
			largest := math.Abs(sum)
			for j := at; j < at+32; j++ {
				largest = max(largest, math.Abs(x[j]*y[j]))
			}
			unit := math.Ldexp(1, math.Ilogb(largest)-13)
			sum = cut(sum/unit) * unit
			for j := at; j < at+32; j++ {
				sum += cut(x[j]*y[j]/unit) * unit
				exact += x[j] * y[j]
			}
			if (at+32)%promote == 0 {
				total, sum = total+sum, 0
			}
		}
		got, want = append(got, total+sum), append(want, exact)
	}
	return trial.RelativeError(got, want)
}

// GPUs without FP8 GEMMs skip the check, and the page says so.
func TestFP8GEMMsAreSkipped(t *testing.T) {
	var r Result
	if err := fp8GEMMs(&lab{gpu: cuda.Device{Name: "A100", Major: 8}}, &r); err != nil || r.State != "ok" ||
		len(r.Rows) > 0 || len(r.Notes) != 1 {
		t.Errorf("%v: %+v", err, r)
	}
}
