package driver

import (
	"math"
	"time"

	"github.com/planc-dev/planc/runtime/exit"
)

// saveSchedule says when the next checkpoint is due by time and epochs. The first process has the clock: the others
// learn from its report after a step that a checkpoint is due, so that all save after the same step.
type saveSchedule struct {
	since     time.Time // of the last checkpoint, or the first step
	isTimeDue bool      // a checkpoint is due after the last step that has begun
	samples   float64   // between two checkpoints that are saved by epochs; 0: none is

	// in a team, of a checkpoint that has been written: what the first process has to report, and what all know
	outcome, agreed *saveOutcome
}

// now returns the time of the clock by which checkpoints are saved.
func (r *job) now() time.Time {
	if r.o.Now != nil {
		return r.o.Now()
	}
	return time.Now()
}

// isOverdue reports whether the time between two checkpoints has passed by this process's clock.
func (r *job) isOverdue() bool {
	minutes := r.s.Train.Checkpoint.EveryMinutes
	return minutes > 0 && r.now().Sub(r.saving.since).Minutes() >= minutes
}

// isTimeDue reports whether a checkpoint is due by time after the last step that has begun. All processes get the same
// answer after the same step.
func (r *saver) isTimeDue() bool {
	if r.team.Peers == nil && r.isOverdue() {
		r.saving.isTimeDue = true
	}
	return r.saving.isTimeDue
}

// restartTimer counts the time to the next checkpoint from now on.
func (r *saver) restartTimer() {
	r.saving.isTimeDue = false
	if r.s.Train.Checkpoint.EveryMinutes > 0 {
		r.saving.since = r.now()
	}
}

// checkSaveEpochs computes the number of samples between two checkpoints that are saved by epochs.
func (r *job) checkSaveEpochs() error {
	epochs := r.s.Train.Checkpoint.EveryEpochs
	if epochs == 0 {
		return nil
	}
	n := r.data.epoch()
	if n == 0 {
		return exit.Errorf(exit.Input, "train.checkpoint.every_epochs needs data of known length; use every (steps) "+
			"or every_minutes instead")
	}
	r.saving.samples = epochs * float64(n)
	return nil
}

// isSaveDue reports whether a checkpoint is due after a step by the number of steps or epochs.
func (r *job) isSaveDue(step int) bool {
	if isDue(r.s.Train.Checkpoint.Every, step) {
		return true
	}
	if r.saving.samples == 0 {
		return false
	}
	batch := int64(r.p.Batch.GlobalBatch)
	after := r.done.samples + int64(step-r.done.step)*batch
	return math.Floor(float64(after)/r.saving.samples) > math.Floor(float64(after-batch)/r.saving.samples)
}
