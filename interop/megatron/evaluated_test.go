package megatron

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
)

// What the evaluation of a script assumes, and definitions without effect, are notes.
func TestEvaluationsAreNoted(t *testing.T) {
	const tp = "--tensor-model-parallel-size "
	for _, c := range []struct {
		name, script string
		define       map[string]string
		want         []string
	}{
		{"a definition that nothing reads", small + tp + "$TP", map[string]string{"TP": "2", "PP": "4"},
			[]string{"--define PP=4 has no effect: nothing reads $PP"}},
		{"a definition of a variable that the script sets", "TP=2\n" + small + tp + "$TP", map[string]string{"TP": "4"},
			[]string{"--define TP=4 has no effect: the script sets $TP itself"}},
		{"a definition of a line", small, map[string]string{"line1": "true"},
			[]string{"--define line1=true has no effect: the line has no condition that planc evaluates"}},
		{"definitions that are read", "if [ -f x ]; then TP=$1$2; fi\n" + small + tp + "$TP",
			map[string]string{"1": "", "2": "2", "line1": "true"}, nil},
		{"a branch on a variable without a value", "TP=2\nif [ -n \"$BIG\" ]; then TP=4; fi\n[[ -z $BIG ]] && TP=8\n" +
			small + tp + "$TP", nil, []string{"run.sh:2:10: $BIG has no value, and this condition takes it as empty: " +
			"type --define BIG=VALUE if it has one"}},
		{"a branch on a variable that is defined", "TP=2\nif [ \"$BIG\" = yes ]; then TP=4; fi\n" + small + tp + "$TP",
			map[string]string{"BIG": "yes"}, nil},
	} {
		im, err := Import([]interop.File{textFile("run.sh", c.script)}, interop.Options{Define: c.define})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for _, n := range im.Notes {
			got = append(got, n.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// A script that ends before it starts Megatron-LM says where and why, and how to go on.
func TestExitsAreExplained(t *testing.T) {
	const usage = "usage() {\n  echo 'run.sh TP'\n  exit 1\n}\n"
	const none = "no option of Megatron-LM found: the script ends here"
	for _, c := range []struct{ name, script, want string }{
		{"without a condition", "exit 0\n" + small, "run.sh:1:1: " + none + " [Undefined]"},
		{"in a function", usage + "if [ $# -lt 1 ]; then\n  usage\nfi\n" + small, "run.sh:3:3: " + none +
			", because [ $# -lt 1 ] holds: type --define line5=false if it is otherwise " +
			"[Undefined]"},
		{"after ||", "[ -n \"$DATA\" ] || exit 1\n" + small, "run.sh:1:19: " + none + ", because [ -n \"$DATA\" ] " +
			"does not hold: type --define line1=true if it is otherwise [Undefined]"},
	} {
		_, err := Import([]interop.File{textFile("run.sh", c.script)}, interop.Options{})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.name, err, c.want)
		}
	}
	for name, value := range map[string]string{"line1": "true", "DATA": "x"} {
		_, err := Import([]interop.File{textFile("run.sh", "[ -n \"$DATA\" ] || exit 1\n"+small)},
			interop.Options{Define: map[string]string{name: value}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Options in a here-document are read and edited there.
func TestOptionsInHeredocs(t *testing.T) {
	const text = "TP=2\nread -r -d '' ARGS <<EOF || true\n  --tensor-model-parallel-size $TP\n  --bf16\n  " +
		"--pipeline-model-parallel-size 4\nEOF\n" + small + "$ARGS\n"
	im := importText(t, text, interop.Options{})
	if got := values(im); got["plan.tp"] != "2" || got["plan.pp"] != "4" {
		t.Errorf("%v", got)
	}
	for key, value := range map[string]string{"--tensor-model-parallel-size": "8",
		"--pipeline-model-parallel-size": "1", "--context-parallel-size": "2"} {
		if err := im.Doc.Set(interop.Value{Key: key, Text: value}); err != nil {
			t.Error(err)
		}
	}
	want := strings.NewReplacer("TP=2", "TP=8", "size 4\nEOF", "size 1\n  --context-parallel-size 2\nEOF").Replace(text)
	if diff := cmp.Diff(want, string(im.Doc.Bytes())); diff != "" {
		t.Error(diff)
	}
}

// A value that --define gives is replaced where the script uses it, also inside arrays and strings.
func TestDefinedValuesAreEdited(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"an array", "A=(\n  --tensor-model-parallel-size $TP\n  --sequence-parallel\n)\n" + small + "${A[@]}",
			"size 4\n"},
		{"an array in an array", "A=(--tensor-model-parallel-size \"$TP\")\nB=(--sequence-parallel \"${A[@]}\")\n" +
			small + "${B[@]}", "size \"4\")"},
		{"a string", "A=\"--sequence-parallel --tensor-model-parallel-size $TP\"\n" + small + "$A", "size 4\""},
		{"a default", "A=(--tensor-model-parallel-size ${TP:-1})\n" + small + "${A[@]}", "size 4)"},
		{"the command", small + "--tensor-model-parallel-size $TP", "size 4"},
	} {
		im := importText(t, c.script, interop.Options{Define: map[string]string{"TP": "2"}})
		err := im.Doc.Set(interop.Value{Key: "--tensor-model-parallel-size", Text: "4"})
		if err != nil || !strings.Contains(string(im.Doc.Bytes()), c.want) ||
			strings.Count(string(im.Doc.Bytes()), "--tensor-model-parallel-size") != 1 {
			t.Errorf("%s: %v\n%s", c.name, err, im.Doc.Bytes())
		}
	}
}
