package runtime

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
)

const badToken = vocab - 1

// damaged is drawn with a global batch of samples that consist of one token, from sample bad on. Sample g is that of
// g + skip from sample first on.
type damaged struct {
	drawn
	bad, first, skip int64
}

func (d damaged) Train(g int64, tokens, labels []int32) (int, error) {
	if g >= d.first {
		g += d.skip
	}
	n, err := d.drawn.Train(g, tokens, labels)
	if g >= d.bad && g < d.bad+8 {
		for i := range tokens {
			tokens[i], labels[i] = badToken, badToken
		}
	}
	return n, err
}

// spiky is bigram with a high loss on samples that consist of badToken, or on steps from always on.
func spiky(dp, always int) *rank.Program {
	p := bigram[float64](dp, min(dp-1, 1))
	step := p.Segments[0].Forward
	p.Segments[0].Forward = func(r *rank.Rank, b *rank.Block) {
		step(r, b)
		tokens := View[int32](r, r.Stage.Inputs.Tokens, 6)
		isBad := !slices.ContainsFunc(tokens, func(x int32) bool { return x != badToken })
		if r.ID == 0 && b.Micro == 0 && (isBad || r.StepID >= always) {
			r.LossSum += 1000
		}
	}
	return p
}

// After a spike a run goes on from its last checkpoint as one that never had the samples in between, also if it is
// interrupted, on another plan.
func TestRollback(t *testing.T) {
	const never = 1000
	job := func(w *bytes.Buffer, more ...Option) []Option {
		return append([]Option{text(w, false), Set("train.steps", 40), Set("train.checkpoint.every", 5),
			Set("train.eval.every", 4), Set("train.on_spike", "rollback"), Data(damaged{drawn{400, 10}, 8 * 27, 0, 0})},
			more...)
	}
	var quiet, output bytes.Buffer
	clean, err := train(t, spiky(2, never), t.TempDir(),
		job(&quiet, Data(damaged{drawn{400, 10}, 8 * 27, 8 * 25, 8 * 3}))...)
	must(t, err)
	dir := t.TempDir()
	res, err := train(t, spiky(2, never), dir, job(&output)...)
	must(t, err)
	if string(weights(t, res.Checkpoint)) != string(weights(t, clean.Checkpoint)) {
		t.Error("the parameters are not those of a run without the samples")
	}
	const want = "warning: step 28: rolled back to the checkpoint of step 25 because of the spike; samples 200 to " +
		"223 are left out\n"
	if !strings.Contains(output.String(), want) || strings.Contains(quiet.String(), "rolled back") {
		t.Errorf("%s\nwithout the samples:\n%s", output.String(), quiet.String())
	}
	steps, others := lines(t, dir)
	var numbers []int
	for _, s := range steps {
		numbers = append(numbers, s.Step)
	}
	if len(numbers) != 43 || !slices.Equal(numbers[25:30], []int{26, 27, 28, 26, 27}) {
		t.Errorf("steps %v", numbers)
	}
	valid := 0
	for _, l := range others {
		if l.ValidLoss != nil {
			valid++
		}
	}
	if valid != 10 {
		t.Errorf("%d evaluations", valid)
	}
	for _, after := range []int{3, 26, 27, 28, 31} { // steps until the interruption
		dir, n := t.TempDir(), 0
		var w bytes.Buffer
		_, err := train(t, spiky(1, never), dir, job(&w, OnStep(func(s report.Step) error {
			n++
			if n == after {
				return driver.ErrStop
			}
			return nil
		}))...)
		wantExit(t, err, exit.OnRequest)
		rest, err := train(t, spiky(1, never), dir, job(&w)...)
		must(t, err)
		whole, err := train(t, spiky(1, never), t.TempDir(), job(&w)...)
		must(t, err)
		if string(weights(t, rest.Checkpoint)) != string(weights(t, whole.Checkpoint)) {
			t.Errorf("interrupted after %d steps, the run has other parameters:\n%s", after, w.String())
		}
	}
}

// A spike that comes back after each rollback ends the run, and one without a checkpoint before it is only reported.
func TestRollbacksEnd(t *testing.T) {
	var w bytes.Buffer
	job := []Option{text(&w, false), Set("train.steps", 60), Set("train.on_spike", "rollback")}
	dir := t.TempDir()
	_, err := train(t, spiky(2, 24), dir, append(job, Set("train.checkpoint.every", 20))...)
	wantExit(t, err, exit.Nonfinite, "step 24: the loss spikes after 3 rollbacks to the checkpoint of step 20, each "+
		"to other samples. Lower train.optimizer.lr (0.05)", "train.on_spike=warn")
	_, others := lines(t, dir)
	var events []string
	for _, l := range others {
		events = append(events, fmt.Sprint(l.Event, l.Step))
	}
	if n := len(events); !slices.Equal(events[n-3:], []string{"rollback20", "spike24", "stop24"}) {
		t.Errorf("events %v", events)
	}
	_, err = train(t, spiky(2, 24), t.TempDir(), append(job, Set("train.checkpoint.every", 30))...)
	must(t, err)
	_, err = train(t, spiky(2, 24), t.TempDir(), job...)
	wantExit(t, err, exit.Input, "train.on_spike is rollback, but train.checkpoint.every is 0")
}
