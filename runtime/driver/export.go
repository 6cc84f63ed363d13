package driver

import (
	"fmt"
	"io"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/tensors"
)

// exportLimit is the maximum size of a file of an exported model, in bytes.
const exportLimit = 5_000_000_000

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
	from, err := r.loadForExport()
	if err != nil {
		return err
	}
	c := r.crew.stores.Published()
	fill := c.Fill
	c.Fill = func(i int, w io.Writer) error {
		if r.ctx.Err() != nil {
			return exit.Errorf(exit.OnRequest, "stopped on request")
		}
		return fill(i, w)
	}
	if err := ckpt.Export(r.o.Export, c, exportLimit, map[string][]byte{"config.json": []byte(w.Config)}); err != nil {
		return err
	}
	r.res.Export, r.res.Steps = r.o.Export, r.done.step
	r.report.Info(fmt.Sprintf("export: %s, as %s, to %s", from, w.Family, r.o.Export), "export", "from", from, "family",
		w.Family, "path", r.o.Export)
	return nil
}

// loadForExport fills the parameters that are exported and returns where they come from.
func (r *run) loadForExport() (from string, err error) {
	c, _, err := r.checkpoints.checkpointToResume()
	switch {
	case err != nil:
		return "", err
	case c != nil:
		r.done.step = int(c.Manifest.Step)
		if err := r.crew.stores.LoadParams(c); err != nil {
			return "", fmt.Errorf("cannot export %s: %w", c.Path, err)
		}
		return fmt.Sprintf("step %d of %s", r.done.step, c.Path), nil
	case r.o.Resume != "never":
		return "", exit.Errorf(exit.Input, "--export: there is no checkpoint in %s; set --dir to the folder of the "+
			"run, or use "+
			"--resume never to export the initial parameters", r.ckptDir)
	}
	return r.checkpoints.initialize()
}
