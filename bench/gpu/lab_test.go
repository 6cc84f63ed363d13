//go:build cuda && linux

package main

import (
	"encoding/json"
	"math"
	"testing"
)

// A kernel whose results are no numbers is a row like others: what a check has found is written down with it.
func TestOffIsWritten(t *testing.T) {
	if x := off([]float64{3, 4.5}, []float64{3, 4}); x != 0.1 {
		t.Errorf("%g, want half of five", x)
	}
	for _, got := range [][]float64{{math.NaN(), 1}, {math.Inf(1), 1}, {1e200, 1}, {1}} {
		m := Measured{Name: "gemm", Bound: 1, Error: off(got, []float64{1, 1})}
		var r Result
		tellKernels(&r, []Measured{m})
		text, err := json.Marshal(r)
		if err != nil || r.State != "failed" {
			t.Errorf("%v: %s, %v: %s", got, r.State, err, text)
		}
	}
	if x := off([]float64{1}, []float64{0}); x != nothing {
		t.Errorf("of zero: %g", x)
	}
}
