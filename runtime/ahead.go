package runtime

import (
	"errors"
	"fmt"
	"time"
)

// A device may be given a step before the host has heard of the one before, so that it does not wait while the host
// writes, reads and begins. What the host then does not know is whether that step is skipped: it says for both cases
// how large the loss scale is and how many updates were done, and the device chooses ([Rank.AfterSkip]). A CPU's steps
// end when they are begun.

// task is a step that the ranks were given and the host has not recorded.
type task struct {
	batch *batch
	id    int
	begun time.Time
	// seconds that it took beside what a device says: until it was begun there, and in attempts that came to nothing
	lead      float64
	hyper     Hyper
	scale     float64 // of the loss
	afterSkip AfterSkip
}

// AfterSkip is what differs from a step's Scale and Hyper.T if the step before it, of which nothing is known yet, turns
// out to be skipped.
type AfterSkip struct {
	Scale float64
	T     int
}

// StepResult is what a device says of a step besides the rank's fields.
type StepResult struct {
	Seconds float64 // from the end of the step before or, where it had ended before this one was begun, from there
	// it was skipped, for that it could not be done as it was begun: it is to be begun again, and all that follow it
	Retry bool
}

// oneStep begins a step, and ends those before it, and itself if nothing may be begun before it has ended.
func (r *run) oneStep() error {
	err := r.beginStep()
	for err == nil && len(r.tasks) > r.maxUnfinished() {
		err = r.finishOne()
	}
	return err
}

// maxUnfinished is how many steps may be under way when the next is begun.
func (r *run) maxUnfinished() int {
	if len(r.tasks) == 0 || r.o.onStep != nil || r.o.onTensors != nil || r.o.onChoice != nil || r.isStopRequested() {
		return 0
	}
	id := r.tasks[len(r.tasks)-1].id
	d := r.crew.mine[0].Device
	if d == nil || !d.CanLaunchAhead() || id == r.total || r.isDue(r.s.Train.Eval.Every, id) ||
		r.isDue(r.s.Train.Checkpoint.Every, id) {
		return 0
	}
	return 1
}

// isDue tells whether what is done every so many steps is done after a step.
func (r *run) isDue(every, step int) bool { return every > 0 && step%every == 0 }

// maxBatches is how many steps may be under way at once.
func (r *run) maxBatches() int {
	if r.p.Devices != nil {
		return 2
	}
	return 1
}

// finishAll ends all steps that are under way.
func (r *run) finishAll() error {
	for len(r.tasks) > 0 {
		if err := r.finishOne(); err != nil {
			return err
		}
	}
	return nil
}

// beginStep gives the ranks the next step.
func (r *run) beginStep() error {
	if err := r.endSteps(); err != nil {
		return err
	}
	t := task{begun: time.Now(), id: r.done.step + len(r.tasks) + 1}
	if len(r.retries) > 0 {
		t.batch, r.retries = r.retries[0], r.retries[1:]
	} else {
		var err error
		t.batch, err = r.nextBatch()
		if err != nil {
			if errors.Is(err, errStopRequested) {
				return err
			}
			if failed := r.finishAll(); failed != nil {
				return failed
			}
			return readFailure{err}
		}
	}
	if len(r.tasks) == 0 {
		t.lead = time.Since(t.begun).Seconds()
	}
	t.lead, r.lostSeconds = t.lead+r.lostSeconds, 0
	t.hyper, t.scale = r.hyper(t.id), r.scaler.scale
	t.afterSkip = AfterSkip{t.scale, t.hyper.T}
	if len(r.tasks) > 0 {
		good, bad := r.scaler, r.scaler
		good.update(false)
		bad.update(true)
		t.scale, t.afterSkip.Scale = good.scale, bad.scale
		t.hyper.T++
	}
	r.tasks, r.task = append(r.tasks, t), t
	if r.onRank == nil {
		r.onRank = r.stepOn
	}
	return r.nameStep(r.crew.do(r.onRank), t.id)
}

// receiveReport has a rank's fields be those of the first step under way.
func receiveReport(k *Rank) {
	if k.Device != nil {
		k.stepResult = k.Device.AwaitStep()
		k.reduced = true
	}
}

// waitStep waits for the first step under way.
func (r *run) waitStep() error {
	if r.crew.mine[0].Device == nil {
		return r.exchangeReports()
	}
	if err := r.nameStep(r.crew.do(receiveReport), r.tasks[0].id); err != nil {
		return err
	}
	return r.exchangeReports()
}

// finishOne ends the first step under way, and does all that its number calls for.
func (r *run) finishOne() error {
	if err := r.waitStep(); err != nil {
		return err
	}
	if r.crew.mine[0].stepResult.Retry {
		return r.retrySteps()
	}
	t := r.tasks[0]
	r.tasks = r.tasks[:copy(r.tasks, r.tasks[1:])]
	s, err := r.recordStep(&t)
	r.rows.putBack(t.batch)
	if err != nil {
		return err
	}
	return r.afterStep(s)
}

// retrySteps has the steps under way, which changed nothing, begun again.
func (r *run) retrySteps() error {
	for i := range r.tasks {
		if i > 0 {
			if err := r.waitStep(); err != nil {
				return err
			}
		}
		r.retries = append(r.retries, r.tasks[i].batch)
		r.lostSeconds += r.tasks[i].lead + r.crew.mine[0].stepResult.Seconds
	}
	r.tasks = r.tasks[:0]
	return nil
}

// nameStep names the step in which devices have failed: the one that was at hand or, of an error that devices make
// known some time after, the first of which they have not told.
func (r *run) nameStep(err error, step int) error {
	if err == nil || r.crew.mine[0].Device == nil {
		return err
	}
	var exit *ExitError
	if errors.As(err, &exit) {
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
