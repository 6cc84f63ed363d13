package checkscreen

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop/migrate"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner"
)

// edit returns an edit of one key with a diff.
func edit(number int, fits bool) numbered {
	e := numbered{number: number}
	e.Fits, e.Message, e.Diff = fits, "tp 4 → 2", "-tp 4\n+tp 2\n"
	if !fits {
		e.NoFit = &search.NoFit{OverBytes: 2 << 30}
	}
	return e
}

// The diff that is shown first is that of an edit that fits. Only such an edit is offered as a patch.
func TestFirstDiffFits(t *testing.T) {
	r := &migrate.Report{Check: &planner.Check{}}
	for _, c := range []struct {
		edits       []numbered
		title, more string
	}{
		{[]numbered{edit(3, false), edit(15, true)}, "Edit 15, tp 4 → 2:", "--edit 15 | patch"},
		{[]numbered{edit(1, true), edit(15, false)}, "Edit 1, tp 4 → 2:", "--edit 1 | patch"},
		{[]numbered{edit(15, false)}, "Edit 15, tp 4 → 2, does not fit (2.0 GiB over):", ""},
		{nil, "", ""},
	} {
		shown, flags := diffs(r, c.edits), strings.Join(more(r, c.edits, Options{}), " ")
		title, _, _ := strings.Cut(strings.TrimPrefix(shown, "\n"), "\n")
		if title != c.title || !strings.Contains(flags, c.more) || c.more == "" && strings.Contains(flags, "--edit") {
			t.Errorf("%q, %q; want %q, %q", title, flags, c.title, c.more)
		}
	}
}

// No prediction is certain.
func TestProbability(t *testing.T) {
	for p, want := range map[float64]string{0.5: "0.50", 0.994: "0.99", 0.996: "> 0.99", 1: "> 0.99"} {
		if got := probability(p); got != want {
			t.Errorf("%v is %q, want %q", p, got, want)
		}
	}
}

// A key stays with its value if a table folds a plan.
func TestPlanWords(t *testing.T) {
	if got := planWords("tp 2 · zero 1 · recompute full 1 block"); len(strings.Fields(got)) != 5 {
		t.Errorf("%q has %d words", got, len(strings.Fields(got)))
	}
}
