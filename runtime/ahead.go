package runtime

import (
	"errors"
	"fmt"
	"time"
)

// A device may be given a step before the host has heard of the one before, so that it does not wait while the host
// writes, reads and begins. What the host then does not know is whether that step is skipped: it says for both cases
// how large the loss scale is and how many updates were done, and the device chooses ([Rank.Otherwise]). A CPU's steps
// end when they are begun.

// task is a step that the ranks were given and the host has not recorded.
type task struct {
	batch *batch
	id    int
	begun time.Time
	// seconds that it took beside what a device says: until it was begun there, and in attempts that came to nothing
	before    float64
	hyper     Hyper
	scale     float64 // of the loss
	otherwise Otherwise
}

// Otherwise is what differs from a step's Scale and Hyper.T if the step before it, of which nothing is known yet, turns
// out to be skipped.
type Otherwise struct {
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
	err := r.begin()
	for err == nil && len(r.tasks) > r.lag() {
		err = r.finishOne()
	}
	return err
}

// lag is how many steps may be under way when the next is begun.
func (r *run) lag() int {
	if len(r.tasks) == 0 || r.o.onStep != nil || r.o.onTensors != nil || r.o.onChoice != nil || r.halted() {
		return 0
	}
	id := r.tasks[len(r.tasks)-1].id
	d := r.crew.mine[0].Device
	if d == nil || !d.CanLaunchAhead() || id == r.total || r.due(r.s.Train.Eval.Every, id) ||
		r.due(r.s.Train.Checkpoint.Every, id) {
		return 0
	}
	return 1
}

// due tells whether what is done every so many steps is done after a step.
func (r *run) due(every, step int) bool { return every > 0 && step%every == 0 }

// ahead is how many steps may be under way at once.
func (r *run) ahead() int {
	if r.p.Devices != nil {
		return 2
	}
	return 1
}

// drain ends all steps that are under way.
func (r *run) drain() error {
	for len(r.tasks) > 0 {
		if err := r.finishOne(); err != nil {
			return err
		}
	}
	return nil
}

// begin gives the ranks the next step.
func (r *run) begin() error {
	if err := r.endSteps(); err != nil {
		return err
	}
	t := task{begun: time.Now(), id: r.done.step + len(r.tasks) + 1}
	if len(r.again) > 0 {
		t.batch, r.again = r.again[0], r.again[1:]
	} else {
		var err error
		t.batch, err = r.nextBatch()
		if err != nil {
			if errors.Is(err, errAsked) {
				return err
			}
			if failed := r.drain(); failed != nil {
				return failed
			}
			return unreadable{err}
		}
	}
	if len(r.tasks) == 0 {
		t.before = time.Since(t.begun).Seconds()
	}
	t.before, r.lost = t.before+r.lost, 0
	t.hyper, t.scale = r.hyper(t.id), r.scaler.scale
	t.otherwise = Otherwise{t.scale, t.hyper.T}
	if len(r.tasks) > 0 {
		good, bad := r.scaler, r.scaler
		good.update(false)
		bad.update(true)
		t.scale, t.otherwise.Scale = good.scale, bad.scale
		t.hyper.T++
	}
	r.tasks, r.task = append(r.tasks, t), t
	if r.onRank == nil {
		r.onRank = r.stepOn
	}
	return r.blamed(r.crew.do(r.onRank), t.id)
}

// heardOn has a rank's fields be those of the first step under way.
func heardOn(k *Rank) {
	if k.Device != nil {
		k.heard = k.Device.AwaitStep()
		k.reduced = true
	}
}

// hear waits for the first step under way.
func (r *run) hear() error {
	if r.crew.mine[0].Device == nil {
		return r.share()
	}
	if err := r.blamed(r.crew.do(heardOn), r.tasks[0].id); err != nil {
		return err
	}
	return r.share()
}

// finishOne ends the first step under way, and does all that its number calls for.
func (r *run) finishOne() error {
	if err := r.hear(); err != nil {
		return err
	}
	if r.crew.mine[0].heard.Retry {
		return r.repeat()
	}
	t := r.tasks[0]
	r.tasks = r.tasks[:copy(r.tasks, r.tasks[1:])]
	s, err := r.recordStep(&t)
	r.rows.give(t.batch)
	if err != nil {
		return err
	}
	return r.after(s)
}

// repeat has the steps under way, which changed nothing, begun again.
func (r *run) repeat() error {
	for i := range r.tasks {
		if i > 0 {
			if err := r.hear(); err != nil {
				return err
			}
		}
		r.again = append(r.again, r.tasks[i].batch)
		r.lost += r.tasks[i].before + r.crew.mine[0].heard.Seconds
	}
	r.tasks = r.tasks[:0]
	return nil
}

// blamed names the step in which devices have failed: the one that was at hand or, of an error that devices make known
// some time after, the first of which they have not told.
func (r *run) blamed(err error, step int) error {
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
