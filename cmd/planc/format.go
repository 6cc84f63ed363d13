package main

import (
	"strings"

	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/fold"
)

// The screens write numbers with package quantity, as the planner's messages do.

func grouped[N int | int64](n N) string { return quantity.Count(n) }

func seconds(v float64) string { return quantity.Seconds(v) }

func size(n int64) string { return quantity.Bytes(n) }

func percent(f float64) string { return quantity.Percent(f) }

func signed(f float64) string { return quantity.Signed(f) }

const gib = 1 << 30

// sizes formats two sizes with as many decimals as are needed to distinguish them, such as 11.218 GiB and 11.219 GiB,
// but at most as fit into a column.
func sizes(a, b int64) (string, string) {
	const maxWidth = 11
	for more := 0; ; more++ {
		if x, y := quantity.BytesTo(a, more), quantity.BytesTo(b, more); x != y || a == b || len(x) >= maxWidth {
			return x, y
		}
	}
}

// pad fills a text to n columns with spaces on the right; lpad on the left.
func pad(s string, n int) string  { return s + strings.Repeat(" ", max(0, n-width(s))) }
func lpad(s string, n int) string { return strings.Repeat(" ", max(0, n-width(s))) + s }

// flow writes words after a label and wraps lines at the screen's width, with a hanging indent. gap separates words.
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

// prose is flow for the words of a sentence.
func prose(label string, indent int, text string) string {
	return flow(label, indent, " ", sentenceWords(text))
}

// sentenceWords splits a sentence into words. A number and its unit are one word.
func sentenceWords(text string) (words []string) { return fold.WithUnits(strings.Fields(text)) }
