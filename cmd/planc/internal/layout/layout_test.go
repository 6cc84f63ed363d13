package layout

import (
	"strings"
	"testing"
)

// A text's width is what a terminal gives it.
func TestWidth(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{{"", 0}, {"dp 4 · tp 2", 11}, {"8×1", 3}, {"日本語", 6}, {"e\u0301", 1}, {"한글 ok", 7}, {"\U0001f600", 2},
		{"…–±µ", 4}} {
		if got := Width(c.text); got != c.want {
			t.Errorf("%q is %d columns wide, want %d", c.text, got, c.want)
		}
		if got := Width(Pad(c.text, 12)); got != 12 {
			t.Errorf("%q padded is %d columns wide", c.text, got)
		}
	}
	for _, c := range []struct{ text, want string }{{"short", "short"}, {"a long name", "a lon…"}, {"日本語モデル", "日本…"}} {
		if got := Clip(c.text, 6); got != c.want || Width(got) > 6 {
			t.Errorf("%q clipped is %q, want %q", c.text, got, c.want)
		}
	}
}

// Text stays within the screen, and a number with its unit.
func TestProse(t *testing.T) {
	text := strings.Repeat("zero 1 needs 97.6 GiB, which is 22.5 GiB over; ", 5)
	for line := range strings.Lines(Prose("WHY", 9, text)) {
		line = strings.TrimSuffix(line, "\n")
		if Width(line) > ScreenWidth {
			t.Errorf("%d columns: %q", Width(line), line)
		}
		if rest := strings.TrimLeft(line, " "); strings.HasPrefix(rest, "GiB") || strings.HasSuffix(line, " 97.6") {
			t.Errorf("a number lost its unit: %q", line)
		}
	}
}

// A wide cell of the first column has a line of its own, and does not make the others narrow.
func TestWideCells(t *testing.T) {
	columns := []Column{LeftUpTo("KEY", 6), Left("USE")}
	got := Table(columns, [][]string{{"short", "a"}, {"much longer", "b"}})
	const want = "KEY    USE\nshort  a\nmuch longer\n       b\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
