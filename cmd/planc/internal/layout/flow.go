package layout

import (
	"strings"

	"github.com/planc-dev/planc/runtime/fold"
)

// Pad fills a text to n columns with spaces on the right.
func Pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-Width(s))) }

// PadLeft fills a text to n columns with spaces on the left.
func PadLeft(s string, n int) string { return strings.Repeat(" ", max(0, n-Width(s))) + s }

// Flow writes words after a label and wraps lines at the screen's width, with a hanging indent. gap separates words.
func Flow(label string, indent int, gap string, words []string) string {
	return FlowTo(label, indent, ScreenWidth, gap, words)
}

// FlowTo is Flow with lines of at most right columns.
func FlowTo(label string, indent, right int, gap string, words []string) string {
	var b strings.Builder
	line := Pad(label, indent)
	begin := true
	for _, w := range words {
		if !begin && Width(line)+Width(gap)+Width(w) > right {
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

// Prose is flow for the words of a sentence.
func Prose(label string, indent int, text string) string {
	return Flow(label, indent, " ", SentenceWords(text))
}

// SentenceWords splits a sentence into words. A number and its unit are one word.
func SentenceWords(text string) (words []string) { return fold.WithUnits(strings.Fields(text)) }

// Plural returns the form of a word that follows a number.
func Plural(n int, word string) string {
	switch {
	case n == 1:
		return word
	case strings.HasSuffix(word, "ch"):
		return word + "es"
	}
	return word + "s"
}
