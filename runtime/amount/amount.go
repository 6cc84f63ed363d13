// Package amount writes counts for people: 85.9 k, 8.03 B. Training binaries and planc itself print by it, so that one
// number has one form everywhere.
//
// It knows powers of a thousand only; memory and durations are written by those who print them.
package amount

import (
	"math"
	"strconv"
	"strings"
)

// scales are the units, with the space that stands before them.
var scales = []struct {
	suffix string
	size   float64
}{{" T", 1e12}, {" B", 1e9}, {" M", 1e6}, {" k", 1e3}}

// Digits is v to n significant digits, but never less than its whole part, without an exponent.
func Digits(v float64, n int) string {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', n, 64), 64)
	if err != nil || r == 0 || math.IsNaN(r) || math.IsInf(r, 0) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', max(0, n-1-int(math.Floor(math.Log10(math.Abs(r))))), 64)
}

// Short is an amount with k, M, B or T to three digits: 85.9 k. Small whole numbers are exact: 131.
func Short(v float64) string {
	for _, s := range scales {
		if v >= s.size*0.9995 {
			return Digits(v/s.size, 3) + s.suffix
		}
	}
	if v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return Digits(v, 3)
}

// Params is a number of parameters, with one decimal at least: 8.03 B, 174.6 B. Below a thousand it is exact.
func Params(n int64) string {
	v := float64(n)
	for _, s := range scales {
		if v >= s.size*0.9995 {
			text := Digits(v/s.size, 3)
			if !strings.Contains(text, ".") {
				text = strconv.FormatFloat(v/s.size, 'f', 1, 64)
			}
			return text + s.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}
