package main

import (
	"strings"
	"testing"
)

func TestNumbers(t *testing.T) {
	of := func(a, b string) string { return a + ", " + b }
	for _, c := range []struct{ got, want string }{
		{grouped(0), "0"}, {grouped(999), "999"}, {grouped(38016), "38,016"}, {grouped(-1234567), "-1,234,567"},
		{seconds(12.2), "12.20 s"}, {seconds(0.52), "0.520 s"}, {seconds(0.0413), "41.3 ms"},
		{seconds(-0.62), "-0.620 s"}, {seconds(42e-6), "42.0 µs"}, {seconds(0), "0.00 s"},
		{seconds(3599.99), "3599.99 s"}, {seconds(3600), "1 h 0 min"}, {seconds(27946.5), "7 h 46 min"},
		{seconds(7199.9), "2 h 0 min"}, {seconds(-86400 * 50), "-1,200 h 0 min"},
		{size(76665000000), "71.4 GiB"}, {size(5 << 20), "5.0 MiB"}, {size(1536), "1.5 KiB"},
		{size(3 << 40), "3.00 TiB"}, {size(0), "0 B"}, {size(512), "512 B"},
		{of(sizes(gib, 2*gib)), "1.0 GiB, 2.0 GiB"}, {of(sizes(gib, gib)), "1.0 GiB, 1.0 GiB"}, {of(sizes(0, gib)),
			"0 B, 1.0 GiB"},
		{of(sizes(12045235814, 12046309556)), "11.218 GiB, 11.219 GiB"}, {of(sizes(400*gib, 400*gib+1)),
			"400.000 GiB, 400.000 GiB"},
		{signed(0.03), "+3.0 %"}, {signed(-0.011), "-1.1 %"}, {percent(0.593), "59.3 %"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// A text's width is what a terminal gives it.
func TestWidth(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{{"", 0}, {"dp 4 · tp 2", 11}, {"8×1", 3}, {"日本語", 6}, {"e\u0301", 1}, {"한글 ok", 7}, {"\U0001f600", 2},
		{"…–±µ", 4}} {
		if got := width(c.text); got != c.want {
			t.Errorf("%q is %d columns wide, want %d", c.text, got, c.want)
		}
		if got := width(pad(c.text, 12)); got != 12 {
			t.Errorf("%q padded is %d columns wide", c.text, got)
		}
	}
	for _, c := range []struct{ text, want string }{{"short", "short"}, {"a long name", "a lon…"}, {"日本語モデル", "日本…"}} {
		if got := clip(c.text, 6); got != c.want || width(got) > 6 {
			t.Errorf("%q clipped is %q, want %q", c.text, got, c.want)
		}
	}
}

// Text stays within the screen, and a number with its unit.
func TestProse(t *testing.T) {
	text := strings.Repeat("zero 1 needs 97.6 GiB, which is 22.5 GiB over; ", 5)
	for line := range strings.Lines(prose("WHY", 9, text)) {
		line = strings.TrimSuffix(line, "\n")
		if width(line) > screenWidth {
			t.Errorf("%d columns: %q", width(line), line)
		}
		if rest := strings.TrimLeft(line, " "); strings.HasPrefix(rest, "GiB") || strings.HasSuffix(line, " 97.6") {
			t.Errorf("a number lost its unit: %q", line)
		}
	}
}
