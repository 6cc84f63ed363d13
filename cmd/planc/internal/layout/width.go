package layout

import "github.com/planc-dev/planc/runtime/fold"

// ScreenWidth is the width of a screen in columns.
const ScreenWidth = fold.Columns

// MessageWidth is the maximal width of a line of a message in columns. Tests that compare messages increase it.
var MessageWidth = ScreenWidth

// Fold wraps the lines of a message at the width of a screen.
func Fold(text string) string { return fold.Lines(text, MessageWidth, fold.Indent) }

// Width returns the number of columns of a text.
func Width(s string) int { return fold.Width(s) }

// Clip shortens a text to at most n columns, with an ellipsis at the end.
func Clip(s string, n int) string {
	if Width(s) <= n {
		return s
	}
	at := 0
	for i, r := range s {
		at += Width(string(r))
		if at > n-1 {
			return s[:i] + "…"
		}
	}
	return s
}
