package driver

import (
	"fmt"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/rank"
)

// checkState ends the run if a tensor for the checkpoint is not finite. All processes of a launch then end.
func (r *saver) checkState() error {
	found := make([]*ckpt.NonfiniteError, len(r.crew.ranks))
	err := r.crew.do(func(k *rank.Rank) { found[k.ID] = k.Nonfinite() })
	if err != nil {
		return err
	}
	own := ""
	for _, bad := range found {
		if bad != nil {
			own = bad.Error()
			break
		}
	}
	all, err := r.team.Texts(own)
	if err != nil {
		return err
	}
	for _, text := range all {
		if text == "" {
			continue
		}
		return r.refuseState(r.done.step, text)
	}
	return nil
}

// refuseState returns the error for a state that is not finite, which text describes.
func (r *saver) refuseState(step int, text string) error {
	r.metrics.Event(r.done.step, "stop", text)
	return exit.Errorf(exit.Nonfinite, "step %d is not saved: %s. %s; %s", step, text, smallerUpdatesAdvice(&r.s),
		r.goodCheckpointAdvice())
}

// goodCheckpointAdvice says which checkpoint to continue when the current state cannot be used.
func (r *saver) goodCheckpointAdvice() string {
	if r.res.Checkpoint == "" {
		return "no checkpoint was saved before: start over (--resume never)"
	}
	return fmt.Sprintf("the last good checkpoint is of step %d; to continue, resume from %s", r.goodStep,
		r.res.Checkpoint)
}
