package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/tensors"
)

// State of a run on several processes: only the first process reads and writes checkpoints. Tensors travel between it
// and the ranks in slabs, so that no machine needs the others' memory or the first one's disk.

// origin is the checkpoint with which a run begins, as the first process has chosen it.
type origin struct {
	Fresh    bool
	Path     string
	Away     bool // the checkpoint is outside of the run's folder
	Manifest ckpt.Manifest
}

// shareOrigin broadcasts which checkpoint is continued, nil for none, and whether it is outside of the run's folder.
func shareOrigin(t *launch.Team, c *ckpt.Checkpoint, away bool) (*ckpt.Checkpoint, bool, error) {
	if t.Peers == nil {
		return c, away, nil
	}
	from := origin{Fresh: c == nil, Away: away}
	if c != nil {
		from.Path, from.Manifest = c.Path, c.Manifest
	}
	b, err := json.Marshal(from)
	if err != nil {
		return nil, false, err
	}
	b, err = t.Peers.Broadcast(b)
	if err != nil || t.IsFirst() {
		return c, away, err
	}
	if err := json.Unmarshal(b, &from); err != nil {
		return nil, false, fmt.Errorf("cannot read process 0's message about its checkpoint: %w", err)
	}
	if from.Fresh {
		return nil, false, nil
	}
	return &ckpt.Checkpoint{Path: from.Path, Manifest: from.Manifest}, from.Away, nil
}

// store writes a checkpoint of the stores. The other processes send their ranks' part of it to the first, which returns
// after it has received all parts, even if it cannot write them: the next checkpoint's parts then follow.
func (r *saver) store(m ckpt.Manifest, stores *tensors.Stores) (saved ckpt.Saved, err error) {
	from := *stores
	from.InBackground = r.team.Peers != nil
	contents := from.Contents()
	if !r.team.IsFirst() {
		return saved, discardContents(contents, 0)
	}
	save := ckpt.Save
	if r.o.Save != nil {
		save = r.o.Save
	}
	filled := 0
	for i := range contents {
		fill := contents[i].Fill
		contents[i].Fill = func(j int, w io.Writer) error {
			filled++
			return fill(j, w)
		}
	}
	saved, err = save(r.ckptDir, m, contents)
	if err != nil && !from.IsAlone() {
		_ = discardContents(contents, filled) // fails if another process does, which ends the run
	}
	return saved, err
}

// discardContents calls Fill as saving does, except for the first tensors, so that this process sends or receives their
// parts. The first process finds numbers that are not finite.
func discardContents(contents []ckpt.Content, first int) error {
	for i := range contents {
		c := &contents[i]
		from := min(first, len(c.Tensors))
		first -= from
		for j := from; j < len(c.Tensors); j++ {
			err := c.Fill(j, io.Discard)
			if bad := (*ckpt.NonfiniteError)(nil); err != nil && !errors.As(err, &bad) {
				return err
			}
		}
	}
	return nil
}

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
		out, err = shareOutcome(r.team, r.saving.outcome)
	}
	if err != nil {
		return nil, err
	}
	r.isPending, r.saving.outcome, r.saving.agreed = false, nil, nil
	failed = r.committed(out)
	return failed, r.background.wait() // which may be the removal of other checkpoints
}

// shareOutcome broadcasts the outcome of the checkpoint that the first process has written.
func shareOutcome(t *launch.Team, own *saveOutcome) (*saveOutcome, error) {
	b, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	b, err = t.Peers.Broadcast(b)
	if err != nil || t.IsFirst() {
		return own, err
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
	err = errors.Join(failed, err)
	if err != nil {
		r.report.Warn(err.Error())
	}
}
