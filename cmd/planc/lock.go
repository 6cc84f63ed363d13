package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/cmd/planc/internal/screen"
	"github.com/planc-dev/planc/cmd/planc/internal/shell"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner"
	"github.com/planc-dev/planc/planner/quantity"
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

// askPlan returns the decision that plan and explain show: the lock's plan if the lock holds, with the alternatives of
// a search, otherwise the plan that the search finds.
func askPlan(a *app, j *loaded, f lockFlags) (*decision, error) {
	l, err := readLock(a.Console, j, f.update)
	if err != nil {
		return nil, err
	}
	if f.update && l.Path == "" {
		return nil, inputErrorf(BadFlag, "",
			"--update writes the lock next to a job file, and this job has no file; write one with --save FILE")
	}
	if f.update || l.State() == lock.Stale { // locks must not depend on measurements of this machine
		j = j.atCatalogueRates()
	}
	if f.locked && !l.IsObeyed() {
		return nil, refuseLock(a, j, l)
	}
	if l.IsObeyed() && !f.update {
		d, err := searchWithLocked(a.Console, j, l, l.File.Plan)
		if err != nil {
			return nil, err
		}
		d.IsGiven = true
		if f.locked {
			err = checkSameProgram(a, d.job, l)
		}
		return d, err
	}
	if j.MeasuredCPU != nil {
		return searchHere(a.Console, j, l)
	}
	d, err := searchPlan(a.Console, j)
	if err != nil {
		return nil, err
	}
	d.lock = l
	return d, nil
}

// checkSameProgram checks, for commands that only show the plan with --locked, that it compiles to the program of the
// lock.
func checkSameProgram(a *app, j *loaded, l *lock.Job) error {
	p, err := compileProgram(a.Console, j, l.File.Plan, nil)
	if err != nil {
		return err
	}
	return checkProgram(a, l, programHash(p), lockFlags{locked: true})
}

// searchWithLocked searches, but returns a decision for a given plan, such as the lock's, instead of the best one.
func searchWithLocked(ui *console.Console, j *loaded, l *lock.Job, locked ir.Plan) (*decision, error) {
	d, err := searchPlan(ui, j)
	if err != nil {
		return nil, err
	}
	d.lock = l
	if d.Best.Plan == locked {
		return d, nil
	}
	j = d.job.onDevicesOf(locked)
	d.job, d.Question = j, j.Question
	p := j.Problem()
	if reasons := search.Check(p, locked); len(reasons) > 0 {
		return nil, l.WrongPlanError(reasons)
	}
	start := time.Now()
	found := d.Best
	err = ui.RunSearch(p, func() (err error) { d.Result, _, err = search.SearchWithGiven(p, locked); return err })
	d.Took += time.Since(start)
	var noPlan *search.NoPlan
	switch {
	case errors.As(err, &noPlan):
		return nil, newLockedNoPlanError(l, j, noPlan)
	case err != nil:
		return nil, j.SearchError(err)
	}
	d.own = &found
	noteBetter(ui, j, l, found, d.Best)
	return d, nil
}

// newLockedNoPlanError returns the error for a lock whose plan does not fit under the current cost model.
func newLockedNoPlanError(l *lock.Job, j *loaded, e *search.NoPlan) error {
	f := &noPlanError{message: fmt.Sprintf("the plan of %s does not fit: %s on %s (%d %s); to search a new "+
		"plan, run %s", l.Name(),
		j.Config.Name, planner.ClusterText(j.Hardware),
		j.Hardware.Devices(), j.Hardware.GPU.Name, l.Remedy)}
	f.detail = screen.NoPlan(e.Nearest.Plan.String(), e.Nearest.Predict, e.NoFit.Stage, e.Nearest.Plan.PP > 1,
		nil, j.Hardware)
	return f
}

// noteBetter notes that the search would now choose a faster plan than the lock's.
func noteBetter(ui *console.Console, j *loaded, l *lock.Job, found, locked search.Priced) {
	gain := 1 - float64(found.Predict.StepS/locked.Predict.StepS)
	if gain < 1e-5 {
		return
	}
	if j.MeasuredCPU != nil {
		noteBetterHere(ui, found, locked, gain)
		return
	}
	who := "the search"
	if l.File.CostModel != costmodel.CostModel {
		who = fmt.Sprintf("cost model %d", costmodel.CostModel)
	}
	errorNote := ""
	if found.Predict.StepS > locked.Predict.StepSLow {
		errorNote = ", within the prediction's error"
	}
	ui.Notef("note: %s would choose %s (%s faster%s); the plan of %s is used (to change it: %s)", who,
		planner.Differences(found.Plan, locked.Plan), quantity.Percent(gain), errorNote, l.Name(), l.Remedy)
}

// obey returns the decision of the lock without a search. It prices the plan only if somebody has edited it. It fails
// if the plan is illegal.
func (j *loaded) obey(l *lock.Job) (*decision, error) {
	j = j.onDevicesOf(l.File.Plan)
	if reasons := search.Check(j.Problem(), l.File.Plan); len(reasons) > 0 {
		return nil, l.WrongPlanError(reasons)
	}
	f := l.File
	d := &decision{Decision: &planner.Decision{Question: j.Question, Result: &search.Result{
		Best: search.Priced{Plan: f.Plan, Predict: f.Predict}, Counts: f.Search}}, job: j, lock: l, expect: f.Expect}
	if !f.Edited() {
		return d, nil
	}
	var err error
	d.Best.Predict, err = search.Price(j.Problem(), f.Plan)
	if err != nil {
		return nil, j.SearchError(err)
	}
	d.expect = lock.ExpectOf(j.Question, d.Best)
	return d, nil
}

// onDevicesOf returns the job on as many devices as a locked plan has, if the objective decides their number.
func (j *loaded) onDevicesOf(locked ir.Plan) *loaded {
	n := locked.Ranks()
	if j.Objective.Kind == spec.Throughput || n == 0 || n == j.Hardware.Devices() {
		return j
	}
	q, err := j.OnDevices(n)
	if err != nil {
		return j // the rules of legality say what is wrong with the plan
	}
	return j.withQuestion(q)
}

// decidePlan returns the decision for commands that compile: the lock's plan if the lock holds, without a search;
// otherwise the plan that the search finds, which must fit.
func decidePlan(a *app, j *loaded, f lockFlags) (*decision, error) {
	if err := j.CheckFixedHardware(); err != nil {
		return nil, err
	}
	l, err := readLock(a.Console, j, false)
	if err != nil {
		return nil, err
	}
	switch {
	case l.IsObeyed():
		return j.obey(l)
	case f.locked:
		return nil, refuseLock(a, j, l)
	}
	d, err := choosePlan(a.Console, j)
	if err != nil {
		return nil, err
	}
	d.lock, d.expect = l, lock.ExpectOf(d.Question, d.Best)
	return d, nil
}

// refuseLock prints a unified diff for a lock that does not hold, and returns the error of --locked.
func refuseLock(a *app, j *loaded, l *lock.Job) error {
	if l.File == nil {
		return l.AbsentError()
	}
	now := &lock.File{Inputs: l.Inputs, Plan: l.File.Plan}
	note := ""
	if d, err := searchPlan(a.Console, j); err == nil {
		now.Plan = d.Best.Plan
	} else {
		first, _, _ := strings.Cut(err.Error(), "\n")
		note = "; now " + first
	}
	if !a.json {
		if err := a.Print(decisionDiff(l, now, j.path)); err != nil {
			return err
		}
	}
	return lock.Errorf(lock.Differs, "%s is out of date: %s%s; to update it, run %s", l.Name(),
		screen.ChangedSections(l.Changed), note, l.Remedy)
}

// decisionDiff returns a unified diff of the inputs and the plan of the lock and the current ones.
func decisionDiff(l *lock.Job, now *lock.File, job string) string {
	return unified(l.Name(), l.File.Decision(), shell.Slashed(job), now.Decision())
}

// unified returns a unified diff; "" if there is no difference.
func unified(fromName string, from []byte, toName string, to []byte) string {
	text := string(diff.Diff(fromName, unixText(from), toName, unixText(to)))
	_, text, _ = strings.Cut(text, "\n") // without the line "diff a b"
	return text
}

// checkProgram checks that the lock's plan still compiles to the lock's program. If not, it fails with --locked, and
// prints a note otherwise.
func checkProgram(a *app, l *lock.Job, program string, f lockFlags) error {
	if !l.IsObeyed() || l.File.Program == program && !l.File.Edited() {
		return nil
	}
	why := fmt.Sprintf("the plan of %s now compiles to another program, %s instead of %s: %s", l.Name(), program[:12],
		l.File.Program[:12], anotherProgram(l.File))
	if l.File.Program == program {
		why = fmt.Sprintf("%s: %s", l.Name(), planEdited)
	}
	why += fmt.Sprintf("; to search a new plan, run %s", l.Remedy)
	if !f.locked {
		a.Notef("note: %s", why)
		return nil
	}
	if !a.json {
		if err := a.Print(programDiff(l, program, l.Name()+" (now)")); err != nil {
			return err
		}
	}
	return lock.Errorf(lock.Differs, "%s", why)
}

// programDiff returns a unified diff of the hash of the lock's program and that of the current one.
func programDiff(l *lock.Job, program, name string) string {
	return unified(l.Name(), []byte("program: "+l.File.Program+"\n"), name, []byte("program: "+program+"\n"))
}

// anotherProgram says why the same inputs give another program.
func anotherProgram(f *lock.File) string {
	switch {
	case f.Edited():
		return planEdited
	case f.Planc != version:
		return fmt.Sprintf("planc %s wrote the lock, this is %s", f.Planc, version)
	}
	return "train.dropout or planc has changed, or the program hash in the lock was edited"
}

// planEdited says that a lock's plan is not the one that planc wrote.
const planEdited = "the lock's plan was edited"

// reportStaleLock reports on stderr that a stale lock was not used, and what that changes.
func reportStaleLock(ui *console.Console, d *decision, last string) {
	if l := d.lock; l.State() == lock.Stale {
		ui.Notef("%s", strings.TrimSuffix(screen.LockDifference(l, d.Question, d.Best).Text(last), "\n"))
	}
}

// saveLock writes the lock after a compilation, unless flags have changed the job. A failure is only a note, because
// the binary is valid.
func saveLock(ui *console.Console, d *decision, program string) {
	l := d.lock
	if d.job.overridden || l.Path == "" {
		return
	}
	if err := writeLock(ui, l, l.Updated(d.forLock(program))); err != nil {
		ui.Notef("note: %v", err)
	}
}
