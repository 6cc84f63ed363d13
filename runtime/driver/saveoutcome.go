package driver

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/planc-dev/planc/runtime/ckpt"
)

// In a team, the first process knows first how the writing of a checkpoint ended. All processes must act on that
// before the same step: a failure makes all save a later step, and a state that is not finite ends all. The outcome is
// therefore part of the first process's report after a step. A process that waits for a checkpoint receives the outcome
// by a broadcast instead.

// saveOutcome is how the writing of a checkpoint ended.
type saveOutcome struct {
	Step        int
	Path, Aside string // as in ckpt.Saved
	Failure     string // why it could not be written; "" if it is durable
	IsNonfinite bool   // it could not be written because the state is not finite

	err          error   // of which Failure is the text, in the process that wrote it
	stall, write float64 // seconds that training stopped, and that writing took
}

// setResult sets what writing has returned.
func (o *saveOutcome) setResult(saved ckpt.Saved, err error) {
	o.Path, o.Aside, o.err = saved.Path, saved.Aside, err
	if err == nil {
		return
	}
	o.Failure = err.Error()
	if bad := (*ckpt.NonfiniteError)(nil); errors.As(err, &bad) {
		o.Failure, o.IsNonfinite = bad.Error(), true
	}
}

// failure returns why the checkpoint could not be written.
func (o *saveOutcome) failure() error {
	if o.err != nil {
		return o.err
	}
	return failedElsewhere{errors.New(o.Failure)}
}

// failedElsewhere is the error of another process, which reports it.
type failedElsewhere struct{ error }

func (failedElsewhere) Elsewhere() bool { return true }

// writingEnded takes the outcome of writing a checkpoint. In a team, the first process has to send it to the others.
func (r *saver) writingEnded(out *saveOutcome) error {
	switch {
	case r.team.Peers == nil:
		return r.committed(out)
	case r.team.IsFirst():
		r.saving.outcome = out
		return nil
	}
	return out.err // of the connection
}

// finishWriting waits until no checkpoint is written. failed is why the last one could not be written, and err is an
// error of the connection to the other processes.
func (r *saver) finishWriting() (failed, err error) {
	failed = r.background.wait()
	if r.team.Peers == nil {
		return failed, nil
	}
	if failed != nil || !r.isPending {
		return nil, failed
	}
	out := r.saving.agreed
	if out == nil {
		out, err = r.shareOutcome()
	}
	if err != nil {
		return nil, err
	}
	r.isPending, r.saving.outcome, r.saving.agreed = false, nil, nil
	failed = r.committed(out)
	return failed, r.background.wait() // which may be the removal of other checkpoints
}

// shareOutcome broadcasts the outcome of the checkpoint that the first process has written.
func (r *saver) shareOutcome() (*saveOutcome, error) {
	b, err := json.Marshal(r.saving.outcome)
	if err != nil {
		return nil, err
	}
	b, err = r.team.Peers.Broadcast(b)
	if err != nil || r.team.IsFirst() {
		return r.saving.outcome, err
	}
	out := &saveOutcome{}
	if err := json.Unmarshal(b, out); err != nil {
		return nil, fmt.Errorf("cannot read process 0's message about its checkpoint: %w", err)
	}
	return out, nil
}

// finishPending waits for the checkpoint that the processes of a team write when the run ends, if all of them end with
// the same error. A failure is only reported.
func (r *saver) finishPending(cause error) {
	if !r.isPending || !isCommonEnd(cause) {
		return
	}
	failed, err := r.finishWriting()
	if err = errors.Join(failed, err); err != nil {
		r.report.Warn(err.Error())
	}
}
