package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner"
)

// ask is the decision that plan and explain show: the lock's plan if it holds, with what the search knows beside it,
// else what the search finds.
func (a *app) ask(j *loaded, f lockFlags) (*decision, error) {
	l, err := a.readLock(j, f.update)
	if err != nil {
		return nil, err
	}
	if f.update && l.path == "" {
		return nil, inputErrorf(BadFlag, "",
			"--update writes the lock beside a job file, and this job has none; --save FILE writes one")
	}
	if f.update || l.state() == lockStale { // what is written, or compared with a lock, depends on no measurement
		*j = *j.atCatalogueRates()
	}
	if f.locked && !l.isObeyed() {
		return nil, a.refuse(j, l)
	}
	if l.isObeyed() && !f.update {
		d, err := a.searchWithLocked(j, l, l.file.Plan)
		if err != nil {
			return nil, err
		}
		d.IsGiven = true
		if f.locked {
			err = a.sameProgram(j, l)
		}
		return d, err
	}
	if j.MeasuredCPU != nil {
		return a.searchHere(j, l)
	}
	d, err := a.search(j)
	if err != nil {
		return nil, err
	}
	d.lock = l
	return d, nil
}

// sameProgram is --locked of those who only show the plan: it makes the program that the lock names.
func (a *app) sameProgram(j *loaded, l *jobLock) error {
	p, err := a.program(j, l.file.Plan, nil)
	if err != nil {
		return err
	}
	return a.checkProgram(l, programHash(p), lockFlags{locked: true})
}

// searchWithLocked searches, and shows a plan that was decided before, the lock's if there is one, whatever the search
// finds.
func (a *app) searchWithLocked(j *loaded, l *jobLock, locked ir.Plan) (*decision, error) {
	d, err := a.search(j)
	if err != nil {
		return nil, err
	}
	d.lock = l
	if d.Best.Plan == locked {
		return d, nil
	}
	p := j.problemOf(locked)
	d.Question = j.Question
	if reasons := search.Check(p, locked); len(reasons) > 0 {
		return nil, l.wrongPlanError(reasons)
	}
	start := time.Now()
	found := d.Best
	err = a.runSearch(p, func() (err error) { d.Result, _, err = search.SearchWithGiven(p, locked); return err })
	d.Took += time.Since(start)
	var unfit *search.NoPlan
	switch {
	case errors.As(err, &unfit):
		return nil, l.unfitError(j, unfit)
	case err != nil:
		return nil, j.SearchError(err)
	}
	d.own = &found
	a.noteBetter(j, l, found, d.Best)
	return d, nil
}

// unfitError is that the lock's plan does not fit by what planc knows now.
func (l *jobLock) unfitError(j *loaded, e *search.NoPlan) error {
	f := &noFitError{message: fmt.Sprintf("the plan of %s does not fit: %s on %s (%d %s); %s decides anew", l.name(),
		j.Config.Name, planner.ClusterText(j.Hardware),
		j.Hardware.Devices(), j.Hardware.GPU.Name, l.remedy)}
	f.detail = noFitScreen(e.Nearest.Plan.String(), e.Nearest.Predict, e.NoFit.Stage, e.Nearest.Plan.PP > 1,
		nil, j.Hardware)
	return f
}

// noteBetter says that the search would now choose a faster plan than the lock's.
func (a *app) noteBetter(j *loaded, l *jobLock, found, locked search.Priced) {
	gain := 1 - float64(found.Predict.StepS/locked.Predict.StepS)
	if gain < 1e-5 {
		return
	}
	if j.MeasuredCPU != nil {
		a.noteBetterHere(found, locked, gain)
		return
	}
	who := "the search"
	if l.file.CostModel != costmodel.CostModel {
		who = fmt.Sprintf("cost model %d", costmodel.CostModel)
	}
	inside := ""
	if found.Predict.StepS > locked.Predict.StepSLow {
		inside = ", inside its error"
	}
	a.notef("note: %s would choose %s (%s faster%s); %s is kept (%s)", who, planner.Differences(found.Plan,
		locked.Plan),
		percent(gain), inside, l.name(), l.remedy)
}

// obey is the lock's decision, as it is: no search, and no prices but of a plan that people edited. What the lock says
// of the plan must be possible.
func (j *loaded) obey(l *jobLock) (*decision, error) {
	if reasons := search.Check(j.problemOf(l.file.Plan), l.file.Plan); len(reasons) > 0 {
		return nil, l.wrongPlanError(reasons)
	}
	f := l.file
	d := &decision{Decision: &planner.Decision{Question: j.Question, Result: &search.Result{
		Best: search.Priced{Plan: f.Plan, Predict: f.Predict}, Counts: f.Search}}, lock: l, expect: f.Expect}
	if !f.Edited() {
		return d, nil
	}
	var err error
	d.Best.Predict, err = search.Price(j.Problem(), f.Plan)
	if err != nil {
		return nil, j.SearchError(err)
	}
	d.expect = j.expected(d.Best)
	return d, nil
}

// problemOf is the job's question on the devices of a locked plan, where the objective is what chose how many they are.
func (j *loaded) problemOf(locked ir.Plan) *search.Problem {
	if n := locked.Ranks(); j.Objective.Kind != spec.Throughput && n > 0 && n != j.Hardware.Devices() {
		if q, err := j.OnDevices(n); err == nil {
			j.Question = q
		}
	}
	return j.Problem()
}

// decide is the decision for those who compile: the lock's plan without a search if it holds, else the search's, which
// must fit.
func (a *app) decide(j *loaded, f lockFlags) (*decision, error) {
	if err := j.CheckFixedHardware(); err != nil {
		return nil, err
	}
	l, err := a.readLock(j, false)
	if err != nil {
		return nil, err
	}
	switch {
	case l.isObeyed():
		return j.obey(l)
	case f.locked:
		return nil, a.refuse(j, l)
	}
	d, err := a.choose(j)
	if err != nil {
		return nil, err
	}
	d.lock, d.expect = l, j.expected(d.Best)
	return d, nil
}

// refuse is what --locked says of a lock that does not hold: a unified diff of what was decided, and status 4.
func (a *app) refuse(j *loaded, l *jobLock) error {
	if l.file == nil {
		return l.absentError()
	}
	now := &lock.File{Inputs: l.inputs, Plan: l.file.Plan}
	note := ""
	if d, err := a.search(j); err == nil {
		now.Plan = d.Best.Plan
	} else {
		first, _, _ := strings.Cut(err.Error(), "\n")
		note = "; now " + first
	}
	if !a.json {
		if err := a.print(decisionDiff(l, now, j.path)); err != nil {
			return err
		}
	}
	return &lockError{codeLockDiffers, fmt.Sprintf("%s does not hold: %s%s; %s takes what is true now", l.name(),
		changedSections(l.changed), note, l.remedy)}
}

// decisionDiff is a unified diff of what was decided, from what: the lock's and now.
func decisionDiff(l *jobLock, now *lock.File, job string) string {
	return unified(l.name(), l.file.Decision(), slashed(job), now.Decision())
}

// unified is a unified diff, "" if there is no difference.
func unified(fromName string, from []byte, toName string, to []byte) string {
	text := string(diff.Diff(fromName, unixText(from), toName, unixText(to)))
	_, text, _ = strings.Cut(text, "\n") // "diff a b"
	return text
}

// containsFile refuses, with --locked, a lock whose plan makes another program than it did; without, it says so.
func (a *app) checkProgram(l *jobLock, program string, f lockFlags) error {
	if !l.isObeyed() || l.file.Program == program && !l.file.Edited() {
		return nil
	}
	why := fmt.Sprintf("%s's plan makes another program now, %s and not %s: %s", l.name(), program[:12],
		l.file.Program[:12], anotherProgram(l.file))
	if l.file.Program == program {
		why = fmt.Sprintf("%s: %s", l.name(), planEdited)
	}
	why += fmt.Sprintf("; %s decides anew", l.remedy)
	if !f.locked {
		a.notef("note: %s", why)
		return nil
	}
	if !a.json {
		if err := a.print(programDiff(l, program, l.name()+" (now)")); err != nil {
			return err
		}
	}
	return &lockError{codeLockDiffers, why}
}

// programDiff is a unified diff of the lock's program and the one that its plan makes now.
func programDiff(l *jobLock, program, name string) string {
	return unified(l.name(), []byte("program: "+l.file.Program+"\n"), name, []byte("program: "+program+"\n"))
}

// anotherProgram says why a plan from the same inputs makes another program.
func anotherProgram(f *lock.File) string {
	switch {
	case f.Edited():
		return planEdited
	case f.Planc != version:
		return fmt.Sprintf("planc %s wrote the lock, this is %s", f.Planc, version)
	}
	return "train.dropout has changed, planc itself, or the lock's program was edited"
}

// planEdited says that a lock's plan is not the one that planc wrote there.
const planEdited = "the lock's plan was edited"

// reportStaleLock tells a user on stderr that a stale lock was not obeyed, and what that changes.
func (a *app) reportStaleLock(j *loaded, d *decision, last string) {
	if l := d.lock; l.state() == lockStale {
		a.notef("%s", strings.TrimSuffix(lockDifference(j, d).screen(last), "\n"))
	}
}

// saveLock writes the lock after a compilation, if the job is what its file says. That it cannot be written does not
// make the binary wrong.
func (a *app) saveLock(j *loaded, d *decision, program string) {
	l := d.lock
	if j.overridden || l.path == "" {
		return
	}
	if err := a.writeLock(l, l.updated(d, program)); err != nil {
		a.notef("note: %v", err)
	}
}

// lockNote is the screens' line on the lock, "" if there is none.
func (l *jobLock) lockNote() string {
	if !l.isObeyed() {
		return ""
	}
	return l.name() + " holds this plan"
}

// slashed is a path as messages print it, the same on every platform.
func slashed(path string) string { return strings.ReplaceAll(path, "\\", "/") }
