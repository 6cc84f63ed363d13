package driver

import (
	"errors"
	"fmt"

	"github.com/planc-dev/planc/runtime/exit"
)

// readFailure is an error of reading the training data. The ranks' state is still valid, so it is saved before the run
// ends.
type readFailure struct{ error }

// Unwrap returns the cause.
func (u readFailure) Unwrap() error { return u.error }

// ioError returns the I/O error for which the run must end after it has saved its state; nil if there is none.
func (r *member) ioError() error {
	switch {
	case r.readError != nil:
		return r.readError
	case r.metrics.Err() != nil:
		return r.metrics.Err()
	case r.team.Peers == nil || r.feed == nil, r.feed == r.rows && !r.needsMore():
		return nil
	}
	return r.feed.ReadError()
}

// needsMore reports whether more batches are needed than those of the unfinished steps.
func (r *member) needsMore() bool { return r.done.step+r.unfinished < r.total }

// train runs the remaining steps and the actions after the last. If reading data fails in a process alone, it saves the
// state and ends. In a team the failure is a request to stop, which all processes receive before the next step (see
// exchangeReports), and this process reports its cause.
func (r *run) train() error {
	err := r.steps()
	if r.crew.world.Err() == nil { // the ranks are idle
		err = errors.Join(err, r.tracer.finish())
	}
	var unread readFailure
	if r.team.Peers == nil && errors.As(err, &unread) {
		r.member.readError = unread.error
		return r.stop()
	}
	return err
}

// stop ends a run on request or after an I/O error.
func (r *run) stop() error {
	cause := r.member.ioError()
	if cause != nil && r.done.step == 0 {
		return cause // no state to save
	}
	if err := r.checkpoints.saveLast(); err != nil {
		if cause != nil {
			return fmt.Errorf("%w; step %d could not be saved: %w", cause, r.done.step, err)
		}
		return err
	}
	if cause != nil {
		r.metrics.Event(r.done.step, "stop", cause.Error())
		return fmt.Errorf("%w; step %d of %d is saved; to continue, resume from checkpoint %s", cause,
			r.done.step, r.total,
			r.res.Checkpoint)
	}
	r.metrics.Event(r.done.step, "stop", "on request")
	cause = r.member.ioError()
	if cause != nil {
		return cause
	}
	return exit.Errorf(exit.OnRequest, "stopped on request after step %d of %d; to continue, resume from checkpoint %s",
		r.done.step,
		r.total, r.res.Checkpoint)
}
