package main

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/cmd/planc/internal/shell"
	"github.com/planc-dev/planc/ir"
)

// lockFlags holds the flags of a command for the lock.
type lockFlags struct{ locked, update bool }

func (f *lockFlags) register(c *cobra.Command) {
	c.Flags().BoolVar(&f.locked, "locked", false, "fail (exit 4) if the lock is missing or would have to change")
}

// readLock reads the job's lock. With overwrite, a damaged lock counts as missing, because it will be overwritten.
func readLock(ui *console.Console, j *loaded, overwrite bool) (*lock.Job, error) {
	l := &lock.Job{Path: lock.PathOf(j.path), Inputs: lock.InputsOf(j.Question), Remedy: "planc plan --update"}
	if l.Path == "" {
		return l, nil
	}
	if filepath.Base(j.path) != jobFile || filepath.Dir(j.path) != "." {
		l.Remedy += " " + shell.QuotePath(j.path)
	}
	data, err := ui.Read(l.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l, nil
	case err != nil:
		return nil, ir.Diags{{Pos: ir.Pos{File: l.Path}, Code: lock.BadLock,
			Msg: "the lock cannot be read: " + ir.FileReason(err)}}
	}
	if len(data) > 0 && !lock.IsOurs(data) {
		return nil, ir.Diags{{Pos: ir.Pos{File: l.Name()}, Code: lock.BadLock,
			Msg: "this file was not written by planc and is not overwritten; remove it, or rename the job, " +
				"whose lock " +
				"would have this name"}}
	}
	file, err := lock.Parse(l.Name(), data, l.Remedy)
	var diags ir.Diags
	if errors.As(err, &diags) && overwrite && diags[0].Code == lock.BadLock {
		ui.Notef("note: %s is damaged and will be overwritten: %s", l.Name(), diags[0].Pos)
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	l.File, l.Text, l.Changed = file, data, lock.Changes(file.Inputs, l.Inputs)
	return l, nil
}
