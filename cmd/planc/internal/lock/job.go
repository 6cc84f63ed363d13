package lock

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
)

// States of a job's lock, as plan --json prints them.
const (
	None   = "none"
	Obeyed = "obeyed"
	Stale  = "stale"
)

// Job is the lock of a job, and its difference to the job.
type Job struct {
	Path    string   // "" if the job has no file because it is given by flags or standard input
	Remedy  string   // the command that writes the lock
	File    *File    // nil if there is no lock
	Text    []byte   // content of the file
	Inputs  Inputs   // inputs of the current job
	Changed []Change // inputs that differ between the lock and the job
}

// State returns the state of the lock.
func (l *Job) State() string {
	switch {
	case l.File == nil:
		return None
	case len(l.Changed) > 0:
		return Stale
	}
	return Obeyed
}

// IsObeyed reports whether the lock decides the plan.
func (l *Job) IsObeyed() bool { return l.State() == Obeyed }

// Name returns the name of the lock for messages.
func (l *Job) Name() string {
	if l.Path == "" {
		return "a lock"
	}
	return filepath.ToSlash(l.Path)
}

// PathOf returns the path of the lock next to a job file; "" if the job has no file.
func PathOf(job string) string {
	if job == "" || job == "-" {
		return ""
	}
	return strings.TrimSuffix(job, filepath.Ext(job)) + ".lock"
}

// Decided is what a lock records of a decision.
type Decided struct {
	Best    search.Priced
	Counts  search.Counts
	Expect  Expect
	Program string // its hash
	Planc   string // version of planc
}

// NewFile returns the lock of a decision. It keeps the entries of gen from the old lock, if there is one.
func (l *Job) NewFile(d Decided) *File {
	f := &File{CostModel: costmodel.CostModel, DecidedFrom: l.Inputs.Hashes(), Expect: d.Expect,
		Files: map[string]string{}, Inputs: l.Inputs,
		Plan: d.Best.Plan, PlanHash: HashPlan(d.Best.Plan), Planc: d.Planc, Predict: d.Best.Predict,
		Program: d.Program, Search: d.Counts}
	if l.File != nil {
		f.Files, f.Gen = l.File.Files, l.File.Gen
	}
	return f
}

// Updated returns the lock of a decision with its program. If the decision came from the lock, only the program can
// change, and the prediction if somebody has edited the plan.
func (l *Job) Updated(d Decided) *File {
	if !l.IsObeyed() {
		return l.NewFile(d)
	}
	f := *l.File
	f.Program = d.Program
	if f.Edited() {
		f.CostModel, f.Predict, f.Expect = costmodel.CostModel, d.Best.Predict, d.Expect
		f.PlanHash = HashPlan(f.Plan)
	}
	return &f
}

// WrongPlanError returns an error for an illegal plan in the lock. planc does not write such plans.
func (l *Job) WrongPlanError(reasons []search.Reason) error {
	var diags ir.Diags
	for _, r := range reasons {
		diags.Addf(l.File.Pos("plan."+r.Key), BadLock,
			"the locked plan is illegal: %s; to search a new plan, run %s",
			r.Message, l.Remedy)
	}
	return diags.Err()
}

// Error reports that a lock fails --locked or verify. Exit 4.
type Error struct {
	Code    ir.Code
	message string
}

func (e *Error) Error() string { return e.message }

// Errorf returns an error with a code, which is Absent or Differs.
func Errorf(code ir.Code, format string, args ...any) error {
	return &Error{code, fmt.Sprintf(format, args...)}
}

// Codes of Error.
const (
	// Absent is reported if a job must have a lock and has none. Exit 4.
	//
	// Example:
	//
	//	planc plan --locked
	Absent ir.Code = "LockAbsent"

	// Differs is reported for a lock, or generated code, that does not match the job. Exit 4.
	//
	// Example:
	//
	//	planc plan --locked --set cluster.nodes=2
	Differs ir.Code = "LockDiffers"
)

// AbsentError returns the error for a job without a lock.
func (l *Job) AbsentError() error {
	if l.Path == "" {
		return Errorf(Absent, "this needs a lock, and only a job file has one")
	}
	return Errorf(Absent, "%s does not exist; to write it, run %s", l.Name(), l.Remedy)
}

// Batch returns the global batch that the lock was decided for; 0 if there is no lock.
func (l *Job) Batch() int {
	if l == nil || l.File == nil {
		return 0
	}
	batch, err := strconv.Atoi(l.File.Inputs["train"]["global_batch"])
	if err != nil {
		return 0
	}
	return batch
}

// Note returns the line of a screen about the lock; "" if the lock is not used.
func (l *Job) Note() string {
	if !l.IsObeyed() {
		return ""
	}
	return l.Name() + " contains this plan"
}
