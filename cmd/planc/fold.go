package main

import "github.com/planc-dev/planc/runtime/fold"

// screenWidth is how many columns a screen has.
const screenWidth = fold.Columns

// messageWidth is how wide a line of a message is at most: that of all screens. Tests that compare messages have more
// of it.
var messageWidth = screenWidth

// folded breaks the lines of a message that are wider than a screen between words.
func folded(text string) string { return fold.Lines(text, messageWidth, fold.Indent) }

// width is the number of columns of a text.
func width(s string) int { return fold.Width(s) }

// clip is a text of at most n columns; what is longer ends in an ellipsis.
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
