package driver

import (
	"cmp"
	"errors"
	"fmt"
	goruntime "runtime"
	"strconv"
	"time"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/settings"
	"github.com/planc-dev/planc/runtime/tensors"
)

// A checkpoint is saved between two steps. If it is written in the background, only the copy of the state is taken
// there. On a CPU it is a copy of the tensors that are saved. A device's state is copied to the host's arenas in any
// case, and training does not change these. A save waits until the previous checkpoint is written, as PyTorch's
// torchtitan and Megatron-LM do: no checkpoint is left out, and there is one copy. In a team, all processes send their
// ranks' parts to the first one in the background, which writes and commits the checkpoint.

// saver saves the state of a run.
type saver struct {
	*job
	background    background
	inBackground  bool               // checkpoints are written while training continues, if it does
	copy          *tensors.StateCopy // from which they are written; nil if there is none, as on devices
	hasWaited     bool               // a save has waited for the previous checkpoint, and the run has warned
	failed        error              // why the last checkpoint could not be written in the background; nil: it could
	isPending     bool               // in a team: a save has begun, and the processes have not agreed on its outcome
	lastSavedStep int                // step of the last state that was saved or copied for that, -1 for none
}

// willCopy reports whether checkpoints are written in the background: if a run saves some before its end. The last
// one is not, because no step follows.
func (r *saver) willCopy() bool {
	t := &r.s.Train
	saves := t.Checkpoint.HasInterval() || t.Eval.Every > 0 && r.keptBest() > 0
	trains := r.o.Export == "" && r.o.Generate == ""
	return t.Checkpoint.Async && saves && trains
}

// prepareCopy decides whether checkpoints are written in the background: not if memory for the copy of the state is
// short.
func (r *saver) prepareCopy(free int64) {
	r.inBackground = r.willCopy()
	if !r.inBackground || r.p.Devices != nil {
		return
	}
	bytes := tensors.StateCopyBytes(&r.p.ProgramData, r.p.CommMesh())
	if bytes > free {
		r.inBackground = false
		r.report.Warn(fmt.Sprintf("checkpoints are written between two steps, because their copy of the state needs "+
			"%s, and %s of memory are free", report.Size(bytes), report.Size(free)))
		return
	}
	r.res.CopyBytes = bytes
	r.report.Info("checkpoints: written while training continues, from a copy of "+report.Size(bytes), "checkpoints",
		"copy_bytes", bytes)
}

// save saves a checkpoint of the last step, once. It returns when the checkpoint is durable, or, if it is written in
// the background, when the state is copied.
func (r *saver) save() error { return r.begin(r.inBackground) }

// saveLast saves a checkpoint of the last step, once, and returns when all checkpoints are durable.
func (r *saver) saveLast() error {
	if err := r.begin(false); err != nil {
		return err
	}
	return r.background.wait()
}

// begin begins to save a checkpoint of the last step, and waits for it unless it may be written in the background.
func (r *saver) begin(mayReturn bool) error {
	begun, stall := time.Now(), 0.0
	r.restartTimer()
	if err := r.awaitPrevious(); err != nil {
		return err
	}
	if r.lastSavedStep == r.done.step {
		return nil
	}
	defer r.tracer.begin("checkpoint", r.done.step)()
	mayReturn = mayReturn && r.failed == nil
	if err := r.pull(); err != nil {
		return err
	}
	m := r.manifest()
	stores := &r.crew.stores
	switch {
	case !mayReturn:
		if err := r.checkState(); err != nil {
			return err
		}
	case r.p.Devices == nil:
		if err := r.copyState(); err != nil {
			return err
		}
		stores = &r.copy.Stores
	}
	r.metrics.Sync() // a committed step's lines are durable
	r.lastSavedStep = r.done.step
	r.isPending = r.team.Peers != nil
	r.background.start(func() func() error {
		out := saveOutcome{Step: int(m.Step)}
		writing := time.Now()
		out.setResult(r.store(m, stores))
		out.write = time.Since(writing).Seconds()
		return func() error {
			if !mayReturn {
				stall = time.Since(begun).Seconds()
			}
			out.stall = stall
			return r.writingEnded(&out)
		}
	})
	if mayReturn {
		stall = time.Since(begun).Seconds()
		return nil
	}
	failed, err := r.finishWriting()
	err = cmp.Or(err, failed)
	if err == nil {
		r.failed = nil
	}
	return err
}

// pull finishes the updates of the last step and copies the ranks' state, and the regions that more selects, to the
// host, once no checkpoint is written from there.
func (r *saver) pull(more ...func(*program.Arena) program.Region) error {
	if err := r.awaitPrevious(); err != nil {
		return err
	}
	if err := r.crew.finishUpdates(); err != nil {
		return err
	}
	return r.crew.pull(more...)
}

// takeMemory takes the memory for the copy of the state, by a first copy: later ones are faster.
func (r *saver) takeMemory() error {
	if !r.inBackground || r.p.Devices != nil {
		return nil
	}
	r.copy = r.crew.stores.NewStateCopy()
	return r.copyState()
}

// copyState copies the state of this process's ranks.
func (r *saver) copyState() error {
	threads := threadsEach(goruntime.GOMAXPROCS(0), r.team.Count)
	return r.crew.do(func(k *rank.Rank) { r.copy.Take(&k.Store, threads) })
}

// manifest describes the state after the last step.
func (r *saver) manifest() ckpt.Manifest {
	m := ckpt.Manifest{
		Step: int64(r.done.step), Updates: int64(r.done.updates), Samples: r.done.samples, Tokens: r.done.tokens,
		Seed: r.s.Train.Seed, Data: r.data.id(), Plan: r.p.Plan.Text, Program: r.p.Hash,
		Extra: map[string]string{"name": r.p.Name, "optimizer": r.p.Optim.String()},
	}
	if r.p.Model.Hash != "" {
		m.Extra["model"] = r.p.Model.Hash
	}
	if !r.p.HasMoments() {
		m.Extra[tensors.NoMomentsExtra] = "none"
	}
	if s := r.scaler.text(); s != "" {
		m.Extra["loss_scale"] = s
	}
	m.Extra["precision"] = r.p.TensorTypes().String()
	if s := r.data.text(); s != "" {
		m.Extra[dataExtra], m.Extra[sampledExtra] = s, r.data.hash
	}
	m.Extra[evaluatedExtra] = strconv.Itoa(r.lastValidStep)
	if r.lastValidStep == r.done.step && num.Finite(r.res.ValidLoss) {
		m.Extra[ckpt.ValidLossExtra] = lossText(r.res.ValidLoss)
	}
	tensors.SaveWeights(&r.p.Weights, m.Extra)
	r.done.best.save(m.Extra)
	r.losses.save(m.Extra)
	r.done.early.save(m.Extra)
	settings.SaveSteering(&r.s, &r.p.ProgramData, m.Extra)
	return m
}

// committed records the end of writing a checkpoint, and begins to remove those that the job does not keep. It returns
// an error if the checkpoint could not be written.
func (r *saver) committed(out *saveOutcome) error {
	switch {
	case out.IsNonfinite:
		return r.refuseState(out.Step, out.Failure)
	case out.Failure != "":
		return out.failure()
	}
	if out.Aside != "" {
		r.warnAside(out.Aside)
	}
	r.goodStep, r.res.Checkpoint = out.Step, out.Path
	r.report.Info(fmt.Sprintf("step %d  checkpoint %s", out.Step, out.Path), "checkpoint", "step", out.Step, "path",
		out.Path)
	r.metrics.Checkpoint(out.Step, out.Path, out.stall, out.write)
	if !r.retain(out.Step) {
		r.metrics.Sync()
	}
	return nil
}

// longWait is how long a save may wait for the previous checkpoint without a warning.
const longWait = 500 * time.Millisecond

// awaitPrevious waits until the previous checkpoint is written. If that failed, the state is not lost: the caller saves
// a later one.
func (r *saver) awaitPrevious() error {
	if !r.background.isBusy() && !r.isPending {
		return nil
	}
	begun := time.Now()
	failed, err := r.finishWriting()
	if err == nil {
		err = r.tolerate(failed)
	}
	waited := time.Since(begun)
	if waited < longWait || err != nil {
		return err
	}
	text := fmt.Sprintf("waited %s until the previous checkpoint was written", waited.Round(time.Millisecond))
	r.metrics.Event(r.done.step, "checkpoint_wait", text)
	if !r.hasWaited {
		r.hasWaited = true
		r.report.Warn(fmt.Sprintf("step %d: training %s; a larger train.checkpoint.every avoids that", r.done.step,
			text))
	}
	return nil
}

// tolerate handles a failure of writing in the background. The next save is made at once, and its failure ends the run.
func (r *saver) tolerate(err error) error {
	if err == nil {
		return nil
	}
	if coded := (*exit.Error)(nil); errors.As(err, &coded) {
		return err
	}
	r.failed, r.lastSavedStep = err, -1
	r.report.Warn(err.Error() + "; a later step is saved instead")
	r.metrics.Event(r.done.step, "checkpoint_failed", err.Error())
	return nil
}

// check takes the result of writing in the background, if there is one. If it failed, the run has to finish the steps
// that it has begun, and to save the last one.
func (r *saver) check() (mustSave bool, err error) {
	failed := r.background.poll()
	if r.team.Peers != nil {
		failed, err = nil, failed // of the connection: in a team a checkpoint's outcome is agreed on
		if err == nil && r.saving.agreed != nil {
			failed, err = r.finishWriting()
		}
	}
	if err == nil {
		err = r.tolerate(failed)
	}
	return r.failed != nil, err
}
