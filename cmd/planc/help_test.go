package main

import (
	"bytes"
	"strings"
	"testing"
)

// Help fits a terminal of 80 columns: its words and its flags. A command that one copies stays on one line.
func TestHelpFitsTheScreen(t *testing.T) {
	asks := [][]string{{"--help"}, {"help", "exit"}, {"help", "rows"}}
	for _, c := range (&app{}).root().Commands() {
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
		for line := range strings.Lines(out.String()) {
			if w := width(strings.TrimSuffix(line, "\n")); w > screenWidth && !strings.HasPrefix(line, "  planc ") {
				t.Errorf("planc %v: %d columns: %s", args, w, line)
			}
		}
	}
}
