//go:build cuda && linux

package main

import (
	"fmt"
	"math"

	"github.com/planc-dev/planc/cuda"
)

// Eight is a product in 8 bits.
type Eight struct {
	Types, Size  string
	Error, Bound float64 // off f64's product of the same rounded operands; Error is -1 where it was not compared
	Unrounded    float64 // off f64's product of the operands before they are rounded: told, and not judged
	Flops        float64
	// of the product, of it and the passes that round, and of bf16's product; 0 where there is no time
	Seconds, With, In16 float64
	Why                 string `json:",omitempty"`
}

// newEight is one that has not been tried. Products of two numbers of 8 bits are exact; what is off is their sum.
// Hopper's tensor cores keep some 14 bits of a sum (DeepSeek-AI 2024, "DeepSeek-V3 technical report", 3.3.2), so that
// each of k terms may be cut by up to 2^-13 of the sum so far. Cuts towards zero, of terms of either sign, add as roots
// of squares do: a cut's is 1/sqrt(3) of the most, the sum so far's 1/sqrt(2) of the result, together less than sqrt(k)
// 2^-14. Cuts downwards add up, but are below that where sums are promoted to f32 behind 128 terms; TestEightBound has
// both. Without promotion they are above it, as they should be. A result in bf16 is rounded to 8 bits besides, by 2^-8
// at most.
func newEight(p eightProduct) Eight {
	out := outOf(p.GEMM)
	x := Eight{Error: -1, Unrounded: -1, Bound: math.Sqrt(float64(p.K)) * 0x1p-14,
		Flops: 2 * float64(p.M) * float64(p.N) * float64(p.K)}
	if out == "bf16" {
		x.Bound += 0x1p-8
	}
	x.Types = fmt.Sprintf("%s, %s to %s", eightCodes[p.as[0]].name, eightCodes[p.as[1]].name, out)
	x.Size = fmt.Sprintf("%d×%d×%d%s%s", p.M, p.N, p.K, flagged(p.TransposeA, " aᵀ"), flagged(p.TransposeB, " bᵀ"))
	return x
}

// outOf is the type of a product's result.
func outOf(p cuda.GEMM) string {
	if p.Out == cuda.ValueFloat32 {
		return "f32"
	}
	return "bf16"
}

func (x *Eight) bad() bool { return x.Why != "" || !(x.Error <= x.Bound) || x.Error < 0 }

// tellEights makes the table, and says which are off.
func tellEights(r *Result, all []Eight) {
	r.Raw, r.State = all, "ok"
	r.Columns = []string{"types", "size", "error", "bound", "off unrounded", "TFLOP/s", "µs", "µs with passes",
		"µs in bf16", "bf16 / with passes"}
	for i := range all {
		x := &all[i]
		cells := []string{x.Types, x.Size, "-", fmt.Sprintf("%.2g", x.Bound), "-", "-", "-", "-", "-", "-"}
		if x.Error >= 0 {
			cells[2] = fmt.Sprintf("%.2g", x.Error)
		}
		if x.Unrounded >= 0 {
			cells[4] = fmt.Sprintf("%.2g", x.Unrounded)
		}
		if x.Seconds > 0 && x.With > 0 && x.In16 > 0 {
			cells[5] = fmt.Sprintf("%.1f", x.Flops/x.Seconds/1e12)
			for j, s := range []float64{x.Seconds, x.With, x.In16} {
				cells[6+j] = fmt.Sprintf("%.1f", s*1e6)
			}
			cells[9] = fmt.Sprintf("%.2f", x.In16/x.With)
		}
		if x.bad() {
			r.State = "failed"
			r.Why += fmt.Sprintf("product in 8 bits of %s on %s: error %.3g %s; ", x.Types, x.Size, x.Error, x.Why)
		}
		r.row(cells...)
	}
}
