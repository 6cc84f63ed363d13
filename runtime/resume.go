package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/runtime/ckpt"
)

// save commits a checkpoint of the last step, once.
func (r *run) save() error {
	if r.saved == r.done.step {
		return nil
	}
	m := ckpt.Manifest{
		Step: int64(r.done.step), Updates: int64(r.done.updates), Samples: r.done.samples, Tokens: r.done.tokens,
		Seed: r.s.Train.Seed, Data: r.dataID(), Plan: r.p.Plan.Text, Program: r.p.Hash,
		Extra: map[string]string{"name": r.p.Name, "optimizer": r.p.Optim.String()},
	}
	path, err := ckpt.Save(r.ckptDir, m, r.contents())
	if err != nil {
		return err
	}
	r.saved, r.res.Checkpoint = r.done.step, path
	r.report.say(fmt.Sprintf("step %d  checkpoint %s", r.done.step, path), "checkpoint", "step", r.done.step, "path", path)
	return r.metrics.event(r.done.step, "checkpoint", path)
}

func (r *run) contents() []ckpt.Content {
	if r.p.Elem == F64 {
		return contentsOf[float64](r.crew)
	}
	return contentsOf[float32](r.crew)
}

func contentsOf[F Float](c *crew) []ckpt.Content {
	p := c.ranks[0].Program
	return []ckpt.Content{
		content[F](c, modelFile, []kind{p.paramKind()}),
		content[F](c, optimizerFile, p.momentKinds()),
	}
}

// dataID names the order of the samples, so that a count of samples means something.
func (r *run) dataID() string {
	if s, ok := r.source.(interface{ ID() string }); ok {
		return s.ID()
	}
	return ""
}

// restore brings the ranks to where the run begins, and says where that is.
func (r *run) restore() error {
	c, err := r.chosen()
	if err != nil {
		return err
	}
	if c == nil {
		return r.start()
	}
	m := &c.Manifest
	r.done = progress{step: int(m.Step), updates: int(m.Updates), samples: m.Samples, tokens: m.Tokens}
	if err := r.fill(c); err != nil {
		return fmt.Errorf("cannot continue %s: %w; --resume never starts over, --dir begins elsewhere", c.Path, err)
	}
	if id := r.dataID(); m.Data != id {
		r.report.warn("the data or its seed differ from the checkpoint's: its samples are read from the first on")
		r.done.samples = 0
	}
	r.saved, r.res.Checkpoint, r.res.Tokens = r.done.step, c.Path, m.Tokens
	if dir, err := filepath.Abs(r.ckptDir); err == nil {
		if from, err := filepath.Abs(c.Path); err == nil && filepath.Dir(from) != dir {
			r.saved = -1 // it lies elsewhere: the end of this run is saved even if it is this step
		}
	}
	r.report.say(fmt.Sprintf("resume: step %d of %d, from %s", r.done.step, r.total, c.Path), "resume", "step", r.done.step, "path", c.Path)
	return r.metrics.event(r.done.step, "resume", c.Path)
}

// chosen is the checkpoint that the run continues, or nil. Checkpoints of later steps are set aside, so
// that the next run does not take them for this run's.
func (r *run) chosen() (*ckpt.Checkpoint, error) {
	if err := ckpt.Clean(r.ckptDir); err != nil {
		return nil, err
	}
	from := r.o.resume
	if from == "never" {
		return nil, r.setAside(-1)
	}
	if from == "" || from == "auto" {
		return r.newest()
	}
	var c *ckpt.Checkpoint
	step, err := strconv.ParseInt(from, 10, 64)
	if err == nil {
		c, err = ckpt.Find(r.ckptDir, step)
	} else {
		c, err = ckpt.Open(from)
	}
	if err != nil {
		return nil, err
	}
	return c, r.setAside(c.Manifest.Step)
}

func (r *run) newest() (*ckpt.Checkpoint, error) {
	c, skipped, err := ckpt.Newest(r.ckptDir)
	if err != nil {
		return nil, err
	}
	var reasons []error
	for _, s := range skipped {
		r.report.warn("a checkpoint cannot be used: " + s.Err.Error())
		reasons = append(reasons, s.Err)
	}
	if c == nil && len(skipped) > 0 {
		return nil, exitf(ExitInput, "no checkpoint in %s is whole (%w); --resume never starts over", r.ckptDir, errors.Join(reasons...))
	}
	return c, nil
}

// setAside moves the checkpoints after a step out of the folder, into one beside it.
func (r *run) setAside(after int64) error {
	entries, err := os.ReadDir(r.ckptDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	aside := fmt.Sprintf("%s.before-%d", filepath.Clean(r.ckptDir), r.metrics.attempt)
	moved := 0
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), "step-")
		step, err := strconv.ParseInt(digits, 10, 64)
		if !ok || err != nil || step <= after {
			continue
		}
		if err := os.MkdirAll(aside, 0o777); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(r.ckptDir, e.Name()), filepath.Join(aside, e.Name())); err != nil {
			return err
		}
		moved++
	}
	if moved > 0 {
		r.report.warn(fmt.Sprintf("%d checkpoints of later steps were moved to %s", moved, aside))
	}
	return nil
}

// start fills the parameters of a new run.
func (r *run) start() error {
	from := r.s.Train.Init
	if from == "" || from == "random" {
		seed, wide := r.s.Train.Seed, r.p.Elem == F64
		from = "random parameters"
		err := r.crew.do(func(k *Rank) {
			if wide {
				initParams[float64](k, seed)
			} else {
				initParams[float32](k, seed)
			}
		})
		if err != nil {
			return err
		}
	} else {
		if !filepath.IsAbs(from) {
			from = filepath.Join(r.s.Dir, from)
		}
		if err := r.begin(from); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("start: step 0 of %d, from %s, seed %d", r.total, from, r.s.Train.Seed)
	r.report.say(text, "start", "steps", r.total, "from", from, "seed", r.s.Train.Seed)
	return r.metrics.event(0, "start", from)
}

// begin reads the parameters of a new run from a folder.
func (r *run) begin(folder string) error {
	if r.p.Elem == F64 {
		return loadFolder[float64](r.crew, folder)
	}
	return loadFolder[float32](r.crew, folder)
}

// fill reads a checkpoint into the arenas.
func (r *run) fill(c *ckpt.Checkpoint) error {
	if was := c.Manifest.Extra["optimizer"]; was != "" && was != r.p.Optim.String() {
		return exitf(ExitInput, "its optimizer is %s, and the program's is %s", was, r.p.Optim)
	}
	for name, kinds := range map[string][]kind{modelFile: {r.p.paramKind()}, optimizerFile: r.p.momentKinds()} {
		f, err := c.File(name)
		if err != nil {
			return err
		}
		for _, k := range kinds {
			if r.p.Elem == F64 {
				err = errors.Join(err, load[float64](r.crew, k, f.Tensor))
			} else {
				err = errors.Join(err, load[float32](r.crew, k, f.Tensor))
			}
		}
		if f.Close(); err != nil {
			return err
		}
	}
	return nil
}
