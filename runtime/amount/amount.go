// Package amount formats counts for people: 85.9 k, 8.03 B. Training binaries and planc itself use it, so that a number
// looks the same everywhere.
//
// It knows only powers of a thousand. Memory sizes and durations are formatted where they are printed.
package amount

import (
	"math"
	"strconv"
	"strings"
)

// scales are the units, from the largest to the smallest. Each suffix includes the space before the unit.
var scales = []struct {
	suffix string
	size   float64
}{{" T", 1e12}, {" B", 1e9}, {" M", 1e6}, {" k", 1e3}}

// Digits formats v with n significant digits and without an exponent. It never drops digits before the decimal point.
func Digits(v float64, n int) string {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', n, 64), 64)
	if err != nil || r == 0 || math.IsNaN(r) || math.IsInf(r, 0) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', max(0, n-1-int(math.Floor(math.Log10(math.Abs(r))))), 64)
}

// Short formats an amount with three digits and k, M, B or T: 85.9 k. Whole numbers below a thousand are exact: 131.
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

// Params formats a number of parameters with at least one decimal: 8.03 B, 174.6 B. Below a thousand it is exact.
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
