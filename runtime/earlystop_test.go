package runtime

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/runtime/driver"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/report"
)

// A run whose validation loss stops improving ends with a checkpoint and exit 0. One that was interrupted ends after
// the same step with the same parameters, on another plan too.
func TestEarlyStop(t *testing.T) {
	job := []Option{Set("train.steps", 200), Set("train.eval.every", 3), Set("train.early_stop.patience", 2),
		Set("train.early_stop.min_delta", 0.05), Set("train.schedule.kind", "constant")}
	whole := t.TempDir()
	var output bytes.Buffer
	res, err := train(t, bigram[float64](2, 1), whole, append(job, text(&output, false))...)
	must(t, err)
	if res.Steps < 9 || res.Steps >= 200 || res.Steps%3 != 0 {
		t.Fatalf("the run ended at step %d", res.Steps)
	}
	line := fmt.Sprintf("step %d  early stop: 2 evaluations without an improvement on ", res.Steps)
	if !strings.Contains(output.String(), line) {
		t.Errorf("output lacks %q:\n%s", line, output.String())
	}
	events := func(dir string) (out []string) {
		_, others := lines(t, dir)
		for _, l := range others {
			if l.Event == "early_stop" {
				out = append(out, fmt.Sprint(l.Step))
			}
		}
		return out
	}
	if got := events(whole); !slices.Equal(got, []string{fmt.Sprint(res.Steps)}) {
		t.Errorf("events %v", got)
	}

	for _, at := range []int{4, res.Steps - 3, res.Steps - 2} {
		dir := t.TempDir()
		_, err := train(t, bigram[float64](1, 0), dir, append(job, OnStep(func(s report.Step) error {
			if s.Step == at {
				return driver.ErrStop
			}
			return nil
		}))...)
		wantExit(t, err, exit.OnRequest)
		rest, err := train(t, bigram[float64](4, 1), dir, job...)
		if err != nil || rest.Steps != res.Steps || len(events(dir)) != 1 {
			t.Errorf("stopped at %d: ended at step %d with events %v, %v; want %d", at, rest.Steps, events(dir), err,
				res.Steps)
		}
	}

	var log bytes.Buffer
	restarted, err := train(t, bigram[float64](2, 1), whole, append(job, text(&log, false))...)
	if err != nil || restarted.Steps != res.Steps {
		t.Errorf("started again, the run ended at step %d: %v", restarted.Steps, err)
	}
	if s := log.String(); !strings.Contains(s, "a larger train.early_stop.patience continues") ||
		strings.Contains(s, "nothing to do") { // whose --steps would not continue
		t.Errorf("started again:\n%s", s)
	}
	more, err := train(t, bigram[float64](2, 1), whole, append(job, Set("train.early_stop.patience", 3))...)
	if err != nil || more.Steps <= res.Steps {
		t.Errorf("with more patience, the run ended at step %d: %v", more.Steps, err)
	}
}

func TestEarlyStopNeedsEvaluations(t *testing.T) {
	for want, opts := range map[string][]Option{
		"train.early_stop is set, but train.eval.every is 0": {Set("train.early_stop.metric", "valid_loss")},
		"train.early_stop is set, but there is no validation data": {Set("train.early_stop.patience", 1),
			Set("train.eval.every", 2), Data(drawn{40, 0})},
		"train.early_stop.min_delta is 1, but without train.early_stop.patience": {
			Set("train.early_stop.min_delta", 1)},
	} {
		_, err := train(t, bigram[float64](1, 0), t.TempDir(), opts...)
		wantExit(t, err, exit.Input, want)
	}
}
