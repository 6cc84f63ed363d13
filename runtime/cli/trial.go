package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/settings"
)

// checkActions refuses flags that exclude each other.
func (c *command) checkActions() error {
	o := &c.options
	switch {
	case o.Export != "" && o.Generate != "":
		return exit.Errorf(exit.Input, "--export and --generate are both given, but one run does one of them: leave "+
			"one of them out")
	case o.ExportType != "" && o.Export == "":
		return exit.Errorf(exit.Input, "--export-dtype applies to --export: add --export DIR, or leave it out")
	case c.toGenerate != "" && o.Generate == "":
		return exit.Errorf(exit.Input, "%s applies to --generate: add --generate PROMPT, or leave it out", c.toGenerate)
	case c.fastDevRun && c.lrFind:
		return exit.Errorf(exit.Input, "--fast-dev-run takes one step and --lr-find many: leave one of them out")
	case c.trial() != "" && o.Export != "":
		return exit.Errorf(exit.Input, "%s trains and --export does not: leave one of them out", c.trial())
	case c.trial() != "" && o.Generate != "":
		return exit.Errorf(exit.Input, "%s trains and --generate does not: leave one of them out", c.trial())
	}
	return nil
}

// trial returns the flag that makes the run a trial in a folder that is removed; "" if there is none.
func (c *command) trial() string {
	switch {
	case c.fastDevRun:
		return "--fast-dev-run"
	case c.lrFind:
		return "--lr-find"
	}
	return ""
}

// prepareTrial changes the options to those of a trial. remove removes its folder.
func (c *command) prepareTrial() (remove func(), err error) {
	switch {
	case c.fastDevRun:
		return c.prepareFastDevRun()
	case c.lrFind:
		return c.prepareLRFind()
	}
	return func() {}, nil
}

// prepareFastDevRun changes the options to those of --fast-dev-run: one step from new parameters, an evaluation of one
// batch and a checkpoint, in a new folder next to that of the run. remove removes the folder.
func (c *command) prepareFastDevRun() (remove func(), err error) {
	remove, err = c.useTrialFolder(".fast-dev-run-")
	if err != nil {
		return nil, err
	}
	for _, path := range []string{"train.steps", "train.eval.every", "train.eval.batches"} {
		c.options.Changes = append(c.options.Changes, settings.Change{Path: path, Value: 1})
	}
	return remove, nil
}

// useTrialFolder makes the run start with new parameters in a new folder next to that of the run, whose name begins
// with prefix. The length of training is then that of train.steps.
func (c *command) useTrialFolder(prefix string) (remove func(), err error) {
	o := &c.options
	parent := "runs"
	if o.Dir != "" {
		parent = filepath.Dir(filepath.Clean(o.Dir))
	}
	_, err = os.Stat(parent)
	isNew := os.IsNotExist(err)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return nil, fmt.Errorf("cannot create the folder of the run: %w; choose another with --dir", err)
	}
	o.Dir, err = os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, fmt.Errorf("cannot create the folder of the run: %w; choose another with --dir", err)
	}
	o.Resume, o.CheckpointDir, o.LogDir = "never", "", ""
	o.Changes = slices.DeleteFunc(o.Changes, func(c settings.Change) bool {
		return c.Path == "train.epochs" || c.Path == "train.tokens" // train.steps replaces them
	})
	return func() {
		os.RemoveAll(o.Dir)
		if isNew {
			os.Remove(parent) // if nothing else was put there
		}
	}, nil
}
