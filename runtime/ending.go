package runtime

import (
	"errors"
	"fmt"
)

// readFailure marks an error of reading the data. The ranks are sound, so their state is saved before the run ends with
// it.
type readFailure struct{ error }

func (u readFailure) Unwrap() error { return u.error }

// ioError is the I/O error for which the run is to end after it has saved its state; nil if there is none.
func (r *run) ioError() error {
	switch {
	case r.readError != nil:
		return r.readError
	case r.metrics.err != nil:
		return r.metrics.err
	case r.team.Peers == nil || r.feed == nil, r.feed == r.rows && !r.needsMore():
		return nil
	}
	return r.feed.readError()
}

// needsMore reports whether batches are needed beyond those of the steps under way.
func (r *run) needsMore() bool { return r.done.step+len(r.tasks) < r.total }

// train runs the steps that are left and what comes after the last. An error of reading data ends a process alone after
// its state is saved. In a team it is a request to stop, which all hear before the next step (see share), and whose
// cause this process reports.
func (r *run) train() error {
	err := r.steps()
	var unread readFailure
	if r.team.Peers == nil && errors.As(err, &unread) {
		r.readError = unread.error
		return r.stop()
	}
	return err
}

// stop ends a run on request, or for an I/O error.
func (r *run) stop() error {
	cause := r.ioError()
	if cause != nil && r.done.step == 0 {
		return cause // there is nothing to save
	}
	if err := r.save(); err != nil {
		if cause != nil {
			return fmt.Errorf("%w; and step %d is not saved: %w", cause, r.done.step, err)
		}
		return err
	}
	if cause != nil {
		r.metrics.event(r.done.step, "stop", cause.Error())
		return fmt.Errorf("%w; step %d of %d is saved: checkpoint %s continues it", cause, r.done.step, r.total,
			r.res.Checkpoint)
	}
	r.metrics.event(r.done.step, "stop", "on request")
	cause = r.ioError()
	if cause != nil {
		return cause
	}
	return exitf(ExitOnRequest, "stopped on request after step %d of %d; checkpoint %s continues it", r.done.step,
		r.total, r.res.Checkpoint)
}
