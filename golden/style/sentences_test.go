package style_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
)

// README answers a question on its first screen, explains the terms of this answer where they first appear, and stays
// short.
func TestPagesReadme(t *testing.T) {
	const longest = 150 // lines
	page := harness.DocPages(t)["README.md"]
	if n := strings.Count(page, "\n"); n > longest {
		t.Errorf("README.md has %d lines; at most %d", n, longest)
	}
	_, after, ok := strings.Cut(page, "\n$ planc plan ")
	if !ok {
		t.Fatal("README.md does not start with an answer of planc plan")
	}
	screen, text, _ := strings.Cut(after, "\n```\n")
	text, _, _ = strings.Cut(text, "\n## ")
	for _, term := range []string{"± 10 %", "fits (margin assumed)", "fits (p ", "exact"} {
		if !regexp.MustCompile(`(?m)^- \*\*` + regexp.QuoteMeta(term)).MatchString(text) {
			t.Errorf("README.md does not explain %q in the list below its first screen", term)
		}
		if !strings.Contains(screen, term) && term != "fits (p " {
			t.Errorf("README.md explains %q, which its first screen does not have", term)
		}
	}
}

// The sentences of pages are short, in words: half of those of a page, and nine in ten.
func TestPagesSentences(t *testing.T) {
	const median, p90 = 18, 26
	for name, page := range harness.DocPages(t) {
		var lengths []int
		for _, s := range sentences(page) {
			lengths = append(lengths, len(strings.Fields(s)))
		}
		slices.Sort(lengths)
		if len(lengths) < 10 || slices.Contains(unfinishedPages, name) {
			continue
		}
		half, ninth := lengths[len(lengths)/2], lengths[len(lengths)*9/10]
		if half > median || ninth > p90 {
			t.Errorf("%s: sentences have %d words in the median, 90th percentile %d; at most %d and %d", name, half,
				ninth, median, p90)
		}
		t.Logf("%-32s %4d sentences: median %d words, 90th percentile %d", name, len(lengths), half, ninth)
	}
}

// sentences returns the sentences of a page's prose. Code counts as one word, a list item as at least one sentence.
func sentences(page string) (out []string) {
	page = made.ReplaceAllString(page, "")
	page = regexp.MustCompile(`(?m)^(\||    |\t|#).*$`).ReplaceAllString(page, "\n")
	page = regexp.MustCompile("`[^`\n]*`").ReplaceAllString(page, "CODE")
	page = regexp.MustCompile(`(?m)^ *([-*]|\d\.) `).ReplaceAllString(page, "\n\n")
	for _, paragraph := range strings.Split(page, "\n\n") {
		text := regexp.MustCompile(`([.:;?!])\s+`).ReplaceAllString(paragraph, "$1\x00")
		for _, s := range strings.Split(text, "\x00") {
			if len(strings.Fields(s)) > 2 {
				out = append(out, s)
			}
		}
	}
	return out
}
