package main

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
)

// lockFlags holds the flags of a command for the lock.
type lockFlags struct{ locked, update bool }

func (f *lockFlags) register(c *cobra.Command) {
	c.Flags().BoolVar(&f.locked, "locked", false, "fail (exit 4) if the lock is missing or would have to change")
}

// readLock reads the job's lock. With overwrite, a damaged lock counts as missing, because it will be overwritten.
func (a *app) readLock(j *loaded, overwrite bool) (*lock.Job, error) {
	l := &lock.Job{Path: lock.PathOf(j.path), Inputs: j.inputs(), Remedy: "planc plan --update"}
	if l.Path == "" {
		return l, nil
	}
	if filepath.Base(j.path) != jobFile || filepath.Dir(j.path) != "." {
		l.Remedy += " " + shellPath(j.path)
	}
	data, err := a.read(l.Path)
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
		a.notef("note: %s is damaged and will be overwritten: %s", l.Name(), diags[0].Pos)
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	l.File, l.Text, l.Changed = file, data, lock.Changes(file.Inputs, l.Inputs)
	return l, nil
}

// inputs returns the fields that decide the job's plan; for the cluster, its figures. The price of a node and the
// tokens to train on are included only if the objective depends on them.
func (j *loaded) inputs() lock.Inputs {
	in := lock.Inputs{}
	for _, s := range lock.Sections {
		in[s] = map[string]string{}
	}
	for _, r := range j.Deciding() {
		section, key, _ := strings.Cut(r.Path, ".")
		if section != "cluster" {
			in[section][key] = r.Value
		}
	}
	if train := in["train"]; train["precision.master"] == "none" { // as in plans: the parameters are the master copy
		train["precision.master"] = train["precision.params"]
	}
	if j.Objective.Prefer == search.PreferRobust { // the default; older locks do not contain it
		delete(in["objective"], "prefer")
	}
	in["cluster"] = j.Hardware.Deciding()
	if j.Objective.Kind == spec.Cost {
		in["cluster"]["node.price_per_hour"] = strconv.FormatFloat(j.Hardware.Node.PricePerHour, 'g', -1, 64)
	}
	if j.Objective.Kind != spec.Throughput && j.Objective.Days > 0 {
		in["objective"]["tokens"] = strconv.FormatFloat(j.TrainTokens(j.Train.GlobalBatch, j.Train.SeqLen), 'g', -1, 64)
	}
	return in
}
