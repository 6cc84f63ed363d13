package driver

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/num"
)

// bestLosses are the lowest validation losses of a training so far, in ascending order. A checkpoint has them, so that
// a run that continues it knows which loss is among the best, in every process.
type bestLosses []float64

// bestExtra is the key of the best losses in a checkpoint.
const bestExtra = "best_valid_losses"

// add adds a loss and reports whether it is among the n lowest.
func (b *bestLosses) add(loss float64, n int) bool {
	if !num.Finite(loss) || n == 0 {
		return false
	}
	i, _ := slices.BinarySearch(*b, math.Nextafter(loss, math.Inf(1))) // after equal losses
	if i >= n {
		return false
	}
	*b = slices.Insert(*b, i, loss)
	*b = (*b)[:min(n, len(*b))]
	return true
}

// save writes the losses for the run that continues from a checkpoint.
func (b bestLosses) save(extra map[string]string) {
	if len(b) == 0 {
		return
	}
	words := make([]string, len(b))
	for i, loss := range b {
		words[i] = lossText(loss)
	}
	extra[bestExtra] = strings.Join(words, " ")
}

// resume reads the losses of a checkpoint.
func (b *bestLosses) resume(extra map[string]string) {
	*b = nil
	for word := range strings.FieldsSeq(extra[bestExtra]) {
		if loss, err := strconv.ParseFloat(word, 64); err == nil {
			*b = append(*b, loss)
		}
	}
}

// lossText returns the shortest text from which a loss is read back exactly.
func lossText(loss float64) string { return strconv.FormatFloat(loss, 'g', -1, 64) }

// keptBest returns how many checkpoints with the lowest validation losses are kept.
func (r *job) keptBest() int {
	if c := &r.s.Train.Checkpoint; c.Best != "" {
		return max(1, c.TopK)
	}
	return 0
}

// checkBest refuses to look for the best checkpoint if no validation loss is measured.
func (r *job) checkBest() error {
	if r.keptBest() == 0 || r.data.source.ValidSamples() > 0 {
		return nil
	}
	return errNoValidData("train.checkpoint.best is "+r.s.Train.Checkpoint.Best, "best")
}

// errNoValidData refuses a setting that needs validation losses. is says what is set, and key what to leave out.
func errNoValidData(is, key string) error {
	return exit.Errorf(exit.Input, "%s, but there is no validation data: set data.valid, such as 0.05, or leave %s out",
		is, key)
}

// addBest reports whether the validation loss after the last step, if it was measured, is among the best.
func (r *saver) addBest() bool {
	return !r.evalPending && r.lastValidStep == r.done.step && r.done.best.add(r.res.ValidLoss, r.keptBest())
}

// retain begins to remove the checkpoints that the job does not keep, after one of a step was committed, and reports
// whether it does. A checkpoint from before the loss became high stays while it is high, because the warning names it.
// The one to which a spike would roll back stays too.
func (r *saver) retain(step int) bool {
	c := &r.s.Train.Checkpoint
	if c.KeepLast == 0 || !r.team.IsFirst() {
		return false
	}
	keep := ckpt.Retention{Last: c.KeepLast, Every: int64(c.KeepEvery), Best: r.keptBest()}
	if r.losses.high > 0 {
		keep.Steps = []int64{int64(r.losses.stepBefore)}
	}
	if to := r.lastScheduled(step); to > 0 && r.s.Train.GoesBack() {
		keep.Steps = append(keep.Steps, int64(to))
	}
	r.background.start(func() func() error {
		removed, err := ckpt.Retain(r.ckptDir, keep)
		return func() error {
			for _, path := range removed {
				r.metrics.Event(step, "remove", path)
			}
			if err != nil {
				r.report.Warn(fmt.Sprintf("%v; it stays, and training continues", err))
			}
			r.metrics.Sync()
			return nil
		}
	})
	return true
}
