package main

import "github.com/planc-dev/planc/runtime/fold"

// screenWidth is the width of a screen in columns.
const screenWidth = fold.Columns

// messageWidth is the maximal width of a line of a message in columns. Tests that compare messages increase it.
var messageWidth = screenWidth

// folded wraps the lines of a message at the width of a screen.
func folded(text string) string { return fold.Lines(text, messageWidth, fold.Indent) }

// width returns the number of columns of a text.
func width(s string) int { return fold.Width(s) }

// clip shortens a text to at most n columns, with an ellipsis at the end.
func clip(s string, n int) string {
	if width(s) <= n {
		return s
	}
	at := 0
	for i, r := range s {
		at += width(string(r))
		if at > n-1 {
			return s[:i] + "…"
		}
	}
	return s
}
