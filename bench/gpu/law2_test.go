package main

import (
	"math"
	"testing"
)

// Law 2 detects a wrong loss, gradient or parameter, and values that are missing or not numbers.
func TestLaw2(t *testing.T) {
	want := Law2Case{ID: "a", Losses: []float64{3, 2}, Norms: []float64{1, 1}, Valid: 1.5, Norm: 2,
		Grads:  map[string][]float64{"w": {1, 1}, "k": {0, 0}},
		Params: map[string][]float64{"w": {5, 5}}, Moved: map[string]float64{"w": 0.1}}
	good := func() trace {
		return trace{ID: "a", Losses: []float64{3, 2}, Norms: []float64{1, 1}, Valid: 1.5,
			Grads: map[string][]float64{"w": {1, 1, 0}, "k": {1e-17, 0}}, Params: map[string][]float64{"w": {5, 5}}}
	}
	for name, spoil := range map[string]func(x *trace){
		"":            func(*trace) {},
		"loss":        func(x *trace) { x.Losses[1] += 1e-9 },
		"short":       func(x *trace) { x.Norms = x.Norms[:1] },
		"NaN":         func(x *trace) { x.Valid = math.NaN() },
		"gradient":    func(x *trace) { x.Grads["w"][0] += 1e-9 },
		"no gradient": func(x *trace) { delete(x.Grads, "k") },
		"parameter":   func(x *trace) { x.Params["w"][0] += 1e-10 },
		"failed":      func(x *trace) { x.Err = "no memory" },
	} {
		x := good()
		spoil(&x)
		var r Result
		if err := tabulateLaw2(&r, []Law2Case{want}, []trace{x}); (err != nil) != (name != "") {
			t.Errorf("%s: %v, %v", name, err, r.Rows)
		}
	}
	var r Result
	if _, failed := tabulateLaw2(&r, []Law2Case{want}, nil).(fault); failed {
		t.Error("what has not run has failed")
	}
}
