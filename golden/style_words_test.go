package golden_test

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// A stray is a word that docs/words.md forbids, and what to say.
type stray struct {
	word, say string
	pattern   *regexp.Regexp
}

// words reads the tables of docs/words.md: of two columns, the first headed "word" and "stray".
func words(t *testing.T) (defined []string, strays []stray) {
	t.Helper()
	page, ok := docPages(t)["docs/words.md"]
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
		case strings.HasPrefix(first, "---"):
		case table == "word":
			defined = append(defined, first)
		case table == "stray":
			pattern := strings.ReplaceAll(regexp.QuoteMeta(first), " ", `\s+`)
			strays = append(strays, stray{first, second, regexp.MustCompile(`(?i)\b` + pattern + `(s|es)?\b`)})
		}
	}
	return defined, strays
}

// prose hides what is quoted: code blocks, and code in backquotes.
func prose(page string) string {
	page = regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllStringFunc(page, blank)
	page = regexp.MustCompile(`(?m)^(    |\t).*$`).ReplaceAllStringFunc(page, blank)
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllStringFunc(page, blank)
}

// blank keeps the lines of a text, so that positions stay.
func blank(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) }

// Each thing has one word, in comments and on pages.
func TestWords(t *testing.T) {
	defined, strays := words(t)
	if len(defined) < 11 || len(strays) < 5 {
		t.Fatalf("docs/words.md defines %q and %d strays: are its tables whole?", defined, len(strays))
	}
	for name, page := range docPages(t) {
		if name != "docs/words.md" {
			findStrays(t, strays, name, 1, prose(page), nil)
		}
	}
	for _, s := range sources(t) {
		if s.generated {
			continue
		}
		names := identifiers(s)
		for _, group := range s.file.Comments {
			for _, c := range group.List {
				findStrays(t, strays, s.path, s.set.Position(c.Pos()).Line, regexp.MustCompile("`[^`\n]*`").ReplaceAllString(c.Text, ""), names)
			}
		}
	}
}

// findStrays reports the strays in a text that begins at a line of a file, but for the names that are its identifiers.
func findStrays(t *testing.T, strays []stray, file string, line int, text string, names map[string]bool) {
	t.Helper()
	for _, s := range strays {
		for _, at := range s.pattern.FindAllStringIndex(text, -1) {
			if found := text[at[0]:at[1]]; !names[found] {
				t.Errorf("%s:%d: %q; say %s (docs/words.md)", file, line+strings.Count(text[:at[0]], "\n"), found, s.say)
			}
		}
	}
}

func identifiers(s *source) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			names[id.Name] = true
		}
		return true
	})
	return names
}
