package style_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/planc-dev/planc/golden/internal/harness"
)

// fixedNames are exported names with an old word that generated programs or recorded measurements contain.
var fixedNames = []string{"Then", "Of"}

// unfinishedPages still contain old terms. A page leaves this list when it is rewritten.
var unfinishedPages = []string{}

// quotingPages are pages and files that contain old terms because they are about them.
var quotingPages = map[string]bool{"docs/words.md": true, "docs/style.md": true,
	"golden/style/glossary_test.go": true}

// standardPhrases contain an old term and are standard all the same.
var standardPhrases = regexp.MustCompile(
	`(?i)\b(multi-head\s+latent\s+attention|(dot|outer|inner|cross)\s+products?|products?\s+of)\b`)

// glossaryProse returns what a page says in its own words, without code, tables that are generated from code, headings
// that are names of passes, and standard phrases.
func glossaryProse(page string) string {
	page = made.ReplaceAllStringFunc(page, harness.Blank)
	page = regexp.MustCompile(`(?m)^## [a-z]+$`).ReplaceAllString(page, "")
	return standardPhrases.ReplaceAllStringFunc(harness.Prose(page), harness.Blank)
}

// Pages use the standard terms of the field and plain English.
func TestWordsOfPagesAreStandard(t *testing.T) {
	terms := wordTable(t, "old term")
	pages := harness.DocPages(t)
	for name, page := range pages {
		if quotingPages[name] {
			continue
		}
		found := strays(terms, 1, glossaryProse(page), nil)
		unfinished := slices.Contains(unfinishedPages, name)
		if unfinished && len(found) == 0 {
			t.Logf("%s has no old terms: remove it from unfinishedPages", name)
		}
		for _, f := range found {
			switch {
			case !unfinished:
				t.Errorf("%s:%s", name, f)
			case testing.Verbose():
				t.Logf("%s:%s", name, f)
			}
		}
	}
	for _, name := range unfinishedPages {
		if _, ok := pages[name]; !ok {
			t.Logf("unfinishedPages lists %s, which does not exist", name)
		}
	}
}

// Comments, messages and identifiers use them too.
func TestWordsOfCodeAreStandard(t *testing.T) {
	terms, names := wordTable(t, "old term"), wordTable(t, "old name")
	for _, s := range harness.Sources(t) {
		if s.Generated || quotingPages[s.Path] {
			continue
		}
		report := func(pos token.Pos, text string) {
			text = standardPhrases.ReplaceAllStringFunc(text, harness.Blank)
			for _, f := range strays(terms, s.Set.Position(pos).Line, text, s.Identifiers()) {
				t.Errorf("%s:%s", s.Path, f)
			}
		}
		for _, group := range s.File.Comments {
			for _, c := range group.List {
				report(c.Pos(), regexp.MustCompile("`[^`\n]*`").ReplaceAllString(c.Text, ""))
			}
		}
		ast.Inspect(s.File, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && !s.IsTest() {
				if text, err := strconv.Unquote(lit.Value); err == nil && strings.Contains(text, " ") {
					report(lit.Pos(), text)
				}
			}
			return true
		})
		for _, id := range declared(s) {
			for _, w := range names {
				isFixed := slices.Contains(fixedNames, id.Name) || hasWord(id.Name, w.say)
				if hasWord(id.Name, w.word) && !isFixed {
					t.Errorf("%s:%d: name %s; use %s (docs/words.md)", s.Path, s.Set.Position(id.Pos()).Line,
						id.Name, w.say)
				}
			}
		}
	}
}

// declared returns the identifiers that a file declares: constants, variables, types, functions, parameters and fields.
func declared(s *harness.Source) (ids []*ast.Ident) {
	ast.Inspect(s.File, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			ids = append(ids, n.Name)
		case *ast.TypeSpec:
			ids = append(ids, n.Name)
		case *ast.ValueSpec:
			ids = append(ids, n.Names...)
		case *ast.Field:
			ids = append(ids, n.Names...)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					if id, ok := e.(*ast.Ident); ok {
						ids = append(ids, id)
					}
				}
			}
		}
		return true
	})
	return ids
}

// hasWord reports whether an identifier contains a word, which may be a compound in camel case, at the borders of
// words. A word that is marked "alone" must be the whole identifier.
func hasWord(id, word string) bool {
	if whole, ok := strings.CutSuffix(word, " *alone*"); ok {
		return strings.EqualFold(id, whole)
	}
	return strings.Contains(camelWords(id), camelWords(word))
}

// camelWords returns the words of an identifier in lower case, each between spaces: " round by chance ".
func camelWords(id string) string {
	var b strings.Builder
	b.WriteByte(' ')
	for i, r := range id {
		switch {
		case r == '_':
			b.WriteByte(' ')
			continue
		case i > 0 && unicode.IsUpper(r):
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String() + " "
}
