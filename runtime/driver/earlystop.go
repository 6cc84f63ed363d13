package driver

import (
	"cmp"
	"fmt"
	"math"

	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/program"
)

// defaultPatience is train.early_stop.patience if the job has only the metric. It is Lightning's.
const defaultPatience = 3

// earlyStop ends a run after some validation losses in a row that are not lower than the lowest one before them by
// more than min_delta. Its state is saved in checkpoints, so that a resumed run ends after the same step.
type earlyStop struct {
	rule   program.EarlyStopSettings
	best   float64 // +Inf before the first loss
	waited int     // losses since the best
}

func newEarlyStop(rule program.EarlyStopSettings) earlyStop {
	if rule.IsOn() {
		rule.Patience = cmp.Or(rule.Patience, defaultPatience)
	}
	return earlyStop{rule: rule, best: math.Inf(1)}
}

// add records a validation loss.
func (e *earlyStop) add(loss float64) {
	if num.Finite(loss) && loss < e.best-e.rule.MinDelta {
		e.best, e.waited = loss, 0
		return
	}
	e.waited++
}

// isOver reports whether the run must end.
func (e *earlyStop) isOver() bool { return e.rule.IsOn() && e.waited >= e.rule.Patience }

// reason says why the run ends.
func (e *earlyStop) reason() string {
	text := fmt.Sprintf("%s without an improvement on %.4f", countOf(e.waited, "evaluation"), e.best)
	if e.rule.MinDelta > 0 {
		text += fmt.Sprintf(" by more than %g", e.rule.MinDelta)
	}
	return text
}

// earlyStopExtra is the key of the state in a checkpoint.
const earlyStopExtra = "early_stop"

// save writes the state for the run that continues from a checkpoint. A run that does not stop early saves it too, so
// that it can be turned on later.
func (e *earlyStop) save(extra map[string]string) {
	if num.Finite(e.best) || e.waited > 0 {
		extra[earlyStopExtra] = fmt.Sprintf("%s %d", lossText(e.best), e.waited)
	}
}

// resume reads what save has written.
func (e *earlyStop) resume(extra map[string]string) {
	var best float64
	var waited int
	if _, err := fmt.Sscanf(extra[earlyStopExtra], "%g %d", &best, &waited); err == nil && waited >= 0 {
		e.best, e.waited = best, waited
	}
}

// checkEarlyStop refuses to stop early if no validation loss is measured.
func (r *job) checkEarlyStop() error {
	if !r.s.Train.EarlyStop.IsOn() || r.data.source.ValidSamples() > 0 {
		return nil
	}
	return errNoValidData("train.early_stop is set", "it")
}

// stopEarly counts the validation loss after the last step, and makes that step the last one of the run if losses have
// stopped improving.
func (r *evaluator) stopEarly() {
	if r.evalPending || r.lastValidStep != r.done.step {
		return
	}
	r.done.early.add(r.res.ValidLoss)
	if r.done.early.isOver() && r.done.step < r.total {
		text := fmt.Sprintf("step %d  early stop: %s", r.done.step, r.done.early.reason())
		r.report.Info(text, "early_stop", "step", r.done.step, "best", r.done.early.best, "waited", r.done.early.waited)
		r.metrics.Event(r.done.step, "early_stop", r.done.early.reason())
		r.total = r.done.step
	}
}
