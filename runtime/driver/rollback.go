package driver

import (
	"fmt"
	"strconv"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/program"
)

// maxRollbacks is how often a run returns to the same checkpoint. PaLM's spikes (Chowdhery et al. 2022) did not come
// back after one skip of the data around them, so a spike that does has another cause.
const maxRollbacks = 3

// lastScheduled returns the step of the last checkpoint that train.checkpoint.every requires up to a step, 0 for none.
// Checkpoints for other reasons depend on when a run was interrupted.
func (r *job) lastScheduled(step int) int {
	every := r.s.Train.Checkpoint.Every
	if every == 0 {
		return 0
	}
	return step / every * every
}

// spikeGuard returns to earlier checkpoints after loss spikes.
type spikeGuard struct {
	*run
	to    int // step of the checkpoint to which it has returned last; of the last spike with train.on_spike skip
	count int // how often it has returned there in a row; spikes at that step
}

// goBack drops all steps that have begun, returns to the state before the spike, and reads the samples from there.
func (r *spikeGuard) goBack() error {
	r.recorder.rollsBack = false
	if err := r.stepper.dropUnfinished(); err != nil {
		return err
	}
	if err := r.crew.finishUpdates(); err != nil {
		return err
	}
	act := r.rollBack
	if r.s.Train.OnSpike == program.SkipSpikes {
		act = r.skipBatch
	}
	if err := act(); err != nil {
		return err
	}
	r.evaluator.lastEvalStep = -1
	r.countSteps()
	r.evalPending = r.isUnevaluated()
	r.member.rows.Stop()
	r.readSamples()
	return r.finishEvaluation()
}

// maxSkips is how many batches in a row are left out at one step. After that, the parameters are the cause.
const maxSkips = 3

// skipBatch leaves out the batch of a spike. It returns to the newest checkpoint, from which the run repeats the steps
// before the spike with the same samples: they have the same results to the bit, so that the run goes on as one that
// never had the batch. A run that was interrupted does the same from whichever checkpoint it continues, and a later
// checkpoint counts the batch as read.
func (r *spikeGuard) skipBatch() error {
	spike, size := r.done.step, int64(r.p.Batch.GlobalBatch)
	first := r.done.samples - size
	if r.to != spike {
		r.to, r.count = spike, 0
	}
	r.count++
	if r.count > maxSkips {
		r.metrics.Event(spike, "stop", "spikes on other batches")
		return exit.Errorf(exit.Nonfinite, "step %d: the loss spikes on %d batches in a row, so the data is not the "+
			"cause. %s; or continue with --set train.on_spike=warn", spike, r.count, smallerUpdatesAdvice(&r.s))
	}
	if err := r.checkpoints.reload(r.checkpoints.lastSaved, spike); err != nil {
		return err
	}
	r.stepper.leaveOut(first)
	text := fmt.Sprintf("step %d: samples %d to %d are left out because of the spike; training goes back to the "+
		"checkpoint of step %d and repeats the steps from there", spike, first, first+size-1, r.done.step)
	r.report.Warn(text, "step", spike, "to", r.done.step, "samples", first)
	r.metrics.Event(r.done.step, "skip_batch", text)
	return nil
}

// lastSaved opens the last checkpoint that this run has saved, or from which it continues.
func (r *checkpoints) lastSaved() (*ckpt.Checkpoint, error) { return ckpt.Open(r.res.Checkpoint) }

// rollBack returns to the last scheduled checkpoint after a loss spike. Training goes on with the samples after those
// of the spike: the ones in between are not used. Later checkpoints count them as read. A run that was interrupted does
// the same, because it has the same losses and the same scheduled checkpoint.
func (r *spikeGuard) rollBack() error {
	spike, samples := r.done.step, r.done.samples
	if to := r.lastScheduled(spike - 1); r.to != to {
		r.to, r.count = to, 0
	}
	r.count++
	if r.count > maxRollbacks {
		r.metrics.Event(spike, "stop", "spikes after rollbacks")
		return exit.Errorf(exit.Nonfinite, "step %d: the loss spikes after %d rollbacks to the checkpoint of step %d, "+
			"each to other samples. %s; or continue with --set train.on_spike=warn", spike, maxRollbacks, r.to,
			smallerUpdatesAdvice(&r.s))
	}
	scheduled := func() (*ckpt.Checkpoint, error) { return ckpt.Find(r.ckptDir, int64(r.to)) }
	if err := r.checkpoints.reload(scheduled, spike); err != nil {
		return err
	}
	text := fmt.Sprintf("step %d: rolled back to the checkpoint of step %d because of the spike; samples %d to %d are "+
		"left out", spike, r.done.step, r.done.samples, samples-1)
	r.done.samples = samples
	r.report.Warn(text, "step", spike, "to", r.done.step, "samples", samples)
	r.metrics.Event(r.done.step, "rollback", text)
	return nil
}

// reload restores the state of the checkpoint that open opens. If it could not be written, an older or newer one from
// before the spike takes its place. Later checkpoints are set aside, as when a run resumes: they are not of the past of
// those that follow.
func (r *checkpoints) reload(open func() (*ckpt.Checkpoint, error), spike int) error {
	if err := r.awaitPrevious(); err != nil {
		return err
	}
	var c *ckpt.Checkpoint
	var err error
	if r.team.IsFirst() {
		c, err = open()
		if err != nil || c.Manifest.Step >= int64(spike) {
			newest, _, e := ckpt.Newest(r.ckptDir)
			switch {
			case e == nil && newest != nil && newest.Manifest.Step < int64(spike):
				c, err = newest, nil
			case err == nil:
				err = fmt.Errorf("no checkpoint in %s is from before step %d", r.ckptDir, spike)
			}
		}
	}
	if err == nil {
		c, _, err = shareOrigin(r.team, c, false)
	}
	if err != nil {
		return fmt.Errorf("cannot roll back: %w; continue with --set train.on_spike=warn", err)
	}
	if err := r.load(c); err != nil {
		return err
	}
	r.losses = lossWatch{}
	if r.otherSamples(&c.Manifest) == "" && r.otherContents(&c.Manifest) == "" {
		r.losses.resume(c.Manifest.Extra)
	}
	r.lastValidStep, _ = strconv.Atoi(c.Manifest.Extra[evaluatedExtra])
	if err := r.setAside(c.Manifest.Step); err != nil {
		return err
	}
	r.lastSavedStep, r.goodStep, r.res.Checkpoint = r.done.step, r.done.step, c.Path
	return r.crew.push()
}
