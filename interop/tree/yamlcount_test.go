package tree

import (
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v4"
)

// countNodes returns the number of values that the library reads, keys included.
func countNodes(y *yaml.Node) int {
	n := 1
	for _, c := range y.Content {
		n += countNodes(c)
	}
	return n
}

// FuzzLeastValues wants that the fast count of values never exceeds the number of values that the library reads. A file
// that has few values would be refused otherwise.
func FuzzLeastValues(f *testing.F) {
	for _, text := range yamlTexts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var y yaml.Node
		if strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\r") || yaml.Load([]byte(text), &y) != nil {
			return
		}
		if got, all := leastValues(text, len(text)), countNodes(&y); got > all {
			t.Errorf("%q: %d, the library reads %d values", text, got, all)
		}
	})
}

var yamlTexts = []string{
	"a: 1\nb: [1, 2, {c: 'd, e'}]\n", "a: {\"b\":\"c, d: e\", 'f':'g, h'}\n", "a: |\n  - b: c\n  - d\ne: f\n",
	"- a: |\n    b: c\n  d: >-\n    - e\n- f\n", "a: x\n  - y\n  - z\nb: c\n", "- x\n  - y\n  - z\n",
	"- a: x\n   - y\n   - z\n  b: c\n",
	"a: \"b\n  c: d\n  - e\" # f: g\nh: i\n", "a: &b 'c: d, e: f'\ng: !!str \"h: i\"\n",
	"a: [&b 'c, d', *b, !!str 'e, f']\n", "a: # b: c\n  d: e\n", "? a\n: b\n", "a: 'it''s: b'\nc: don't # d: e\n",
	"a: b #c: d\ne: -f - g\n", "a:\n- b\n-\n- - c\n  - d\n", "a: [\n  b: c,\n  # d, e, f\n  g,\n]\n",
	"a: &x {b: 1}\nc: {<<: *x, d: 2}\n", "a: http://b:c/, d\n", "---\na: >\n b: c\n\n\n d: e\nf: g\n...\n",
}

// Every key and every item counts, so that a file with too many of them is refused without reading it.
func TestLeastValuesCountsKeysAndItems(t *testing.T) {
	for text, want := range map[string]int{
		"a: 1\n": 1, "- 1\n": 1, "- a: 1\n  b: 2\n": 3, "[1,2,": 2, "{a: 1, b: 2, ": 4, `{"a":"b","c":"d",`: 4,
		"a:\n  b:\n    - c\n": 3, "a: 'x'\n": 1, "a:\n- b\n": 2, "a: [1,\n  2,\n": 3, "a: |\n x\nb: 1\n": 2,
	} {
		if got := leastValues(strings.Repeat(text, 10), 1000); got != 10*want {
			t.Errorf("%q: %d, want %d", text, got, 10*want)
		}
	}
}
