package driver

import (
	"fmt"
	"io"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/tensors"
)

// export is Run for the option Export.
func (r *run) export() error {
	r.report = r.o.printer()
	if err := r.applySettings(); err != nil {
		return err
	}
	if l := r.o.Launch; l != nil && l.Processes > 1 {
		return exit.Errorf(exit.Cannot, "--export: %s has started %d processes, but an export runs in one: start it "+
			"once, alone", l.By,
			l.Processes)
	}
	w := &r.p.Weights
	if len(w.Tensors) == 0 {
		return exit.Errorf(exit.Cannot, "--export: not supported for this model: the program knows only planc's own "+
			"layout; its "+
			"checkpoints hold them in %s", tensors.ModelFile)
	}
	if err := ckpt.Vacant(r.o.Export); err != nil {
		return fmt.Errorf("--export: %w", err)
	}
	if err := r.fits(); err != nil {
		return err
	}
	var err error
	r.crew, err = newCrew(r.p, r.o.Timeout, nil)
	if err != nil {
		return err
	}
	source, _, err := r.checkpoints.checkpointToResume()
	if err != nil {
		return err
	}
	from, err := r.loadParams(source, "--export", "export")
	if err != nil {
		return err
	}
	c, config := tensors.Exported(r.crew.stores.Published(), w.Config, r.o.ExportType)
	fill := c.Fill
	c.Fill = func(i int, w io.Writer) error {
		if r.ctx.Err() != nil {
			return exit.Errorf(exit.OnRequest, "stopped on request")
		}
		return fill(i, w)
	}
	if err := ckpt.Export(r.o.Export, c, ckpt.ExportLimit, map[string][]byte{"config.json": config}); err != nil {
		return err
	}
	r.res.Export, r.res.Steps = r.o.Export, r.done.step
	r.report.Info(fmt.Sprintf("export: %s, as %s, to %s", from, w.Family, r.o.Export), "export", "from", from, "family",
		w.Family, "path", r.o.Export)
	return nil
}

// loadParams fills the parameters from a checkpoint, or initializes them if there is none and that is asked for. It
// returns where they come from. verb says what flag does with them, for messages.
func (r *run) loadParams(c *ckpt.Checkpoint, flag, verb string) (from string, err error) {
	switch {
	case c != nil:
		r.done.step = int(c.Manifest.Step)
		if err := r.crew.stores.LoadParams(c); err != nil {
			return "", fmt.Errorf("cannot %s %s: %w", verb, c.Path, err)
		}
		return fmt.Sprintf("step %d of %s", r.done.step, c.Path), nil
	case r.o.Resume != "never":
		return "", exit.Errorf(exit.Input, "%s: there is no checkpoint in %s; set --dir to the folder of the run, or "+
			"use --resume never to %s the initial parameters", flag, r.ckptDir, verb)
	}
	return r.checkpoints.initialize()
}
