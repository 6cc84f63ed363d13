//go:build cuda && linux

package main

import (
	"fmt"
	"math"

	"github.com/planc-dev/planc/cuda"
)

// FP8Measured is the measurement of an FP8 GEMM.
type FP8Measured struct {
	Types, Size  string
	Error, Bound float64 // relative to the f64 GEMM of the same rounded operands; Error is -1 if not compared
	Unrounded    float64 // relative to the f64 GEMM of the unrounded operands; reported without a bound
	Flops        float64
	// Seconds of the GEMM, of the GEMM with the rounding passes, and of the bf16 GEMM; 0 if timing is not available.
	Seconds      float64
	WithRounding float64 `json:"With"`
	In16         float64
	Why          string `json:",omitempty"`
}

// newFP8Measured returns a measurement that has not run yet, with its bound of sqrt(k)·2^-14. Multiplying two FP8
// numbers is exact; only the sum is rounded. Hopper's tensor cores keep about 14 bits of a sum (DeepSeek-AI 2024,
// "DeepSeek-V3 technical report", 3.3.2), so each of k additions truncates by at most 2^-13 of the partial sum.
//
// Truncation towards zero has a random sign, so errors add in quadrature. The root mean square of a truncation is
// 1/sqrt(3) of its maximum, and that of the partial sum is 1/sqrt(2) of the final one. Together: sqrt(k)·2^-13/sqrt(6),
// which is below the bound. Truncation downwards is biased and adds up linearly. It stays below the bound if sums are
// promoted to f32 after 128 terms, and exceeds it otherwise; TestFP8Bound checks both. A bf16 result adds at most 2^-8.
func newFP8Measured(p fp8GEMM) FP8Measured {
	out := outOf(p.GEMM)
	x := FP8Measured{Error: -1, Unrounded: -1, Bound: math.Sqrt(float64(p.K)) * 0x1p-14,
		Flops: 2 * float64(p.M) * float64(p.N) * float64(p.K)}
	if out == "bf16" {
		x.Bound += 0x1p-8
	}
	x.Types = fmt.Sprintf("%s, %s to %s", fp8Codes[p.as[0]].name, fp8Codes[p.as[1]].name, out)
	x.Size = fmt.Sprintf("%d×%d×%d%s%s", p.M, p.N, p.K, flagged(p.TransposeA, " aᵀ"), flagged(p.TransposeB, " bᵀ"))
	return x
}

// outOf returns the type of a GEMM's result.
func outOf(p cuda.GEMM) string {
	if p.Out == cuda.ValueFloat32 {
		return "f32"
	}
	return "bf16"
}

func (x *FP8Measured) bad() bool { return x.Why != "" || !(x.Error <= x.Bound) || x.Error < 0 }

// tabulateFP8 writes the table and reports GEMMs beyond their bound.
func tabulateFP8(r *Result, all []FP8Measured) {
	r.Raw, r.State = all, "ok"
	r.Columns = []string{"types", "size", "error", "bound", "error vs unrounded", "TFLOP/s", "µs", "µs with passes",
		"µs in bf16", "speedup over bf16"}
	for i := range all {
		x := &all[i]
		cells := []string{x.Types, x.Size, "-", fmt.Sprintf("%.2g", x.Bound), "-", "-", "-", "-", "-", "-"}
		if x.Error >= 0 {
			cells[2] = fmt.Sprintf("%.2g", x.Error)
		}
		if x.Unrounded >= 0 {
			cells[4] = fmt.Sprintf("%.2g", x.Unrounded)
		}
		if x.Seconds > 0 && x.WithRounding > 0 && x.In16 > 0 {
			cells[5] = fmt.Sprintf("%.1f", x.Flops/x.Seconds/1e12)
			for j, s := range []float64{x.Seconds, x.WithRounding, x.In16} {
				cells[6+j] = fmt.Sprintf("%.1f", s*1e6)
			}
			cells[9] = fmt.Sprintf("%.2f", x.In16/x.WithRounding)
		}
		if x.bad() {
			r.State = "failed"
			r.Why += fmt.Sprintf("FP8 GEMM %s %s: relative error %.3g, allowed %.3g %s; ", x.Types, x.Size, x.Error,
				x.Bound, x.Why)
		}
		r.row(cells...)
	}
}
