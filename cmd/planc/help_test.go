package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/layout"
)

// Help fits a terminal of 80 columns: its words and its flags. A command that one copies stays on one line.
func TestHelpFitsTheScreen(t *testing.T) {
	asks := [][]string{{"--help"}, {"help", "exit"}, {"help", "rows"}}
	for _, c := range (&app{Console: &console.Console{}}).root().Commands() {
		asks = append(asks, []string{c.Name(), "--help"})
	}
	for _, args := range asks {
		var out, failed bytes.Buffer
		if code := run(args, strings.NewReader(""), &out, &failed); code != 0 {
			t.Fatalf("planc %v: %d %s", args, code, &failed)
		}
		if out.Len() == 0 {
			t.Errorf("planc %v says nothing", args)
		}
		const limit = 9 // lines of a paragraph that one still reads
		words, _, _ := strings.Cut(out.String(), "\nUsage:")
		for paragraph := range strings.SplitSeq(words, "\n\n") {
			if n := strings.Count(paragraph, "\n"); args[0] != "help" && n >= limit {
				t.Errorf("planc %v: a paragraph of %d lines:\n%s", args, n+1, paragraph)
			}
		}
		for line := range strings.Lines(out.String()) {
			if w := layout.Width(strings.TrimSuffix(line, "\n")); w > layout.ScreenWidth &&
				!strings.HasPrefix(line, "  planc ") {
				t.Errorf("planc %v: %d columns: %s", args, w, line)
			}
		}
	}
}
