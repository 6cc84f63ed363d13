//go:build unix

package tree_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/tree"
)

// largeShapes are ways in which a file can be large. Each returns a file of about n bytes.
var largeShapes = []struct {
	name   string
	syntax tree.Syntax
	text   func(n int) string
}{
	{"one string", tree.JSON, func(n int) string { return `{"a": "` + strings.Repeat("x", n) + `"}` }},
	{"escapes", tree.JSON, func(n int) string { return `{"a": "` + strings.Repeat(`\n`, n/2) + `"}` }},
	{"one word", tree.JSON, func(n int) string { return `{"a": ` + strings.Repeat("1", n) + `}` }},
	{"spaces", tree.JSON, func(n int) string { return `{"a": ` + strings.Repeat(" ", n) + `1}` }},
	{"comment", tree.JSON, func(n int) string { return `{"a": /* ` + strings.Repeat("x", n) + ` */ 1}` }},
	{"comments", tree.JSON, func(n int) string { return `{"a": ` + strings.Repeat("// x\n", n/5) + ` 1}` }},
	{"keys on one line", tree.JSON, keysJSON(" ")},
	{"keys", tree.JSON, keysJSON("\n")},
	{"long values on one line", tree.JSON, longValuesJSON(" ")},
	{"list", tree.JSON, func(n int) string { return `{"a": [` + strings.Repeat("1,", n/2) + `1]}` }},
	{"nesting", tree.JSON, func(n int) string { return strings.Repeat(`{"a":`, n/5) }},
	{"open lists", tree.JSON, func(n int) string { return strings.Repeat("[", n) }},
	{"documents", tree.JSON, func(n int) string { return strings.Repeat("{}\n", n/3) }},

	{"one line", tree.Hjson, func(n int) string { return "{" + numbered(n, "k%d: 1,") + "}" }},
	{"lines", tree.Hjson, func(n int) string { return numbered(n, "k%d: some text\n") }},
	{"text", tree.Hjson, func(n int) string { return "a: " + strings.Repeat("x, ", n/3) }},
	{"quotes of three", tree.Hjson, func(n int) string { return "{" + numbered(n, "k%d: '''x''',") + "}" }},
	{"lines in quotes", tree.Hjson, func(n int) string { return "a: '''" + strings.Repeat("x\n", n/2) + "'''" }},
	{"open key", tree.Hjson, func(n int) string { return strings.Repeat("x", n) }},
	{"nesting", tree.Hjson, func(n int) string { return strings.Repeat("{a: ", n/4) }},

	{"one string", tree.YAML, func(n int) string { return "a: '" + strings.Repeat("x", n) + "'\n" }},
	{"double quotes", tree.YAML, func(n int) string { return "a: \"" + strings.Repeat("x", n) + "\"\n" }},
	{"escapes", tree.YAML, func(n int) string { return "a: \"" + strings.Repeat(`\n`, n/2) + "\"\n" }},
	{"open quote", tree.YAML, func(n int) string { return "a: \"" + strings.Repeat("x", n) }},
	{"one word", tree.YAML, func(n int) string { return "a: " + strings.Repeat("x", n) + "\n" }},
	{"words", tree.YAML, func(n int) string { return "a: " + strings.Repeat("x ", n/2) + "\n" }},
	{"spaces", tree.YAML, func(n int) string { return "a: " + strings.Repeat(" ", n) + "b\n" }},
	{"block scalar", tree.YAML, func(n int) string { return "a: |\n" + strings.Repeat("  line\n", n/7) }},
	{"folded scalar", tree.YAML, func(n int) string { return "a: >\n" + strings.Repeat("  line\n", n/7) }},
	{"lines of a word", tree.YAML, func(n int) string { return "a: x\n" + strings.Repeat("  line\n", n/7) }},
	{"comments", tree.YAML, func(n int) string { return strings.Repeat("# comment\n", n/10) + "a: 1\n" }},
	{"empty lines", tree.YAML, func(n int) string { return strings.Repeat("\n", n) + "a: 1\n" }},
	{"keys", tree.YAML, keysYAML(": ")},
	{"keys in braces", tree.YAML, keysJSON(" ")},
	{"long values in braces", tree.YAML, longValuesJSON(" ")},
	{"list", tree.YAML, func(n int) string { return "a:\n" + strings.Repeat("- 1\n", n/4) }},
	{"flow list", tree.YAML, func(n int) string { return "a: [" + strings.Repeat("1,", n/2) + "1]\n" }},
	{"nesting", tree.YAML, func(n int) string { return strings.Repeat("- ", n/2) + "1\n" }},
	{"nesting in braces", tree.YAML, func(n int) string { return strings.Repeat("{a: ", n/4) }},
	{"indentation", tree.YAML, indented},
	{"open lists", tree.YAML, func(n int) string { return strings.Repeat("[", n) }},
	{"documents", tree.YAML, func(n int) string { return strings.Repeat("---\na: 1\n", n/9) }},
	{"aliases", tree.YAML, func(n int) string { return "a: &a [1, 2]\nb:\n" + strings.Repeat("- *a\n", n/5) }},
	{"merges", tree.YAML, func(n int) string { return "a: &a {b: 1}\nb:\n" + strings.Repeat("- <<: *a\n", n/9) }},

	{"one string", tree.TOML, func(n int) string { return "a = '" + strings.Repeat("x", n) + "'\n" }},
	{"escapes", tree.TOML, func(n int) string { return "a = \"" + strings.Repeat(`\n`, n/2) + "\"\n" }},
	{"open quote", tree.TOML, func(n int) string { return "a = \"" + strings.Repeat("x", n) }},
	{"lines", tree.TOML, func(n int) string { return "a = '''\n" + strings.Repeat("line\n", n/5) + "'''\n" }},
	{"spaces", tree.TOML, func(n int) string { return "a = " + strings.Repeat(" ", n) + "1\n" }},
	{"comments", tree.TOML, func(n int) string { return strings.Repeat("# comment\n", n/10) + "a = 1\n" }},
	{"keys", tree.TOML, keysYAML(" = ")},
	{"tables", tree.TOML, func(n int) string { return numbered(n, "[t%d]\n") }},
	{"tables of tables", tree.TOML, func(n int) string { return numbered(n, "[t.u%d]\n") }},
	{"list of tables", tree.TOML, func(n int) string { return strings.Repeat("[[t]]\na = 1\n", n/12) }},
	{"list", tree.TOML, func(n int) string { return "a = [" + strings.Repeat("1,", n/2) + "1]\n" }},
	{"inline tables", tree.TOML, func(n int) string { return "a = " + strings.Repeat("{a = ", n/5) }},
	{"open lists", tree.TOML, func(n int) string { return "a = " + strings.Repeat("[", n) }},
	{"dotted key", tree.TOML, func(n int) string { return strings.Repeat("a.", n/2) + "a = 1\n" }},
	{"long values", tree.TOML, func(n int) string { return numbered(n, "k%d = '"+strings.Repeat("x", 300)+"'\n") }},
}

func numbered(n int, line string) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, line, i)
	}
	return b.String()
}

func keysYAML(separator string) func(n int) string {
	return func(n int) string { return numbered(n, "k%d"+separator+"1\n") }
}

func keysJSON(gap string) func(n int) string {
	return func(n int) string { return "{" + numbered(n, `"k%d": 1,`+gap) + `"z": 1}` }
}

func longValuesJSON(gap string) func(n int) string {
	return func(n int) string { return "{" + numbered(n, `"k%d": "`+strings.Repeat("x", 300)+`",`+gap) + `"z": 1}` }
}

// indented returns lines that are each one level deeper than the line before.
func indented(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// cpuTime returns the least processor time that some runs of a function take. Other processes change it less than the
// time on the clock.
func cpuTime(t *testing.T, runs int, run func()) time.Duration {
	t.Helper()
	least := time.Hour
	for range runs {
		var before, after syscall.Rusage
		err := syscall.Getrusage(syscall.RUSAGE_SELF, &before)
		if err != nil {
			t.Fatal(err)
		}
		run()
		err = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
		if err != nil {
			t.Fatal(err)
		}
		took := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
		least = min(least, time.Duration(took))
	}
	return least
}

// A file that is 8 times as large takes about 8 times as long to read and to edit. If the time grew with the square of
// the size, it would take 64 times as long.
func TestTheTimeIsLinearInTheSize(t *testing.T) {
	const small, factor, limit = 32 << 10, 8, 24
	for _, shape := range largeShapes {
		edit := func(text []byte) func() {
			return func() {
				d, _ := tree.Parse(shape.syntax, names[shape.syntax], text)
				_ = d.Set(interop.Value{Key: "k7", Text: "8"})
			}
		}
		one, many := edit([]byte(shape.text(small))), edit([]byte(shape.text(small*factor)))
		base := max(cpuTime(t, 3, one), time.Millisecond)
		took := cpuTime(t, 1, many)
		if took > limit*base {
			took = min(took, cpuTime(t, 4, many)) // the collection of garbage was perhaps counted
		}
		if took > limit*base {
			t.Errorf("%s, %s: %v for %d bytes, %v for %d times as many", shape.syntax, shape.name, base, small, took,
				factor)
		}
	}
}

// A file of 2 MB is read, and its keys can be changed.
func TestLargeFilesAreRead(t *testing.T) {
	for s, text := range map[tree.Syntax]string{
		tree.JSON: `{"a": "` + strings.Repeat("x", 2_000_000) + `", "k": 7}`,
		tree.YAML: "a: '" + strings.Repeat("x", 2_000_000) + "'\nk: 7\n",
		tree.TOML: "a = '" + strings.Repeat("x", 2_000_000) + "'\nk = 7\n",
	} {
		d, diags := tree.Parse(s, names[s], []byte(text))
		err := d.Set(interop.Value{Key: "k", Text: "8"})
		got, _ := d.Get("k")
		if len(diags) > 0 || err != nil || got != "8" {
			t.Errorf("%s: %v, %v, k is %s", s, diags, err, got)
		}
	}
}

func TestFilesAboveTheLimitAreRefused(t *testing.T) {
	for _, shape := range []struct {
		syntax     tree.Syntax
		text, want string
	}{
		{tree.JSON, strings.Repeat(" ", 3<<20), "f.json:1:1: the file has 3145728 bytes; it must have at most " +
			"2097152 [TooLarge]"},
		{tree.YAML, numbered(1<<20, "k%d: 1\n"), "f.yaml:1:1: the file contains more than 50000 values or 60 levels, " +
			"with aliases expanded [TooLarge]"},
		{tree.TOML, numbered(1<<20, "k%d = 1\n"), "f.toml:10001:10: the file contains more than 10000 values or 60 " +
			"levels, with aliases expanded [TooLarge]"},
	} {
		_, diags := tree.Parse(shape.syntax, names[shape.syntax], []byte(shape.text))
		if diags.Error() != shape.want {
			t.Errorf("%s\nwant %s", diags, shape.want)
		}
	}
}

// BenchmarkParse prints the rate at which files of 2 MB, the largest that are read, are parsed or refused.
func BenchmarkParse(b *testing.B) {
	for _, shape := range largeShapes {
		b.Run(fmt.Sprint(shape.syntax, "/", shape.name), func(b *testing.B) {
			text := []byte(shape.text(2_000_000))
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				tree.Parse(shape.syntax, names[shape.syntax], text)
			}
		})
	}
}
