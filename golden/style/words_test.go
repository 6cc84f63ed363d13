package style_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
)

// stray is a word that docs/words.md forbids, and what to write.
type stray struct {
	word, say string
	pattern   *regexp.Regexp
}

// wordTable returns the rows of the tables of docs/words.md whose first column has this heading. Tables have two
// columns.
func wordTable(t *testing.T, heading string) (rows []stray) {
	t.Helper()
	page, ok := harness.DocPages(t)["docs/words.md"]
	if !ok {
		t.Fatal("no docs/words.md")
	}
	table := ""
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 4 {
			table = ""
			continue
		}
		first, second := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])
		switch {
		case table == "":
			table = first
		case table == heading && !strings.HasPrefix(first, "---"):
			pattern := strings.ReplaceAll(regexp.QuoteMeta(first), " ", `\s+`)
			rows = append(rows, stray{first, second, regexp.MustCompile(`(?i)\b` + pattern + `(s|es)?\b`)})
		}
	}
	if len(rows) < 10 {
		t.Fatalf("docs/words.md has %d rows under %q: is the table complete?", len(rows), heading)
	}
	return rows
}

// Each thing has one word, in comments and on pages.
func TestWords(t *testing.T) {
	wordTable(t, "word")
	forbidden := wordTable(t, "stray")
	for name, page := range harness.DocPages(t) {
		if name == "docs/words.md" {
			continue
		}
		for _, f := range strays(forbidden, 1, harness.Prose(page), nil) {
			t.Errorf("%s:%s", name, f)
		}
	}
	for _, s := range harness.Sources(t) {
		if s.Generated {
			continue
		}
		names := s.Identifiers()
		for _, group := range s.File.Comments {
			for _, c := range group.List {
				text := regexp.MustCompile("`[^`\n]*`").ReplaceAllString(c.Text, "")
				for _, f := range strays(forbidden, s.Set.Position(c.Pos()).Line, text, names) {
					t.Errorf("%s:%s", s.Path, f)
				}
			}
		}
	}
}

// strays returns the forbidden words of a text that starts at a line of a file, each with its line and what to write.
// It skips words that are in names, the file's identifiers.
func strays(forbidden []stray, line int, text string, names map[string]bool) (found []string) {
	for _, s := range forbidden {
		for _, at := range s.pattern.FindAllStringIndex(text, -1) {
			if word := text[at[0]:at[1]]; !names[word] {
				found = append(found, fmt.Sprintf("%d: %q; write %s (docs/words.md)",
					line+strings.Count(text[:at[0]], "\n"), word, s.say))
			}
		}
	}
	return found
}
