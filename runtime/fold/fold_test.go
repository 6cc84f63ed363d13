package fold

import (
	"strings"
	"testing"
)

// A word that is wider than the screen stays whole, and lines that are laid out stay as they are.
func TestLines(t *testing.T) {
	long := strings.Repeat("x", 100)
	for text, want := range map[string]string{
		"":                                        "",
		"short":                                   "short",
		"a  b/x " + long:                          "a  b/x\n    " + long,
		"a " + long + " b":                        "a\n    " + long + "\n    b",
		"  nearest  " + long + " laid out":        "  nearest  " + long + " laid out",
		strings.Repeat("ab ", 25) + "is 12 GiB":   strings.TrimSpace(strings.Repeat("ab ", 25)) + " is\n    12 GiB",
		strings.Repeat("ab ", 25) + "is 12 min":   strings.TrimSpace(strings.Repeat("ab ", 25)) + " is\n    12 min",
		strings.Repeat("ab ", 25) + "is 25 h.":    strings.TrimSpace(strings.Repeat("ab ", 25)) + " is\n    25 h.",
		strings.Repeat("ab ", 25) + "is 600 GB/s": strings.TrimSpace(strings.Repeat("ab ", 25)) + " is\n    600 GB/s",
		strings.Repeat("日本 ", 17) + "\nab":        strings.TrimSpace(strings.Repeat("日本 ", 16)) + "\n    日本 \nab",
	} {
		if got := Lines(text, Columns, Indent); got != want {
			t.Errorf("%q is\n%s\nwant\n%s", text, got, want)
		}
	}
	if got := Lines("memory  predicted one two", 20, 8); got != "memory  predicted\n        one two" {
		t.Errorf("with its own indent it is\n%s", got)
	}
}
