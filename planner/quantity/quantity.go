// Package quantity writes durations, memory sizes, fractions and large counts for people: 41.3 ms, 71.4 GiB, +3.2 %,
// 38,016. The messages of package planner and the screens of the planc command use it, so that a number looks the same
// in both. Other counts with units of a thousand are in package amount.
package quantity

import (
	"fmt"
	"math"
	"strconv"

	"github.com/planc-dev/planc/runtime/amount"
)

// Count returns a whole number with commas: 38,016.
func Count[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Params returns a number of parameters: 8.03 B.
func Params(n int64) string { return amount.Params(n) }

// hour is the number of seconds from which a duration is written in hours and minutes.
const hour = 60 * 60

// Seconds returns a duration in its natural unit: 12.20 s, 41.3 ms, 7 h 46 min.
func Seconds(v float64) string {
	switch a := math.Abs(v); {
	case a >= hour:
		minutes := math.Round(a / 60)
		sign := ""
		if v < 0 {
			sign = "-"
		}
		return fmt.Sprintf("%s%s h %.0f min", sign, Count(int64(minutes)/60), math.Mod(minutes, 60))
	case a >= 0.9995 || a == 0:
		return strconv.FormatFloat(v, 'f', 2, 64) + " s"
	case a >= 0.09995:
		return amount.Digits(v, 3) + " s"
	case a >= 0.995e-3:
		return amount.Digits(v*1e3, 3) + " ms"
	default:
		return amount.Digits(v*1e6, 3) + " µs"
	}
}

const gib = 1 << 30

// Bytes returns a memory size: 71.4 GiB. Sizes below 0.1 GiB are in MiB, KiB or B.
func Bytes(n int64) string { return BytesTo(n, 0) }

// BytesTo returns a memory size with some more decimals than Bytes has.
func BytesTo(n int64, more int) string {
	v, a := float64(n), math.Abs(float64(n))
	switch {
	case a >= 1000*gib:
		return strconv.FormatFloat(v/(1024*gib), 'f', 2+more, 64) + " TiB"
	case a >= gib/10:
		return strconv.FormatFloat(v/gib, 'f', 1+more, 64) + " GiB"
	case a >= 1<<20:
		return strconv.FormatFloat(v/(1<<20), 'f', 1+more, 64) + " MiB"
	case a >= 1<<10:
		return strconv.FormatFloat(v/(1<<10), 'f', 1+more, 64) + " KiB"
	}
	return strconv.FormatInt(n, 10) + " B"
}

// BytesPair returns two numbers of bytes with as many decimals as are needed to tell them apart, such as 11.218 GiB and
// 11.219 GiB, but with at most 11 characters each.
func BytesPair(a, b int64) (string, string) {
	const maxWidth = 11
	for more := 0; ; more++ {
		x, y := BytesTo(a, more), BytesTo(b, more)
		if x != y || a == b || len(x) >= maxWidth {
			return x, y
		}
	}
}

// Percent returns a fraction as a percentage: 87.0 %.
func Percent(f float64) string { return strconv.FormatFloat(100*f, 'f', 1, 64) + " %" }

// Probability formats a probability below 1 with two digits: "0.97". Larger ones are "> 0.99", because no prediction is
// certain.
func Probability(p float64) string {
	const largest = 0.995
	if p >= largest {
		return "> 0.99"
	}
	return strconv.FormatFloat(p, 'f', 2, 64)
}

// Signed returns a fraction as a percentage with its sign: +3.2 %.
func Signed(f float64) string {
	if f < 0 {
		return Percent(f)
	}
	return "+" + Percent(f)
}
