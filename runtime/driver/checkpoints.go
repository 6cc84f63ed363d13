package driver

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/settings"
)

// checkpoints saves the state of a run and restores it. It owns the folder of the checkpoints.
type checkpoints struct {
	*saver
	unlock func() // unlocks the folder of the checkpoints; nil until it is locked
}

// close waits until nothing is written. The run has ended, so a failure is only reported.
func (r *checkpoints) close() {
	err := r.background.wait()
	if out := r.saving.outcome; out != nil { // the run failed before the other processes knew
		r.saving.outcome = nil
		err = errors.Join(err, r.committed(out), r.background.wait())
	}
	if err != nil {
		r.report.Warn(err.Error())
	}
	if r.unlock != nil {
		r.unlock()
	}
}

// evaluatedExtra is the key of the step of the last validation loss in a checkpoint.
const evaluatedExtra = "evaluated"

// lock keeps other runs out of the folder of the checkpoints.
func (r *checkpoints) lock() (err error) {
	if !r.team.IsFirst() {
		return nil
	}
	r.unlock, err = ckpt.Lock(r.ckptDir)
	if errors.Is(err, ckpt.ErrLocked) {
		return exit.Errorf(exit.Cannot, "another run is saving its checkpoints in %s; wait until it ends, or use "+
			"another folder with --dir", r.ckptDir)
	}
	return err
}

// restore loads the state with which the run begins, and reports where it comes from. It changes the folder only after
// the last check that can fail.
func (r *checkpoints) restore() error {
	var c *ckpt.Checkpoint
	var later int64
	err := error(nil)
	if r.team.IsFirst() {
		if err := r.cleanFolder(); err != nil {
			return err
		}
		c, later, err = r.checkpointToResume()
	}
	away := c != nil && r.isOutside(c.Path)
	if err == nil {
		c, away, err = shareOrigin(r.team, c, away)
	}
	if err != nil {
		return err
	}
	if c == nil {
		return r.startNew(later)
	}
	return r.continueFrom(c, later, away)
}

// cleanFolder removes what an interrupted save left in the folder of the checkpoints.
func (r *checkpoints) cleanFolder() error {
	aside, err := ckpt.Clean(r.ckptDir)
	for _, path := range aside {
		r.warnAside(path)
	}
	return err
}

func (r *saver) warnAside(path string) {
	r.report.Warn(fmt.Sprintf("another checkpoint of the same step was moved to %s; remove it if it is not needed",
		path))
}

// continueFrom continues from a checkpoint, which may be outside of this run's folder.
func (r *checkpoints) continueFrom(c *ckpt.Checkpoint, later int64, away bool) error {
	m := &c.Manifest
	if !away {
		if err := r.checkLimit(m); err != nil {
			return err
		}
	}
	if err := r.load(c); err != nil {
		return err
	}
	if err := r.setAside(later); err != nil {
		return err
	}
	if was, is := m.Extra["precision"], r.p.TensorTypes().String(); was != "" && was != is {
		r.report.Warn(fmt.Sprintf("the checkpoint has precision %s, and the program %s: results will not be "+
			"bit-identical", was, is))
	}
	if text := settings.Differences(&r.s, &r.p.ProgramData, m.Extra); text != "" {
		r.report.Warn("settings differ from the checkpoint: " + text)
	}
	if text := r.otherSamples(m); text != "" {
		r.report.Warn("the data differs from the checkpoint's, so reading starts at the first sample: " + text)
	} else if text := r.otherContents(m); text != "" {
		r.report.Warn(text)
		r.metrics.Event(r.done.step, "data_changed", text)
	} else {
		r.losses.resume(m.Extra)
	}
	r.countSteps()
	isEarly := r.done.early.isOver() && r.done.step < r.total
	if isEarly {
		r.report.Info(fmt.Sprintf("stopped early at step %d of %d: %s; a larger train.early_stop.patience continues",
			r.done.step, r.total, r.done.early.reason()), "early_stop", "step", r.done.step, "steps", r.total)
		r.total = r.done.step
	}
	r.lastSavedStep, r.goodStep, r.res.Checkpoint, r.res.Tokens = r.done.step, r.done.step, c.Path, m.Tokens
	if last, known := m.Extra[evaluatedExtra]; known {
		r.lastValidStep, _ = strconv.Atoi(last)
		r.evalPending = r.isUnevaluated()
	}
	if away {
		r.lastSavedStep = -1 // so that the end of this run is saved, even at this same step
	}
	r.reportResume(c.Path, isEarly)
	return nil
}

// isUnevaluated reports whether the last step lacks an evaluation that is due after it.
func (r *job) isUnevaluated() bool {
	return isDue(r.s.Train.Eval.Every, r.done.step) && r.lastValidStep != r.done.step && r.done.step < r.total
}

// load restores the tensors and the state of training of a checkpoint.
func (r *checkpoints) load(c *ckpt.Checkpoint) error {
	m := &c.Manifest
	r.done = progress{step: int(m.Step), updates: int(m.Updates), samples: m.Samples, tokens: m.Tokens,
		early: newEarlyStop(r.s.Train.EarlyStop)}
	if r.otherSamples(m) != "" {
		r.done.samples = 0
	}
	if err := r.crew.stores.Load(c); err != nil {
		return fmt.Errorf("cannot continue %s: %w; use --resume never to start over, or --dir to train in "+
			"another folder", c.Path, err)
	}
	r.scaler = newScaler(r.s.Train.Precision.LossScale)
	if err := r.scaler.restore(m.Extra["loss_scale"]); err != nil {
		return exit.Wrap(exit.Input, fmt.Errorf("cannot continue %s: %w", c.Path, err))
	}
	r.done.best.resume(m.Extra)
	r.done.early.resume(m.Extra)
	return nil
}

// countSteps computes the last step if training has a number of epochs. It counts steps of this run's batch size, which
// may differ from the previous run's.
func (r *job) countSteps() {
	if r.s.Train.Epochs > 0 {
		r.total = r.done.step + r.stepsOf(r.end-r.done.samples)
	}
}

// reportResume reports where the run continues and whether steps remain.
func (r *checkpoints) reportResume(path string, isEarly bool) {
	byPlanc := os.Getenv(LaunchedBy) != ""
	at := fmt.Sprintf("step %d of %d", r.done.step, r.total)
	if r.done.step > r.total {
		at = fmt.Sprintf("step %d", r.done.step)
	}
	r.report.Info(fmt.Sprintf("resume: %s, from %s", at, path), "resume", "step", r.done.step, "path", path)
	switch {
	case r.done.step > r.total:
		last := fmt.Sprintf("the last step, %d", r.total)
		if r.s.Train.Steps > 0 {
			last = fmt.Sprintf("--steps %d", r.total)
		}
		r.report.Warn(pastLast(r.done.step, r.total, last, byPlanc), "last", r.total)
	case r.done.step == r.total && !isEarly: // an early stop has said what continues
		text := nothingToDo(r.total, byPlanc)
		r.report.Info(text, text)
	}
	r.metrics.Event(r.done.step, "resume", path)
}

// isOutside reports whether a checkpoint is outside of this run's folder.
func (r *checkpoints) isOutside(path string) bool {
	path, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	from, err := os.Stat(filepath.Dir(path))
	own, ownErr := os.Stat(r.ckptDir)
	return err == nil && ownErr == nil && !os.SameFile(from, own)
}

// checkpointToResume returns the checkpoint that the run continues, or nil. Checkpoints of steps after later are not of
// its past. They must be set aside, so that the next run does not continue them, and this run does not replace them.
func (r *checkpoints) checkpointToResume() (c *ckpt.Checkpoint, later int64, err error) {
	from := r.o.Resume
	switch from {
	case "never":
		return nil, -1, nil
	case "", "auto", "latest", "last": // "latest" is DeepSpeed's word for it, "last" Lightning's
		c, err = r.newestCheckpoint()
		if c == nil {
			return nil, math.MaxInt64, err
		}
		return c, c.Manifest.Step, err
	}
	c, err = r.namedCheckpoint(from)
	if err != nil {
		return nil, 0, err
	}
	if r.isOutside(c.Path) {
		return c, -1, nil
	}
	return c, c.Manifest.Step, nil
}

// namedCheckpoint returns the checkpoint with a step, a folder, or a folder's name among the run's checkpoints.
func (r *checkpoints) namedCheckpoint(from string) (*ckpt.Checkpoint, error) {
	digits := from
	if _, err := os.Stat(from); errors.Is(err, os.ErrNotExist) {
		digits = strings.TrimPrefix(from, "step-")
	}
	if step, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return ckpt.Find(r.ckptDir, step)
	}
	if _, err := os.Stat(from); !errors.Is(err, os.ErrNotExist) {
		return ckpt.Open(from)
	}
	return nil, exit.Errorf(exit.Input, "--resume %s: there is no folder %[1]s; use auto, never, a step such as 40, "+
		"or the folder of a checkpoint such as %s",
		from, filepath.Join(r.ckptDir, "step-00000040"))
}

func (r *checkpoints) newestCheckpoint() (*ckpt.Checkpoint, error) {
	c, skipped, err := ckpt.Newest(r.ckptDir)
	if err != nil {
		return nil, err
	}
	var reasons []error
	for _, s := range skipped {
		r.report.Warn(s.Err.Error() + "; trying the previous checkpoint")
		reasons = append(reasons, s.Err)
	}
	if c == nil && len(skipped) > 0 {
		return nil, exit.Errorf(exit.Input, "no checkpoint in %s is complete and undamaged (%w); use --resume never "+
			"to start over", r.ckptDir,
			errors.Join(reasons...))
	}
	return c, nil
}

// setAside moves the checkpoints after a step to a new folder next to the checkpoints' folder.
func (r *checkpoints) setAside(after int64) error {
	if !r.team.IsFirst() {
		return nil
	}
	entries, err := os.ReadDir(r.ckptDir)
	if err != nil {
		return err
	}
	aside, moved := "", 0
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), "step-")
		step, err := strconv.ParseInt(digits, 10, 64)
		if !ok || err != nil || step <= after {
			continue
		}
		if aside == "" {
			aside, err = makeAside(r.ckptDir)
			if err != nil {
				return err
			}
		}
		if err := os.Rename(filepath.Join(r.ckptDir, e.Name()), filepath.Join(aside, e.Name())); err != nil {
			return err
		}
		moved++
	}
	if moved > 0 {
		r.report.Warn(fmt.Sprintf("moved %s after step %d, where this run begins, to %s",
			countOf(moved, "checkpoint"), max(after, 0), aside))
	}
	return nil
}

// countOf returns a number with its noun: "1 checkpoint", "2 checkpoints".
func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// makeAside creates the folder next to dir with the first unused name: dir.before-1 and so on.
func makeAside(dir string) (string, error) {
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s.before-%d", filepath.Clean(dir), n)
		if err := os.Mkdir(aside, 0o777); !errors.Is(err, os.ErrExist) {
			return aside, err
		}
	}
}

// startNew begins a new run.
func (r *checkpoints) startNew(later int64) error {
	from, err := r.initialize()
	if err == nil {
		err = r.setAside(later)
	}
	if err != nil {
		return err
	}
	text := fmt.Sprintf("start: step 0 of %d, from %s, seed %d", r.total, from, r.s.Train.Seed)
	r.report.Info(text, "start", "steps", r.total, "from", from, "seed", r.s.Train.Seed)
	r.metrics.Event(0, "start", from)
	return nil
}

// initialize fills the parameters of a new run and returns where they come from.
func (r *checkpoints) initialize() (from string, err error) {
	from = r.s.Train.Init
	if from == "" || from == "random" {
		return "random parameters", r.crew.do(func(k *rank.Rank) { k.Initialize(r.s.Train.Seed) })
	}
	if !filepath.IsAbs(from) {
		from = filepath.Join(r.s.Dir, from)
	}
	return from, r.crew.stores.LoadFolder(from)
}
