package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/runtime/amount"
	"github.com/planc-dev/planc/runtime/fold"
)

// grouped is a count with commas: 38,016.
func grouped[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// seconds is a duration as people read it: 12.20 s, 41.3 ms, 7 h 46 min.
func seconds(v float64) string {
	switch a := math.Abs(v); {
	case a >= secondsOfHour:
		minutes := math.Round(a / 60)
		return fmt.Sprintf("%s%s h %.0f min", sign(v), grouped(int64(minutes)/60), math.Mod(minutes, 60))
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

// secondsOfHour is from where on hundredths of a second say nothing.
const secondsOfHour = 60 * 60

func sign(v float64) string {
	if v < 0 {
		return "-"
	}
	return ""
}

const gib = 1 << 30

// size is an amount of memory: 71.4 GiB; small ones in MiB, KiB or B.
func size(n int64) string { return sizeWithDigits(n, 0) }

// sizeWithDigits is size with more decimals.
func sizeWithDigits(n int64, more int) string {
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

// sizes are two amounts beside each other: with as many decimals as tell them apart, 11.218 GiB and 11.219 GiB, or as a
// column has room for.
func sizes(a, b int64) (string, string) {
	const room = 11
	for more := 0; ; more++ {
		if x, y := sizeWithDigits(a, more), sizeWithDigits(b, more); x != y || a == b || len(x) >= room {
			return x, y
		}
	}
}

// percent is a fraction as 87.0 %.
func percent(f float64) string { return strconv.FormatFloat(100*f, 'f', 1, 64) + " %" }

// signed is percent with its sign.
func signed(f float64) string {
	if f < 0 {
		return percent(f)
	}
	return "+" + percent(f)
}

// pad fills a text to n columns on the right; lpad on the left.
func pad(s string, n int) string  { return s + strings.Repeat(" ", max(0, n-width(s))) }
func lpad(s string, n int) string { return strings.Repeat(" ", max(0, n-width(s))) + s }

// flow sets words after a label, on further lines indented like the first; gap is between two words.
func flow(label string, indent int, gap string, words []string) string {
	return flowTo(label, indent, screenWidth, gap, words)
}

func flowTo(label string, indent, right int, gap string, words []string) string {
	var b strings.Builder
	line := pad(label, indent)
	begin := true
	for _, w := range words {
		if !begin && width(line)+width(gap)+width(w) > right {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line, begin = strings.Repeat(" ", indent), true
		}
		if !begin {
			line += gap
		}
		line, begin = line+w, false
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
	return b.String()
}

// prose is flow of a sentence.
func prose(label string, indent int, text string) string {
	return flow(label, indent, " ", sentenceWords(text))
}

// sentenceWords are a sentence's words; a number and its unit are one.
func sentenceWords(text string) (words []string) { return fold.WithUnits(strings.Fields(text)) }
