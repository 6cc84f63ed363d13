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

// What a lock is to the job, as plan --json says it.
const (
	noLock     = "none"
	lockObeyed = "obeyed"
	lockStale  = "stale"
)

// lockFlags say what a command does about the lock.
type lockFlags struct{ locked, update bool }

func (f *lockFlags) register(c *cobra.Command) {
	c.Flags().BoolVar(&f.locked, "locked", false, "fail (4) if the lock would have to change, or is not there")
}

// jobLock is a job's lock and how it stands to the job.
type jobLock struct {
	path    string        // "" where the job has no file: a question by flags alone, or standard input
	remedy  string        // the command that writes it
	file    *lock.File    // nil: there is none
	text    []byte        // of the file
	inputs  lock.Inputs   // of the job as it is now
	changed []lock.Change // inputs that differ
}

// state is one of the words above.
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

// name is the lock's, for messages.
func (l *jobLock) name() string {
	if l.path == "" {
		return "a lock"
	}
	return filepath.ToSlash(l.path)
}

// lockPath is the lock beside a job file; "" where the job has none.
func lockPath(job string) string {
	if job == "" || job == "-" {
		return ""
	}
	return strings.TrimSuffix(job, filepath.Ext(job)) + ".lock"
}

// readLock reads the job's lock. With anew, one that planc cannot read is none: it will be written anew.
func (a *app) readLock(j *loaded, anew bool) (*jobLock, error) {
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
			Msg: "this is no lock of planc's, and it is not overwritten; remove it, or rename the job, whose lock " +
				"lies here"}}
	}
	file, err := lock.Parse(l.name(), data, l.remedy)
	var diags ir.Diags
	if errors.As(err, &diags) && anew && diags[0].Code == lock.BadLock {
		a.notef("note: %s could not be read and is written anew: %s", l.name(), diags[0].Pos)
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	l.file, l.text, l.changed = file, data, lock.Changes(file.Inputs, l.inputs)
	return l, nil
}

// inputs are what decides the job's plan, the cluster by its figures. Fields that decide only where the objective looks
// at them are there only then: the price of a node, and the tokens to train on in so many days.
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
	if train := in["train"]; train["precision.master"] == "none" { // no copy: the parameters are it, as plans have it
		train["precision.master"] = train["precision.params"]
	}
	if j.Objective.Prefer == search.PreferRobust { // so that locks of jobs that do not say otherwise hold
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

// newLock is the lock of a decision. What gen wrote stays as the old lock, if any, has it.
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

// updated is the lock of a decision once its program is known. Of one that obeyed the lock only the program can be new,
// and, where people had edited the plan, what is predicted of it.
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

// wrongPlanError points at what is wrong with a locked plan, which planc does not write so.
func (l *jobLock) wrongPlanError(reasons []search.Reason) error {
	var diags ir.Diags
	for _, r := range reasons {
		diags.Addf(l.file.Pos("plan."+r.Key), lock.BadLock, "the locked plan cannot be: %s; %s decides anew",
			r.Message, l.remedy)
	}
	return diags.Err()
}

// lockError is that a lock is not as --locked and verify want it: status 4.
type lockError struct {
	code    ir.Code
	message string
}

func (e *lockError) Error() string { return e.message }

// The kinds of lockError.
const (
	// codeLockAbsent is reported for a job whose lock is wanted and not there. Exit 4.
	//
	// Example:
	//
	//	planc plan --locked
	codeLockAbsent ir.Code = "LockAbsent"

	// codeLockDiffers is reported for a lock, or generated code, that is not what the job gives. Exit 4.
	//
	// Example:
	//
	//	planc plan --locked --set cluster.nodes=2
	codeLockDiffers ir.Code = "LockDiffers"
)

// absentError is the lockError of a job without a lock.
func (l *jobLock) absentError() error {
	if l.path == "" {
		return &lockError{codeLockAbsent, "a lock is wanted, and only a job file has one"}
	}
	return &lockError{codeLockAbsent, fmt.Sprintf("there is no %s; %s writes it", l.name(), l.remedy)}
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
