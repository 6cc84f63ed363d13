package cli

import (
	"bytes"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/settings"
)

// Every --set that is suggested for another tool's flag names a setting, and every flag is one; none of the names is a
// flag itself.
func TestOtherFlagsSuggestWhatThereIs(t *testing.T) {
	for _, f := range otherFlags {
		for name := range strings.FieldsSeq(f.names) {
			if slices.ContainsFunc(flags, func(f flag) bool { return f.name == name }) {
				t.Errorf("--%s is a flag", name)
			}
		}
		words, ok := strings.CutPrefix(f.instead, "use ")
		if !ok {
			continue // of planc compile
		}
		cmd, err := parse(strings.Fields(strings.ReplaceAll(words, "V", "1")))
		if err != nil {
			t.Errorf("%s: %v", words, err)
			continue
		}
		for _, c := range cmd.options.Changes {
			var s program.Settings
			if err := settings.Set(&s, c.Path, c.Value, &program.Settings{}); err != nil {
				t.Errorf("%s: %v", words, err)
			}
		}
	}
}

// The deadline of collectives is the flag's, else the environment's, else the default.
func TestTimeoutOfCollectives(t *testing.T) {
	for _, c := range []struct {
		flag, variable string
		want           time.Duration
	}{{"", "", 0}, {"90s", "", 90 * time.Second}, {"", "5m", 5 * time.Minute}, {"90s", "5m", 90 * time.Second},
		{"90s", "junk", 90 * time.Second}} {
		var args []string
		if c.flag != "" {
			args = []string{"--timeout", c.flag}
		}
		cmd, err := parse(args)
		if err != nil {
			t.Fatal(err)
		}
		err = cmd.environment(func(name string) (string, bool) { return c.variable, name == timeoutVariable })
		if err != nil {
			t.Fatal(err)
		}
		if got := cmd.options.Timeout; got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// A sample of a model that cannot spell yet says so, and how to train on.
func TestEarlySample(t *testing.T) {
	nan := math.NaN()
	const want = "        (at a loss of 2.31 per byte a model writes few words; below 1.7 most are words: `--steps " +
		"3000` continues training)\n"
	for _, x := range []struct {
		loss, valid float64
		want        string
	}{{2, 2.31, want}, {2.31, nan, want}, {2.31, 1.6, ""}, {1.5, nan, ""}, {nan, nan, ""}} {
		if got := fewWordsNote(&report.Result{Loss: x.loss, ValidLoss: x.valid, Steps: 300}, false); got != x.want {
			t.Errorf("loss %g, validation %g: %q, want %q", x.loss, x.valid, got, x.want)
		}
	}
	var b bytes.Buffer
	summary(&b, &rank.Program{}, &report.Result{Sample: "The lxq", Loss: 2.31, ValidLoss: nan, FirstLoss: 5,
		Steps: 300, FirstStep: 1})
	if !strings.HasPrefix(b.String(), "sample  The lxq\n"+want+"\nloss ") {
		t.Errorf("%q", b.String())
	}
}

// A run whose last loss is not finite did steps, and its summary says what became of them.
func TestSummaryOfLosses(t *testing.T) {
	nan := math.NaN()
	for _, test := range []struct {
		r    report.Result
		want string
	}{
		{report.Result{FirstStep: 1, Steps: 3, FirstLoss: 2.5, Loss: 2, ValidLoss: nan},
			"loss    2.5000 at step 1, 2.0000 at step 3\n"},
		{report.Result{FirstStep: 1, Steps: 3, FirstLoss: 2.5, Loss: nan, ValidLoss: nan},
			"loss    2.5000 at step 1, not finite (NaN) at step 3\n"},
		{report.Result{FirstStep: 2, Steps: 3, FirstLoss: math.Inf(1), Loss: 2, ValidLoss: 1},
			"loss    not finite (+Inf) at step 2, 2.0000 at step 3, validation 1.0000\n"},
		{report.Result{FirstStep: 4, Steps: 3, FirstLoss: nan, Loss: nan, ValidLoss: nan},
			"loss    nothing was left to do after step 3\n"},
	} {
		var out bytes.Buffer
		test.r.Ranks = 1
		summary(&out, &rank.Program{}, &test.r)
		if !strings.HasPrefix(out.String(), test.want) {
			t.Errorf("summary\n%swant\n%s", out.String(), test.want)
		}
	}
}

// Flags of --generate and --export are refused without them.
func TestFlagsOfActions(t *testing.T) {
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"--temperature", "1"}, "--temperature applies to --generate: add --generate PROMPT, or leave it out"},
		{[]string{"--top-k=0", "--generate", "x"},
			"--top-k 0: must be at least 1; without the flag, the default applies"},
		{[]string{"--export-dtype", "bf16"}, "--export-dtype applies to --export: add --export DIR, or leave it out"},
		{[]string{"--top-k", "5", "--generate", "x"}, ""},
	} {
		c, err := parse(x.args)
		if err == nil {
			err = c.checkActions()
		}
		if got := fmt.Sprint(err); got != x.want && (err != nil || x.want != "") {
			t.Errorf("%q: %s, want %s", x.args, got, x.want)
		}
	}
}

func TestHelpListsEveryFlag(t *testing.T) {
	var out bytes.Buffer
	usage(&out, &rank.Program{})
	for _, f := range flags {
		if !strings.Contains(out.String(), "--"+f.name) {
			t.Errorf("no --%s in help", f.name)
		}
	}
}

// The version is that of planc's module among the binary's dependencies.
func TestPlancVersion(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Path: "planc.generated/train", Version: "(devel)"},
		Deps: []*debug.Module{{Path: plancModule, Version: "v0.1.0"}}}
	if got := plancVersion(info); got != "v0.1.0" {
		t.Errorf("of a binary that planc built: %s", got)
	}
}
