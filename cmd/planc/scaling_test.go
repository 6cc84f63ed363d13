package main

import (
	"math"
	"testing"
)

// A law is said of rows only where none of them says what it denies.
func TestAmdahlDescribes(t *testing.T) {
	for _, c := range []struct {
		s    float64
		slow []float64 // of 2, 4 and 8 times the devices
		want bool
	}{
		{0.01, []float64{1.01, 1.03, 1.07}, true},
		{0.01, []float64{1.004, 1.02, 1.1}, true},
		{0.01, []float64{0.985, 1.02, 1.1}, true}, // 102 % in the table
		{0.01, []float64{0.93, 0.99, 1.12}, false},
		{-0.01, []float64{0.99, 0.97, 0.93}, true},
		{-0.001, []float64{0.95, 0.98, 1.05}, false},
		{0.2, []float64{1.2, 1.6, 1.5}, false}, // 5.3 times as fast, and the law ends at 5
		{0.01, []float64{1.01, 1.5, 1.07}, false},
	} {
		more := []float64{1, 3, 7}
		residual := 0.0
		for i, x := range more {
			e := c.slow[i]/(1+c.s*x) - 1
			residual += e * e / 3
		}
		if got := describes(c.s, math.Sqrt(residual), more, c.slow); got != c.want {
			t.Errorf("%v of %v: %v", c.s, c.slow, got)
		}
	}
}

// Amdahl's law is found again in times that follow it, and in noise about it.
func TestAmdahl(t *testing.T) {
	for _, want := range []float64{0, 1e-4, 0.02, 0.3, -1e-5} {
		var more, slow []float64
		for n := 2.0; n <= 2048; n *= 2 {
			more = append(more, n-1)
			slow = append(slow, n*(want+(1-want)/n))
		}
		if s, residual := amdahl(more, slow); math.Abs(s-want) > 1e-6*math.Max(want, 1e-2) || residual > 1e-4 {
			t.Errorf("serial fraction %v is found as %v, off by %v", want, s, residual)
		}
		for i := range slow {
			slow[i] *= 1 + 0.1*float64(i%2*2-1)
		}
		if s, residual := amdahl(more, slow); want >= 0.02 && math.Abs(s/want-1) > 0.1 || residual < 0.05 ||
			residual > 0.15 {
			t.Errorf("with noise of 10 %%, serial fraction %v is found as %v, off by %v", want, s, residual)
		}
	}
}

// What people read of the law: its fraction and its limit, or that no fraction fits.
func TestAmdahlSentence(t *testing.T) {
	limit := 80.0
	for _, c := range []struct {
		s    scalingDoc
		want string
	}{
		{scalingDoc{From: 8, SerialFraction: 0.0125, Residual: 0.013, Fits: true, Limit: &limit},
			"serial fraction 1.25 %, within 1.3 %: at most 80 × as fast as 8"},
		{scalingDoc{From: 8, SerialFraction: -0.01, Residual: 0.002, Fits: true},
			"serial fraction -1 %, within 0.2 %: less than none, as more devices have more memory"},
		{scalingDoc{From: 64, SerialFraction: 0.002, Residual: 0.07, least: ownFraction{128, -0.0705},
			most: ownFraction{4096, 0.00327}},
			"no serial fraction fits: 128 do more than their share, and 4,096 are as fast as if 0.327 % of the work " +
				"were serial"},
		{scalingDoc{From: 8, SerialFraction: 1.4, Residual: 0, least: ownFraction{16, 1.4}, most: ownFraction{16, 1.4}},
			"no serial fraction fits: more devices are no faster than 8"},
		{scalingDoc{From: 8, SerialFraction: -0.5, Residual: 0.2, least: ownFraction{16, -0.6},
			most: ownFraction{16, -0.6}},
			"no serial fraction fits: 16 do more than their share"},
		{scalingDoc{From: 8, SerialFraction: -0.3, Residual: 0.2, least: ownFraction{16, -0.6},
			most: ownFraction{32, -0.1}},
			"no serial fraction fits: 16 and 32 each do more than their share"},
		{scalingDoc{From: 8, SerialFraction: 0.3, Residual: 0.2, least: ownFraction{16, 0.1},
			most: ownFraction{32, 0.5}},
			"no serial fraction fits: 16 are as fast as if 10 % of the work were serial, but 32 are as fast as if 50 " +
				"% of the work were serial"},
		{scalingDoc{From: 1, SerialFraction: 0.9, Residual: 0.2, least: ownFraction{2, 0.701},
			most: ownFraction{8, 1.1}},
			"no serial fraction fits: 2 are as fast as if 70.1 % of the work were serial, but 8 are no faster than 1"},
		{scalingDoc{From: 8, SerialFraction: 0.1, Residual: 0, least: ownFraction{16, 0.1}, most: ownFraction{16, 0.1}},
			"no serial fraction fits: 16 are as fast as if 10 % of the work were serial"},
	} {
		if got := c.s.sentence(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
