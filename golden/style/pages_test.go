package style_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/planc-dev/planc/golden/internal/harness"
)

// pageWidth is how wide a page's prose is at most. Tables, code and what is made from tables may be wider.
const pageWidth = 120

var made = regexp.MustCompile(`(?s)<!-- (table|validate) .*?<!-- end|(?m:^(?:\x60\x60\x60).*?^\x60\x60\x60)`)

// Prose of pages is wrapped, so that a change of a sentence is a change of its lines.
func TestPagesWrap(t *testing.T) {
	for name, text := range harness.DocPages(t) {
		if name == "docs/cli.md" { // in the words of help, whose lines are its own
			continue
		}
		text = made.ReplaceAllStringFunc(text, func(s string) string {
			return strings.Repeat("\n", strings.Count(s, "\n"))
		})
		at := 0
		for line := range strings.Lines(text) {
			at++
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > pageWidth && strings.ContainsRune(line,
				' ') && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "    ") {
				t.Errorf("%s:%d: %d characters; prose is wrapped at %d", name, at, n, pageWidth)
			}
		}
	}
}
