package laws_test

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/golden/internal/harness"
	"github.com/planc-dev/planc/ir"
)

// Law 1 of the loss scale: a gradient that overflows on one rank makes all ranks skip that step, under every plan.
// The optimizer's update count and moments do not change. The scale follows the rule, also if the run is stopped and
// resumed with another plan.

//go:embed testdata/lawscalemain.go.txt
var lawScaleMain []byte

// scaleRules are the published rules, as settings and as functions: from the steps that overflow to the exponent of
// the scale in each step.
var scaleRules = map[string]struct {
	set  string // settings as Go source
	next func() func(overflow bool) int
}{
	// loss_scaler.py: an overflow uses up hysteresis, then the scale halves. It grows if the steps since the last
	// overflow are a multiple of the window, and only growth restores the hysteresis.
	"deepspeed": {`{"init": 1024, "window": 2, "hysteresis": 2, "min": 256}`, func() func(bool) int {
		exponent, left, step, last := 10, 2, 0, -1
		return func(overflow bool) int {
			switch {
			case overflow && left > 1:
				left, last = left-1, step
			case overflow:
				exponent, last = max(exponent-1, 8), step
			case (step-last)%2 == 0:
				exponent, left = exponent+1, 2
			}
			step++
			return exponent
		}
	}},
	// GradScaler: every overflow halves the scale. It grows after so many consecutive steps without one.
	"torch": {`{"init": 1024, "window": 3, "hysteresis": 1, "min": 1e-30}`, func() func(bool) int {
		exponent, row := 10, 0
		return func(overflow bool) int {
			row++
			if overflow {
				exponent, row = exponent-1, 0
			} else if row == 3 {
				exponent, row = exponent+1, 0
			}
			return exponent
		}
	}},
}

const scaleSteps = 12

// scaleOverflows are steps whose gradients overflow: two in a row, a single one, and two in a row that reach the
// smallest scale.
var scaleOverflows = []int{3, 4, 7, 10, 11}

// scales returns the scale of each step by a rule.
func scales(rule string, overflows []int, steps int) []float64 {
	next, out := scaleRules[rule].next(), []float64{1024}
	for step := 1; step < steps; step++ {
		out = append(out, math.Exp2(float64(next(slices.Contains(overflows, step)))))
	}
	return out
}

// scaleRun is one run of the module.
type scaleRun struct {
	id, program, before string
	stop, omit, steps   int
	overflows           []int
	rule                string
	split               int
}

func (s *scaleRun) line() string {
	before, steps := "nil", ""
	if s.before != "" {
		before = s.before + ".Run"
	}
	for _, n := range s.overflows {
		steps += fmt.Sprintf("x%d ", n)
	}
	return fmt.Sprintf("\t{id: %q, run: %s.Run, before: %s, stop: %d, omit: %d, steps: %d, overflow: %q, rule: "+
		"map[string]any%s, split: %d},\n",
		s.id, s.program, before, s.stop, s.omit, s.steps, steps, scaleRules[s.rule].set, s.split)
}

// scalePlans are the programs, and the rank that overflows: one whose gradients no later rank sees.
var scalePlans = []struct {
	rank int
	plan func(*ir.Plan)
}{
	{0, func(*ir.Plan) {}},
	{1, tp(2, true)},
	{3, zeroed(1)},
	{2, zeroed(2)},
	{1, zeroed(3)},
	{0, staged(2, "1f1b")},
	{1, staged(4, "gpipe")},
	{0, staged(2, "zb-h1")},
	{1, staged(2, "zb-v")}, // only rank 0 has the embedding and the head
}

// overflowing makes the gradient of a rank's blocks infinite in the steps that an environment variable names.
func overflowing(t *testing.T, rank int) func([]byte) []byte {
	enter := replaced(t, `func blockBackward\(r \*rt\.Rank, b \*rt\.Block\) \{\n\tdY := [^\n]*\n`,
		"${0}\toverflow(r, dY)\n")
	return func(src []byte) []byte {
		return append(enter(src), fmt.Sprintf(`
func overflow(r *rt.Rank, x []num.F16) {
	if r.ID == %d && strings.Contains(os.Getenv("OVERFLOW"), fmt.Sprintf("x%%d ", r.StepID)) {
		x[0].Bits = 0x7c00 // infinity
	}
}
`, rank)...)
	}
}

// scaleRuns returns the programs' runs: by each rule; resumed with the next plan and, once, with the same plan; and
// without the samples of the skipped step.
func scaleRuns() (runs []scaleRun) {
	for i := range scalePlans {
		id := fmt.Sprintf("s%d", i)
		for rule := range scaleRules {
			runs = append(runs, scaleRun{id: id + rule, program: id, steps: scaleSteps, overflows: scaleOverflows,
				rule: rule})
		}
		next := fmt.Sprintf("s%d", (i+1)%len(scalePlans))
		for rule := range scaleRules { // after 3, one overflow used hysteresis and the next one does not
			runs = append(runs, scaleRun{id: next + rule + "after" + id, program: next, before: id, stop: 3,
				steps: scaleSteps, overflows: scaleOverflows, rule: rule})
		}
		runs = append(runs,
			scaleRun{id: id + "skips", program: id, steps: 5, overflows: []int{3}, rule: "deepspeed"},
			scaleRun{id: id + "omits", program: id, steps: 4, omit: 3, rule: "deepspeed"},
			scaleRun{id: id + "parts", program: id, before: id, stop: 4, steps: scaleSteps, overflows: scaleOverflows,
				rule: "torch"})
	}
	for _, n := range lawSplits {
		for rule := range scaleRules {
			runs = append(runs, scaleRun{id: fmt.Sprintf("split%d%s", n, rule), program: "s0", steps: scaleSteps,
				overflows: scaleOverflows, rule: rule, split: n})
		}
	}
	return runs
}

// scaleDone is the output of the module for a run.
type scaleDone struct {
	ID, Err        string
	Losses, Scales []float64
	Skipped        []int
	Copies         float64
	Updates        int
	Params         map[string][]float64
}

func TestLawLossScale(t *testing.T) {
	harness.OnlyLong(t)
	c := lawCase{group: "scale", optimizer: "adamw", elem: ir.F16, model: modelNamed(t, "gpt2")}
	c.model.Layers = 4
	files := map[string][]byte{"main.go": lawScaleMain, "split.go": lawSplit}
	var imports, lines strings.Builder
	for i, p := range scalePlans {
		c.id, c.plan, c.spoil = fmt.Sprintf("s%d", i), ir.SerialPlan(4, lawBatch, lawNarrow[1]), overflowing(t, p.rank)
		p.plan(&c.plan)
		src, _ := c.source(t)
		head, rest, _ := strings.Cut(string(src), "import (\n")
		files[c.id+"/train.go"] = []byte(head + "import (\n\t\"fmt\"\n\t\"os\"\n\t\"strings\"\n" + rest)
		fmt.Fprintf(&imports, "\t%q\n", "planc.generated/scales/"+c.id)
	}
	runs := scaleRuns()
	for i := range runs {
		lines.WriteString(runs[i].line())
	}
	files["programs.go"] = fmt.Appendf(nil,
		"package main\n\nimport (\n%s)\n\nconst batch, vocab = %d, %d\n\nvar programs = []program{\n%s}\n",
		&imports, lawBatch, c.model.Vocab, &lines)
	done := map[string]*scaleDone{}
	for _, line := range runAsUsers(t, "scales", files) {
		var d scaleDone
		if err := json.Unmarshal([]byte(line), &d); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		done[d.ID] = &d
	}
	if len(done) != len(runs) {
		t.Fatalf("%d runs, want %d", len(done), len(runs))
	}
	for i := range runs {
		judgeScale(t, &runs[i], done)
	}
	judgeScaledLosses(t, runs, done)
	for i := range scalePlans {
		id := fmt.Sprintf("s%d", i)
		if skips, omits := done[id+"skips"], done[id+"omits"]; !reflect.DeepEqual(skips.Params, omits.Params) {
			t.Errorf("%s: a skipped step must not change the parameters", id)
		}
		if whole, parts := done[id+"torch"], done[id+"parts"]; !reflect.DeepEqual(whole.Params, parts.Params) {
			t.Errorf("%s: a run that is stopped and resumed must end with the same parameters", id)
		}
	}
}

// judgeScale fails unless the scales follow the rule, the overflowing steps are skipped, and all other steps update.
func judgeScale(t *testing.T, run *scaleRun, done map[string]*scaleDone) {
	t.Helper()
	d := done[run.id]
	if want := scales(run.rule, run.overflows, run.steps); d.Err != "" || !slices.Equal(d.Scales, want) {
		t.Errorf("%s: scales %v, want %v %s", run.id, d.Scales, want, d.Err)
	}
	if !slices.Equal(d.Skipped, run.overflows) || d.Updates != run.steps-len(run.overflows) || d.Copies != 0 {
		t.Errorf("%s: skipped %v, want %v; %d updates; copies %g apart", run.id, d.Skipped, run.overflows,
			d.Updates, d.Copies)
	}
}

// judgeScaledLosses compares the runs' losses with the one-rank program's, with the yardsticks of 16 bits.
func judgeScaledLosses(t *testing.T, runs []scaleRun, done map[string]*scaleDone) {
	t.Helper()
	off := func(run *scaleRun) float64 {
		worst, ref := 0.0, done["s0"+run.rule].Losses
		for i, x := range done[run.id].Losses {
			worst = max(worst, math.Abs(x/ref[i]-1))
		}
		return worst
	}
	bound, largest := 0.0, 0.0
	for i := range runs {
		if runs[i].split > 0 {
			bound = max(bound, lawNarrowFactor*off(&runs[i]))
		}
	}
	for i := range runs {
		if runs[i].steps != scaleSteps || len(done[runs[i].id].Losses) != scaleSteps {
			continue
		}
		if d := off(&runs[i]); !(d <= bound) {
			t.Errorf("%s: losses differ by %.3g, the bound is %.3g", runs[i].id, d, bound)
		} else {
			largest = max(largest, d)
		}
	}
	t.Logf("%d runs, losses at most %.2f of the bound %.3g", len(runs), largest/bound, bound)
}
