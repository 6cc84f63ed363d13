package checkscreen

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
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

// The first diff is that of an edit that fits, and only such an edit is offered as a patch.
func TestFirstDiffFits(t *testing.T) {
	r := &migrate.Report{Check: &planner.Check{}}
	for _, c := range []struct {
		edits       []numbered
		title, more string
	}{
		{[]numbered{edit(3, false), edit(15, true)}, "Edit 15, tp 4 → 2:", "--edit 15 | patch"},
		{[]numbered{edit(1, true), edit(15, false)}, "Edit 1, tp 4 → 2:", "--edit 1 | patch"},
		{[]numbered{edit(15, false)}, "", ""},
		{nil, "", ""},
	} {
		shown, flags := diffs(r, c.edits), strings.Join(more(r, c.edits, Options{}), " ")
		title, _, _ := strings.Cut(strings.TrimPrefix(shown, "\n"), "\n")
		if title != c.title || !strings.Contains(flags, c.more) || c.more == "" && strings.Contains(flags, "--edit") {
			t.Errorf("%q, %q; want %q, %q", title, flags, c.title, c.more)
		}
	}
}

// A table without an edit that fits says that no edit helps.
func TestTableOfUnfitEdits(t *testing.T) {
	const sentence = "No single edit is faster and fits.\n"
	r := &migrate.Report{Check: &planner.Check{}}
	unfit, fits := edit(15, false), edit(1, true)
	if got := editTable(r, []numbered{unfit}); !strings.HasSuffix(got, sentence) {
		t.Errorf("%q does not end with %q", got, sentence)
	}
	if got := editTable(r, []numbered{fits, unfit}); strings.Contains(got, sentence) {
		t.Errorf("%q contains %q, although edit 1 fits", got, sentence)
	}
}

// Uses of keys are shown in words. A key that the trainer ignores names the trainer.
func TestUseWords(t *testing.T) {
	r := &migrate.Report{Source: &migrate.Source{Format: &interop.Format{Tool: "DeepSpeed"}}}
	for use, want := range map[interop.Use]string{interop.Taken: "used", interop.IgnoredByTool: "ignored by DeepSpeed",
		interop.NoEffect: "no effect on the plan"} {
		if got := useWords(r, use); got != want {
			t.Errorf("%q is %q, want %q", use, got, want)
		}
	}
}

// A key stays with its value if a table folds a plan.
func TestPlanWords(t *testing.T) {
	if got := planWords("tp 2 · zero 1 · recompute full 1 block"); len(strings.Fields(got)) != 5 {
		t.Errorf("%q has %d words", got, len(strings.Fields(got)))
	}
}

// Terms of a plan whose values planc chose have a mark, and one line names their keys.
func TestChosenTermsAreMarked(t *testing.T) {
	r := &migrate.Report{Check: &planner.Check{Yours: &planner.CheckedPlan{Chosen: []string{"dp", "micro_batch"}}}}
	got := strings.Join(markChosen([]string{"dp 4", "tp 2", "zero 3", "micro_batch 1×16"}, r.Yours.Chosen), " · ")
	if want := "dp 4* · tp 2 · zero 3 · micro_batch 1×16*"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	const want = "         * chosen by planc, because the file does not say it: dp, micro_batch\n"
	if got := chosenLine(r); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := chosenLine(&migrate.Report{Check: &planner.Check{Yours: &planner.CheckedPlan{}}}); got != "" {
		t.Errorf("%q", got)
	}
}

// A diff of a file in another folder is applied with -p0, and one of standard input is not applied.
func TestEditsArePatchesOfTheirFiles(t *testing.T) {
	for name, want := range map[string]string{"run.sh": "--edit best | patch --keys --json",
		"sub/run.sh": "--edit best | patch -p0 --keys --json", "standard input": "--edit best --keys --json"} {
		r := &migrate.Report{Check: &planner.Check{}, Diff: "--- " + name + "\n+++ " + name + "\n"}
		if got := strings.Join(more(r, nil, Options{}), " "); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}
