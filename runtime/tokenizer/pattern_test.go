package tokenizer

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// Without lookahead, Go's regexp has the same syntax and the same matches.
func TestPatternsMatchAsGoRegexps(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	patterns := []string{`a|ab|b+`, `(?i:'s|'re)|[^b\s]?a+`, `a{1,2}b?| b|\s+$|c`, `[a-b]*c|(?:ab|a)?b`, `\p{Lu}\P{L}+|[^\d]`,
		`[\x{61}\-\]]+|\.`, `(ab|a)(c)?b`}
	const alphabet = "aabbbcA1 \n's'R-.]éſ"
	for _, text := range patterns {
		p, err := compilePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		want := regexp.MustCompile(`^(?:` + text + `)`)
		for range 2000 {
			s := ""
			for range 1 + random.IntN(6) {
				r := []rune(alphabet)
				s += string(r[random.IntN(len(r))])
			}
			end := -1
			if m := want.FindStringIndex(s); m != nil && m[1] > 0 {
				end = m[1]
			}
			if got := p.match([]byte(s), 0); got != end && !(end < 0 && got > 0) {
				t.Fatalf("%s matches %q to %d; regexp to %d", text, s, got, end)
			}
		}
	}
}

func TestLookaheadAndPossessive(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		end           int
	}{
		{`\s+(?!\S)|\s+`, "   a", 2},
		{`\s+(?!\S)|\s+`, " a", 1},
		{`\s+(?!\S)`, "   ", 3},
		{`a+(?=b)`, "aab", 2},
		{`a+(?=b)`, "aac", -1},
		{`a++ab`, "aab", -1},
		{`a+ab`, "aab", 3},
		{`[^\r\n\p{L}\p{N}]?+\p{L}++`, " ab1", 3},
	} {
		p, err := compilePattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if end := p.match([]byte(c.text), 0); end != c.end {
			t.Errorf("%s matches %q to %d, not %d", c.pattern, c.text, end, c.end)
		}
	}
}

func TestUnsupportedPatternsAreRefused(t *testing.T) {
	for pattern, what := range map[string]string{
		`(?<=a)b`: `a group (?<`, `a*?`: "a lazy quantifier", `(ab)+`: "a repeated group", `[a&&b]`: "a class inside a class",
		`\w+`: `the escape \w`, `^a`: "^", `\p{Nope}`: "the property Nope", `(a`: "a group without )", `[a`: "a class without ]",
		`a)`: "an unmatched )", `a{2`: "a quantifier {2",
	} {
		_, err := compilePattern(pattern)
		if err == nil || !strings.Contains(err.Error(), " has "+what+", which is not supported") {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}

func TestWhichPatternsAllowCuts(t *testing.T) {
	for pattern, want := range map[string]bool{
		gpt2Pattern: true, cl100kPattern: true, o200kPattern: true, `\w`: false,
		`\p{L}+\s|.`: false, `[a-z ]+`: false, `\p{L}+(?! )|\s`: false, `[A-Za-z]+|[0-9]| |\n`: true, `[a-z]+| |\n`: false,
	} {
		p, err := compilePattern(pattern)
		if got := err == nil && p.cuts && p.matchesEach(); got != want {
			t.Errorf("%s allows cuts: %t", pattern, got)
		}
	}
}
