package tree_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	_ "github.com/planc-dev/planc/golden/quickfuzz"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
)

var names = map[tree.Syntax]string{tree.JSON: "f.json", tree.YAML: "f.yaml", tree.TOML: "f.toml"}

func parse(t *testing.T, s tree.Syntax, text string) *tree.Doc {
	t.Helper()
	d, diags := tree.Parse(s, names[s], []byte(text))
	if len(diags) > 0 {
		t.Fatalf("%s\n%s", diags, text)
	}
	return d
}

// sameTree is one tree in three syntaxes.
var sameTree = map[tree.Syntax]string{
	tree.JSON: `{
  // a comment
  "stage": 3, # another
  "overlap": true,
  "bf16": {"enabled": "auto", "window": 1e3,},
  "betas": [0.9, 0.95],
  "offload": {"device": "cpu"} /* the last */
}
`,
	tree.YAML: `# a comment
stage: 3  # another
overlap: true
bf16:
  enabled: auto
  window: 1e3
betas: [0.9, 0.95]
offload: {device: cpu}
`,
	tree.TOML: `# a comment
stage = 3 # another
overlap = true
bf16.enabled = "auto"
bf16.window = 1e3
betas = [0.9, 0.95]

[offload]
device = "cpu"
`,
}

func TestSyntaxesGiveTheSameTree(t *testing.T) {
	want := []string{"stage=3", "overlap=true", "bf16.enabled=auto", "bf16.window=1e3", "betas=[0.9, 0.95]",
		"offload.device=cpu"}
	for s, text := range sameTree {
		d := parse(t, s, text)
		var got []string
		d.Root.Walk(func(path string, f *tree.Field) {
			got = append(got, path+"="+f.Value.Flow())
			spelled := text[f.Value.Start:f.Value.End]
			if f.Value.Text != "" && strings.Trim(spelled, `"`) != f.Value.Text {
				t.Errorf("%s: the bytes of %s are %q", s, path, spelled)
			}
			if !strings.HasSuffix(strings.Trim(text[f.Start:f.End], `"`), f.Key) {
				t.Errorf("%s: the bytes of the key %s are %q", s, path, text[f.Start:f.End])
			}
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", s, diff)
		}
		if n, ok := d.Root.Find("bf16.window").Int(); !ok || n != 1000 {
			t.Errorf("%s: 1e3 is read as %d", s, n)
		}
	}
}

func TestPositions(t *testing.T) {
	want := map[tree.Syntax]string{tree.JSON: "f.json:5:23", tree.YAML: "f.yaml:5:12", tree.TOML: "f.toml:4:16"}
	for s, text := range sameTree {
		if got := parse(t, s, text).Root.Find("bf16.enabled").Pos.String(); got != want[s] {
			t.Errorf("bf16.enabled is at %s, want %s", got, want[s])
		}
	}
}

// edits are edits of sameTree and the lines that they change: "-" is an old line, "+" a new one.
var edits = []struct {
	key, text string
	diff      map[tree.Syntax]string
}{
	{"stage", "2", map[tree.Syntax]string{
		tree.JSON: `-  "stage": 3, # another|+  "stage": 2, # another`,
		tree.YAML: `-stage: 3  # another|+stage: 2  # another`,
		tree.TOML: `-stage = 3 # another|+stage = 2 # another`}},
	{"bf16.enabled", "true", map[tree.Syntax]string{
		tree.JSON: `-  "bf16": {"enabled": "auto", "window": 1e3,},|+  "bf16": {"enabled": true, "window": 1e3,},`,
		tree.YAML: `-  enabled: auto|+  enabled: true`,
		tree.TOML: `-bf16.enabled = "auto"|+bf16.enabled = true`}},
	{"overlap_comm", "false", map[tree.Syntax]string{
		tree.JSON: `+  "overlap_comm": false,`,
		tree.YAML: `+overlap_comm: false`,
		tree.TOML: `+overlap_comm = false`}},
	{"offload.device", "nvme", map[tree.Syntax]string{
		tree.JSON: `-  "offload": {"device": "cpu"} /* the last */|+  "offload": {"device": "nvme"} /* the last */`,
		tree.YAML: `-offload: {device: cpu}|+offload: {device: nvme}`,
		tree.TOML: `-device = "cpu"|+device = "nvme"`}},
	{"offload.pin", "true", map[tree.Syntax]string{
		tree.JSON: `-  "offload": {"device": "cpu"} /* the last */|+  "offload": {"device": "cpu", "pin": true} /* the last */`,
		tree.YAML: `-offload: {device: cpu}|+offload: {device: cpu, pin: true}`,
		tree.TOML: `+pin = true`}},
	{"tensor_parallel.size", "8", map[tree.Syntax]string{
		tree.JSON: `-  "offload": {"device": "cpu"} /* the last */|+  "offload": {"device": "cpu"}, /* the last */|` +
			`+  "tensor_parallel": {|+    "size": 8|+  }`,
		tree.YAML: `+tensor_parallel:|+  size: 8`,
		tree.TOML: `+[tensor_parallel]|+size = 8|+`}},
	{"betas", "[0.9, 0.99]", map[tree.Syntax]string{
		tree.JSON: `-  "betas": [0.9, 0.95],|+  "betas": [0.9, 0.99],`,
		tree.YAML: `-betas: [0.9, 0.95]|+betas: [0.9, 0.99]`,
		tree.TOML: `-betas = [0.9, 0.95]|+betas = [0.9, 0.99]`}},
	{"name", `"8"`, map[tree.Syntax]string{
		tree.JSON: `-  "offload": {"device": "cpu"} /* the last */|+  "offload": {"device": "cpu"}, /* the last */|+  "name": "8"`,
		tree.YAML: `+name: '8'`,
		tree.TOML: `+name = "8"`}},
}

func TestSetChangesOnlyItsKey(t *testing.T) {
	for _, e := range edits {
		for s, text := range sameTree {
			d := parse(t, s, text)
			err := d.Set(interop.Value{Key: e.key, Text: e.text})
			if err != nil {
				t.Errorf("%s: %s", s, err)
				continue
			}
			if diff := cmp.Diff(e.diff[s], changedLines(text, string(d.Bytes()))); diff != "" {
				t.Errorf("%s: %s = %s:\n%s\n%s", s, e.key, e.text, diff, d.Bytes())
			}
		}
	}
}

func TestRemoveDeletesOnlyItsKey(t *testing.T) {
	tests := []struct {
		key  string
		diff map[tree.Syntax]string
	}{
		{"stage", map[tree.Syntax]string{tree.JSON: `-  "stage": 3, # another`, tree.YAML: `-stage: 3  # another`,
			tree.TOML: `-stage = 3 # another`}},
		{"bf16", map[tree.Syntax]string{tree.JSON: `-  "bf16": {"enabled": "auto", "window": 1e3,},`,
			tree.YAML: `-bf16:|-  enabled: auto|-  window: 1e3`,
			tree.TOML: `-bf16.enabled = "auto"|-bf16.window = 1e3`}},
		{"bf16.window", map[tree.Syntax]string{
			tree.JSON: `-  "bf16": {"enabled": "auto", "window": 1e3,},|+  "bf16": {"enabled": "auto", },`,
			tree.YAML: `-  window: 1e3`, tree.TOML: `-bf16.window = 1e3`}},
		{"offload", map[tree.Syntax]string{
			tree.JSON: `-  "betas": [0.9, 0.95],|-  "offload": {"device": "cpu"} /* the last */|+  "betas": [0.9, 0.95]`,
			tree.YAML: `-offload: {device: cpu}`, tree.TOML: `-[offload]|-device = "cpu"`}},
		{"offload.device", map[tree.Syntax]string{
			tree.JSON: `-  "offload": {"device": "cpu"} /* the last */|+  "offload": {} /* the last */`,
			tree.YAML: `-offload: {device: cpu}|+offload: {}`, tree.TOML: `-device = "cpu"`}},
		{"offload.none", map[tree.Syntax]string{}},
	}
	for _, test := range tests {
		for s, text := range sameTree {
			d := parse(t, s, text)
			err := d.Remove(test.key)
			if err != nil {
				t.Errorf("%s: %s", s, err)
				continue
			}
			if diff := cmp.Diff(test.diff[s], changedLines(text, string(d.Bytes()))); diff != "" {
				t.Errorf("%s: remove %s:\n%s\n%s", s, test.key, diff, d.Bytes())
			}
		}
	}
}

// changedLines returns the lines that differ between two texts, after equal lines at the start and at the end.
func changedLines(a, b string) string {
	old, now := strings.Split(a, "\n"), strings.Split(b, "\n")
	for len(old) > 0 && len(now) > 0 && old[0] == now[0] {
		old, now = old[1:], now[1:]
	}
	for len(old) > 0 && len(now) > 0 && old[len(old)-1] == now[len(now)-1] {
		old, now = old[:len(old)-1], now[:len(now)-1]
	}
	var lines []string
	for _, line := range old {
		lines = append(lines, "-"+line)
	}
	for _, line := range now {
		lines = append(lines, "+"+line)
	}
	return strings.Join(lines, "|")
}

func TestEditsOfYAMLKeepItsStyle(t *testing.T) {
	tests := []struct{ text, key, value, want string }{
		{"a: 'x'\n", "a", "y", "a: 'y'\n"},
		{"a: \"8\" # c\n", "a", "16", "a: \"16\" # c\n"},
		{"a: 'no'\n", "a", "bf16", "a: 'bf16'\n"},
		{"a: 1", "b", "2", "a: 1\nb: 2"},
		{"a: 1\r\nc:\r\n    d: 1\r\n", "c.e", "no", "a: 1\r\nc:\r\n    d: 1\r\n    e: 'no'\r\n"},
		{"a:\n    b: 1\n", "c.d", "2", "a:\n    b: 1\nc:\n    d: 2\n"},
		{"a:\n", "a", "3", "a: 3\n"},
		{"a:\n", "a.b", "3", "a: {b: 3}\n"},
		{"a: # c\n  b: 1\n", "a", "3", "a: # c\n  3\n"},
		{"a:\n  b: 1\nc: 2\n", "a", "3", "a: 3\nc: 2\n"},
		{"a: |\n  x\n\n  y\n\nb: 1\n", "a", "z", "a: z\n\nb: 1\n"},
		{"a: |\n  x\n\n  y\n\nb: 1\n", "a_b", "z", "a: |\n  x\n\n  y\na_b: z\n\nb: 1\n"},
		{"- a\n", "a", "1", ""},
		{"l:\n- a: 1\n  b: 2\n- c\n", "l.0.b", "3", "l:\n- a: 1\n  b: 3\n- c\n"},
		{"l:\n- a: 1\n- c\n", "l.0.b", "3", "l:\n- a: 1\n  b: 3\n- c\n"},
		{"a: 1\n", "lr", "1e-5", "a: 1\nlr: 1.0e-5\n"},
		{"a: &x 1\nb: *x\n", "b", "2", "a: &x 1\nb: 2\n"},
		{"a: one\n  two # c\nb: 1\n", "a", "three", "a: three # c\nb: 1\n"},
		{"'q\"r': \"é\" # ü\n", `q"r`, "ö", "'q\"r': \"ö\" # ü\n"},
		{"? a\n: b\n", "a", "c", "? a\n: c\n"},
		{"---\na: 1\n", "b", "c", "---\na: 1\nb: c\n"},
		{"a: x # one\n\n# about b\nb: y\n", "a", "true", "a: true # one\n\n# about b\nb: y\n"},
	}
	for _, test := range tests {
		d, diags := tree.Parse(tree.YAML, "f.yaml", []byte(test.text))
		if len(diags) > 0 {
			if test.want != "" {
				t.Errorf("%q: %s", test.text, diags)
			}
			continue
		}
		err := d.Set(interop.Value{Key: test.key, Text: test.value})
		if err != nil || string(d.Bytes()) != test.want {
			t.Errorf("%q, %s = %s: %q, %v, want %q", test.text, test.key, test.value, d.Bytes(), err, test.want)
		}
	}
}

func TestEditsOfTOMLKeepItsStyle(t *testing.T) {
	const text = "title = 'x'\n\n[a]\n  b = 1 # c\n\n[a.c]\nd = {e = 1}\n\n[[l]]\nf = \"g\"\n[[l]]\nf = \"h\"\n"
	tests := []struct{ key, value, diff string }{
		{"title", "y", "-title = 'x'|+title = 'y'"},
		{"a.e", "[1, 2]", "+  e = [1, 2]"},
		{"a.c.d.f", "x", "-d = {e = 1}|+d = {e = 1, f = \"x\"}"},
		{"l.1.f", "i", "-f = \"h\"|+f = \"i\""},
		{"l.0.g", "1", "+g = 1"},
		{"new.table.x", "true", "+[new.table]|+x = true|+"},
		{"top", "1e-5", "+top = 1.0e-5"},
		{"a.c.z", "null", ""},
		{"l.0", "null", ""},
		{"a", "1", ""},
	}
	for _, test := range tests {
		d := parse(t, tree.TOML, text)
		err := d.Set(interop.Value{Key: test.key, Text: test.value})
		if got := changedLines(text, string(d.Bytes())); got != test.diff || (err != nil) != (test.diff == "") {
			t.Errorf("%s = %s: %s, %v, want %s", test.key, test.value, got, err, test.diff)
		}
	}
}

func TestAnEditThatWouldChangeAnotherKeyIsRefused(t *testing.T) {
	tests := []struct{ text, key, value, want string }{
		{"a: &x {s: 1}\nb: *x\n", "a.s", "2",
			"f.yaml:1:1: a.s cannot be changed in place, because b.s would change too [CannotEdit]"},
		{"a: &x {s: 1}\nb: *x\n", "b.s", "2",
			"f.yaml:1:11: b.s cannot be changed: its value comes from a YAML anchor; write the value out here " +
				"[CannotEdit]"},
		{"a: &x {s: 1}\nb:\n  <<: *x\n  t: 1\n", "b.s", "2",
			"f.yaml:1:11: b.s cannot be changed: its value comes from a YAML anchor; write the value out here " +
				"[CannotEdit]"},
		{"a: 1\n", "a.b", "2", "f.yaml:1:4: a.b cannot be set: a is an integer [CannotEdit]"},
		{"a: 1\n", "", "2", `f.yaml:1:1: "" is not a dotted name of a key [CannotEdit]`},
	}
	for _, test := range tests {
		d := parse(t, tree.YAML, test.text)
		err := d.Set(interop.Value{Key: test.key, Text: test.value})
		if err == nil || err.Error() != test.want || string(d.Bytes()) != test.text {
			t.Errorf("%q, %s: %v\nwant %s", test.text, test.key, err, test.want)
		}
	}
}

func TestWrongFiles(t *testing.T) {
	tests := []struct {
		syntax     tree.Syntax
		text, want string
	}{
		{tree.JSON, "", "f.json:1:1: the file is empty [Empty]"},
		{tree.JSON, "[1]", "f.json:1:1: the file is a list; its top level must be a mapping of keys to values " +
			"[WrongType]"},
		{tree.JSON, `{"a": 1, "a": 2}`, "f.json:1:10: key a is given twice, first on line 1 [DuplicateKey]"},
		{tree.JSON, "{\"a\": 1\n\"b\": 2}", "f.json:2:1: ',' is missing before '\"' [Syntax]"},
		{tree.JSON, `{"a": True}`, "f.json:1:7: True is not JSON: write true [Syntax]"},
		{tree.JSON, `{"a": None}`, "f.json:1:7: None is not JSON: write null [Syntax]"},
		{tree.JSON, `{"a": adamw}`,
			"f.json:1:7: adamw is neither a number nor true, false or null: write text in double quotes [Syntax]"},
		{tree.JSON, `{a: 1}`, "f.json:1:2: 'a' must be a key: write keys in double quotes [Syntax]"},
		{tree.JSON, `{"a" 1}`, "f.json:1:6: ':' is missing after key a [Syntax]"},
		{tree.JSON, `{"a": }`, "f.json:1:7: a value is missing before '}' [Syntax]"},
		{tree.JSON, "{\n\"a\": [1,", "f.json:2:9: the array that starts on line 2 is not closed: add ']' [Syntax]"},
		{tree.JSON, `{"a": "b`, "f.json:1:7: the text that starts here is not closed: add '\"' [Syntax]"},
		{tree.JSON, `{} {}`, "f.json:1:4: '{' follows the end of the value; the file must hold one value [Syntax]"},
		{tree.JSON, "{\"a\": \"\xff\"}", "f.json:1:8: byte 0xff is not UTF-8 text; save the file as UTF-8 [Syntax]"},
		{tree.JSON, strings.Repeat(`{"a":`, 100), "f.json:1:306: the file contains more than 50000 values or 60 " +
			"levels, " +
			"with aliases expanded [TooLarge]"},
		{tree.YAML, "a: 1\na: 2\n", "f.yaml:2:1: key a is given twice, first on line 1 [DuplicateKey]"},
		{tree.YAML, "a: 1\n\tb: 2\n", "f.yaml:2:1: there is a tab here: indent YAML with spaces [Syntax]"},
		{tree.YAML, "# nothing\n", "f.yaml:1:1: the file is empty [Empty]"},
		{tree.YAML, "a: &x [*x]\n", "TooLarge"},
		{tree.YAML, "a: 1\n---\nb: 1\n", "f.yaml:2:1: the file contains more than one document; it must contain one " +
			"[ManyDocuments]"},
		{tree.TOML, "a = 1\na = 2\n", "f.toml:2:1: key a is given twice, first on line 1 [DuplicateKey]"},
		{tree.TOML, "[a]\nb = 1\n[a]\nc = 1\n", "f.toml:3:1: table [a] is given twice, first on line 1 [DuplicateKey]"},
		{tree.TOML, "a = 1\n[a]\n", "f.toml:2:1: key a is not a table [DuplicateKey]"},
		{tree.TOML, "a = True\n", "f.toml:1:5: this is not TOML: unexpected character U+0054 'T' at start of value " +
			"[Syntax]"},
		{tree.TOML, "a = 2020-13-01\n", "Syntax"},
		{tree.TOML, "", "f.toml:1:1: the file is empty [Empty]"},
	}
	for _, test := range tests {
		_, diags := tree.Parse(test.syntax, names[test.syntax], []byte(test.text))
		if got := diags.Error(); got != test.want && !strings.Contains(got, "["+test.want+"]") {
			t.Errorf("%.40q:\n%s\nwant %s", test.text, got, test.want)
		}
	}
}

func TestWriteGivesItsValuesBack(t *testing.T) {
	values := []interop.Value{{Key: "train.steps", Text: "10"}, {Key: "name", Text: "a b: c"},
		{Key: "train.lr", Text: "1e-5"}, {Key: "gone", IsAbsent: true}, {Key: "X", Text: "1", Env: true},
		{Key: "on", Text: "yes"},
		{Key: "list", Text: `["a", 1]`},
		{Key: "train.fsdp.wrap", Text: "true"}}
	for s, name := range names {
		data, err := tree.Write(s, values)
		if err != nil {
			t.Fatal(err)
		}
		d, diags := tree.Parse(s, name, data)
		if len(diags) > 0 {
			t.Fatalf("%s\n%s", diags, data)
		}
		for _, v := range values {
			got, ok := d.Get(v.Key)
			want := v.Text
			if v.Key == "train.lr" && s != tree.JSON {
				want = "1.0e-5"
			}
			if ok == (v.IsAbsent || v.Env) || ok && got != want {
				t.Errorf("%s: %s is %q, want %q\n%s", s, v.Key, got, want, data)
			}
		}
	}
}

// FuzzEdit wants that no text makes the parser panic, that Set then Get gives the value, that Remove then Get gives
// none, and that an edit which changes nothing keeps every byte.
func FuzzEdit(f *testing.F) {
	for s, text := range sameTree {
		f.Add(uint8(s), text, "bf16.enabled", "16")
		f.Add(uint8(s), text, "offload.new_key", "a b")
	}
	f.Add(uint8(tree.YAML), "a: &x {b: [1, |x]}\nc: *x\n- q\n", "c.b", `"8"`)
	f.Add(uint8(tree.TOML), "[[a]]\nb.c = '''x'''\n[d.e]\n", "a.0.b.c", "null")
	f.Fuzz(func(t *testing.T, syntax uint8, text, key, value string) {
		s := tree.Syntax(syntax % 3)
		d, diags := tree.Parse(s, names[s], []byte(text))
		if len(diags) > 0 {
			return
		}
		if string(d.Bytes()) != text {
			t.Fatalf("unchanged, the file is %q", d.Bytes())
		}
		old, had := d.Get(key)
		err := d.Set(interop.Value{Key: key, Text: value})
		got, ok := d.Get(key)
		var refused ir.Diags
		switch {
		case err != nil && !errors.As(err, &refused):
			t.Fatalf("%v is not ir.Diags", err)
		case err != nil && (string(d.Bytes()) != text || got != old || ok != had):
			t.Fatalf("a refused edit changed the file to %q", d.Bytes())
		case err == nil && !ok:
			t.Fatalf("%q is absent in %q", key, d.Bytes())
		}
		err = d.Remove(key)
		if _, ok := d.Get(key); ok && err == nil {
			t.Fatalf("%q is still in %q", key, d.Bytes())
		}
	})
}
