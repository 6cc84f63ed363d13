package driver

import (
	"errors"
	"fmt"
	"time"

	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/feed"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
)

// The host may launch a step on a device before it has received the result of the step before, so that the device does
// not wait while the host reads and writes. The host then does not know whether the step before will be skipped. It
// sends the loss scale and the number of updates for both cases, and the device chooses ([rank.Rank.AfterSkip]). On a
// CPU a step has ended when the call that begins it returns.

// stepper begins steps and finishes them, in order.
type stepper struct {
	*job
	member   *member
	recorder *recorder
	after    func(*report.Step) error // performs the actions that are due after a step

	tasks       []task           // unfinished steps, in order
	retries     []task           // aborted steps, which must be retried
	leftOut     map[int64]bool   // first samples of the batches that are left out because of spikes
	lostSeconds float64          // time spent on aborted steps
	task        task             // step that onRank begins
	onRank      func(*rank.Rank) // begins the step on a rank
}

// task is a step that the ranks have begun and the host has not recorded.
type task struct {
	batch *feed.Batch
	id    int
	begun time.Time
	// seconds in addition to the device's own: before its start there, and in attempts that were aborted
	lead      float64
	leftOut   int64 // samples that were left out before the batch
	hyper     rank.Hyper
	scale     float64 // of the loss
	afterSkip rank.AfterSkip
}

// oneStep begins a step and finishes earlier ones. It also finishes the new step if the next may not begin before.
func (r *stepper) oneStep() error {
	err := r.beginStep()
	for err == nil && len(r.tasks) > r.maxUnfinished() && !r.recorder.rollsBack {
		err = r.finishOne()
	}
	return err
}

// maxUnfinished returns how many steps may be unfinished when the next one begins.
func (r *stepper) maxUnfinished() int {
	if len(r.tasks) == 0 || r.o.OnStep != nil || r.o.OnTensors != nil || r.o.OnChoice != nil ||
		r.member.isStopRequested() {
		return 0
	}
	id := r.tasks[len(r.tasks)-1].id
	d := r.crew.mine[0].Device
	if d == nil || !d.CanLaunchAhead() || id == r.total || isDue(r.s.Train.Eval.Every, id) ||
		r.isSaveDue(id) || r.saving.isTimeDue || isDue(r.o.CheckReplicas, id) ||
		isDue(r.o.ParamNorms, id) || isDue(r.s.Train.Eval.SampleEvery, id) {
		return 0
	}
	return 1
}

// isDue reports whether an action with an interval of steps is due after a step.
func isDue(every, step int) bool { return every > 0 && step%every == 0 }

// maxBatches returns how many steps may be unfinished at once, each with its batch.
func (r *stepper) maxBatches() int {
	if r.p.Devices != nil {
		return 2
	}
	return 1
}

// finishAll finishes all steps that have begun.
func (r *stepper) finishAll() error {
	for len(r.tasks) > 0 {
		if err := r.finishOne(); err != nil {
			return err
		}
	}
	return nil
}

// beginStep starts the next step on the ranks.
func (r *stepper) beginStep() error {
	if err := r.endSteps(); err != nil {
		return err
	}
	t := task{begun: time.Now(), id: r.done.step + len(r.tasks) + 1}
	if len(r.retries) > 0 {
		t.batch, t.leftOut, r.retries = r.retries[0].batch, r.retries[0].leftOut, r.retries[1:]
	} else if hasBatch, err := r.takeBatch(&t); err != nil || !hasBatch {
		return err
	}
	if len(r.tasks) == 0 {
		t.lead = time.Since(t.begun).Seconds()
	}
	t.lead, r.lostSeconds = t.lead+r.lostSeconds, 0
	t.hyper, t.scale = r.hyper(t.id), r.scaler.scale
	t.afterSkip = rank.AfterSkip{Scale: t.scale, T: t.hyper.T}
	if len(r.tasks) > 0 {
		good, bad := r.scaler, r.scaler
		good.update(false)
		bad.update(true)
		t.scale, t.afterSkip.Scale = good.scale, bad.scale
		t.hyper.T++
	}
	r.tasks, r.task = append(r.tasks, t), t
	r.member.unfinished = len(r.tasks)
	if r.onRank == nil {
		r.onRank = r.stepOn
	}
	defer r.tracer.begin("step", t.id)()
	return r.nameStep(r.crew.do(r.onRank), t.id)
}

// takeBatch takes the next batch that is not left out. hasBatch is false if there is none, which ends the run.
func (r *stepper) takeBatch(t *task) (hasBatch bool, err error) {
	first, size := r.done.samples, int64(r.p.Batch.GlobalBatch)
	for i := range r.tasks {
		first += r.tasks[i].leftOut + size
	}
	for {
		end := r.tracer.begin("wait for batch", t.id)
		t.batch, err = r.member.nextBatch()
		end()
		if errors.Is(err, feed.ErrStopRequested) {
			return false, err
		}
		if err != nil {
			if failed := r.finishAll(); failed != nil {
				return false, failed
			}
			return false, readFailure{err}
		}
		if !r.leftOut[first] {
			return true, nil
		}
		r.member.rows.PutBack(t.batch)
		first += size
		t.leftOut += size
		if r.s.Train.Epochs > 0 {
			r.total = t.id - 1 + r.stepsOf(r.end-first)
		}
		if r.total < t.id {
			return false, r.finishAll()
		}
	}
}

// leaveOut leaves the batch that begins with a sample out of training.
func (r *stepper) leaveOut(first int64) {
	if r.leftOut == nil {
		r.leftOut = map[int64]bool{}
	}
	r.leftOut[first] = true
}

// waitStep waits until all ranks have the result of the first unfinished step.
func (r *stepper) waitStep() error {
	if r.crew.mine[0].Device == nil {
		return r.member.exchangeReports()
	}
	if err := r.nameStep(r.crew.do((*rank.Rank).AwaitStep), r.tasks[0].id); err != nil {
		return err
	}
	return r.member.exchangeReports()
}

// finishOne finishes the first unfinished step, including all actions that are due after it.
func (r *stepper) finishOne() error {
	if err := r.waitStep(); err != nil {
		return err
	}
	if r.crew.mine[0].StepResult().Retry {
		return r.retrySteps()
	}
	t := r.tasks[0]
	r.tasks = r.tasks[:copy(r.tasks, r.tasks[1:])]
	r.member.unfinished = len(r.tasks)
	end := r.tracer.begin("record", t.id)
	s, err := r.recorder.recordStep(&t)
	end()
	r.member.rows.PutBack(t.batch)
	if err != nil {
		return err
	}
	if r.recorder.rollsBack {
		return nil
	}
	return r.after(s)
}

// dropUnfinished waits for the unfinished steps and drops their results.
func (r *stepper) dropUnfinished() error {
	for range r.tasks {
		if err := r.waitStep(); err != nil {
			return err
		}
	}
	r.tasks, r.retries = r.tasks[:0], nil
	r.member.unfinished = 0
	return nil
}

// retrySteps queues the unfinished steps, which changed no state, to be retried.
func (r *stepper) retrySteps() error {
	for i := range r.tasks {
		if i > 0 {
			if err := r.waitStep(); err != nil {
				return err
			}
		}
		r.retries = append(r.retries, r.tasks[i])
		r.lostSeconds += r.tasks[i].lead + r.crew.mine[0].StepResult().Seconds
	}
	r.tasks = r.tasks[:0]
	r.member.unfinished = 0
	return nil
}

// nameStep adds to a device's error the number of the step that failed. That is step, or, for an error that a device
// reports late, the first step without a result.
func (r *stepper) nameStep(err error, step int) error {
	if err == nil || r.crew.mine[0].Device == nil {
		return err
	}
	var coded *exit.Error
	if errors.As(err, &coded) {
		return err
	}
	var late interface{ Late() bool }
	if errors.As(err, &late) && late.Late() {
		step = r.crew.mine[0].Device.LastCompleted()
		for _, k := range r.crew.mine[1:] {
			step = min(step, k.Device.LastCompleted())
		}
		step = max(step, r.done.step) + 1
	}
	return fmt.Errorf("step %d: %w", step, err)
}
