package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
)

// States of a job's lock, as plan --json prints them.
const (
	noLock     = "none"
	lockObeyed = "obeyed"
	lockStale  = "stale"
)

// lockFlags holds the flags of a command for the lock.
type lockFlags struct{ locked, update bool }

func (f *lockFlags) register(c *cobra.Command) {
	c.Flags().BoolVar(&f.locked, "locked", false, "fail (exit 4) if the lock is missing or would have to change")
}

// jobLock is the lock of a job, and its difference to the job.
type jobLock struct {
	path    string        // "" if the job has no file because it is given by flags or standard input
	remedy  string        // the command that writes the lock
	file    *lock.File    // nil if there is no lock
	text    []byte        // content of the file
	inputs  lock.Inputs   // inputs of the current job
	changed []lock.Change // inputs that differ between the lock and the job
}

// state returns the state of the lock.
func (l *jobLock) state() string {
	switch {
	case l.file == nil:
		return noLock
	case len(l.changed) > 0:
		return lockStale
	}
	return lockObeyed
}

func (l *jobLock) isObeyed() bool { return l.state() == lockObeyed }

// name returns the name of the lock for messages.
func (l *jobLock) name() string {
	if l.path == "" {
		return "a lock"
	}
	return filepath.ToSlash(l.path)
}

// lockPath returns the path of the lock next to a job file; "" if the job has no file.
func lockPath(job string) string {
	if job == "" || job == "-" {
		return ""
	}
	return strings.TrimSuffix(job, filepath.Ext(job)) + ".lock"
}

// readLock reads the job's lock. With overwrite, a damaged lock counts as missing, because it will be overwritten.
func (a *app) readLock(j *loaded, overwrite bool) (*jobLock, error) {
	l := &jobLock{path: lockPath(j.path), inputs: j.inputs(), remedy: "planc plan --update"}
	if l.path == "" {
		return l, nil
	}
	if filepath.Base(j.path) != jobFile || filepath.Dir(j.path) != "." {
		l.remedy += " " + shellPath(j.path)
	}
	data, err := a.read(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l, nil
	case err != nil:
		return nil, ir.Diags{{Pos: ir.Pos{File: l.path}, Code: lock.BadLock,
			Msg: "the lock cannot be read: " + ir.FileReason(err)}}
	}
	if len(data) > 0 && !lock.IsOurs(data) {
		return nil, ir.Diags{{Pos: ir.Pos{File: l.name()}, Code: lock.BadLock,
			Msg: "this file was not written by planc and is not overwritten; remove it, or rename the job, " +
				"whose lock " +
				"would have this name"}}
	}
	file, err := lock.Parse(l.name(), data, l.remedy)
	var diags ir.Diags
	if errors.As(err, &diags) && overwrite && diags[0].Code == lock.BadLock {
		a.notef("note: %s is damaged and will be overwritten: %s", l.name(), diags[0].Pos)
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	l.file, l.text, l.changed = file, data, lock.Changes(file.Inputs, l.inputs)
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

// newLock returns the lock of a decision. It keeps the entries of gen from the old lock, if there is one.
func newLock(l *jobLock, d *decision, program string) *lock.File {
	f := &lock.File{CostModel: costmodel.CostModel, DecidedFrom: l.inputs.Hashes(), Expect: d.expect,
		Files: map[string]string{}, Inputs: l.inputs,
		Plan: d.Best.Plan, PlanHash: lock.HashPlan(d.Best.Plan), Planc: version, Predict: d.Best.Predict,
		Program: program, Search: d.Counts}
	if l.file != nil {
		f.Files, f.Gen = l.file.Files, l.file.Gen
	}
	return f
}

// updated returns the lock of a decision with its program. If the decision came from the lock, only the program can
// change, and the prediction if somebody has edited the plan.
func (l *jobLock) updated(d *decision, program string) *lock.File {
	if !l.isObeyed() {
		return newLock(l, d, program)
	}
	f := *l.file
	f.Program = program
	if f.Edited() {
		f.CostModel, f.Predict, f.Expect = costmodel.CostModel, d.Best.Predict, d.expect
		f.PlanHash = lock.HashPlan(f.Plan)
	}
	return &f
}

// wrongPlanError returns an error for an illegal plan in the lock. planc does not write such plans.
func (l *jobLock) wrongPlanError(reasons []search.Reason) error {
	var diags ir.Diags
	for _, r := range reasons {
		diags.Addf(l.file.Pos("plan."+r.Key), lock.BadLock,
			"the locked plan is illegal: %s; to search a new plan, run %s",
			r.Message, l.remedy)
	}
	return diags.Err()
}

// lockError reports that a lock fails --locked or verify. Exit 4.
type lockError struct {
	code    ir.Code
	message string
}

func (e *lockError) Error() string { return e.message }

// Codes of lockError.
const (
	// codeLockAbsent is reported if a job must have a lock and has none. Exit 4.
	//
	// Example:
	//
	//	planc plan --locked
	codeLockAbsent ir.Code = "LockAbsent"

	// codeLockDiffers is reported for a lock, or generated code, that does not match the job. Exit 4.
	//
	// Example:
	//
	//	planc plan --locked --set cluster.nodes=2
	codeLockDiffers ir.Code = "LockDiffers"
)

// absentError returns the error for a job without a lock.
func (l *jobLock) absentError() error {
	if l.path == "" {
		return &lockError{codeLockAbsent, "this needs a lock, and only a job file has one"}
	}
	return &lockError{codeLockAbsent, fmt.Sprintf("%s does not exist; to write it, run %s", l.name(), l.remedy)}
}

// batch returns the global batch that the lock was decided for; 0 if there is no lock.
func (l *jobLock) batch() int {
	if l == nil || l.file == nil {
		return 0
	}
	batch, err := strconv.Atoi(l.file.Inputs["train"]["global_batch"])
	if err != nil {
		return 0
	}
	return batch
}
