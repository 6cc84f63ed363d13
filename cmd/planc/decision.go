package main

import (
	"errors"

	"github.com/planc-dev/planc/cmd/planc/internal/console"
	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/cmd/planc/internal/screen"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner"
)

// decision is the planner's decision, and what the job's lock adds to it.
type decision struct {
	*planner.Decision
	job  *loaded        // on the hardware that its objective chooses
	own  *search.Priced // the plan that the search recommends; nil unless the lock holds another one
	lock *lock.Job      // of commands that obey and write locks
	// expect is what a training program compares its steps with; the zero value: what planc expects now.
	expect lock.Expect
}

// forLock returns what a lock records of the decision. program is the hash of its program.
func (d *decision) forLock(program string) lock.Decided {
	return lock.Decided{Best: d.Best, Counts: d.Counts, Expect: d.expect, Program: program, Planc: version}
}

// withQuestion returns the job with another question.
func (j *loaded) withQuestion(q *planner.Question) *loaded {
	m := *j
	m.Question = q
	return &m
}

// searchPlan finds the job's plan, on the hardware that its objective chooses. Pins that leave one plan are priced even
// if it does not fit.
func searchPlan(ui *console.Console, j *loaded) (*decision, error) {
	var d *planner.Decision
	err := ui.WatchSearch(func(watch func(search.Progress)) (err error) {
		d, err = planner.Decide(j.Question, watch)
		return err
	})
	if err != nil {
		return nil, noFitAsError(err)
	}
	return &decision{Decision: d, job: j.withQuestion(d.Question)}, nil
}

// choosePlan is search for commands that need a plan that fits.
func choosePlan(ui *console.Console, j *loaded) (*decision, error) {
	if err := j.CheckFixedHardware(); err != nil {
		return nil, err
	}
	d, err := searchPlan(ui, j)
	if err == nil && d.Unfit != nil {
		return nil, noPlanFits(d.job, d.Unfit, false)
	}
	return d, err
}

// noFitAsError returns a NoFitError of the planner with the text of its screen, and other errors as they are.
func noFitAsError(err error) error {
	var unfit *planner.NoFitError
	if !errors.As(err, &unfit) {
		return err
	}
	return newNoFit(unfit, false)
}

// noPlanFits returns the error of a job for which no plan fits. shown says that the result is on stdout already.
func noPlanFits(j *loaded, e *search.NoPlan, shown bool) error { return newNoFit(j.NoFit(e), shown) }

// newNoFit returns the planner's error with the text of its screen.
func newNoFit(e *planner.NoFitError, shown bool) *noFitError {
	f := &noFitError{shown: shown, message: e.Message}
	if e.Nearest == nil {
		return f
	}
	for _, c := range e.Changes {
		f.nearest = append(f.nearest, nearestChange{c.Set, c.Best.Predict})
	}
	p := e.Nearest.Plan
	f.detail = screen.NoFit(p.String(), e.Nearest.Predict, e.Stage, p.PP > 1, e.Changes, e.Cluster)
	if e.Tried != "" {
		f.detail += layout.Prose("  tried", 12, e.Tried+": none fits")
	}
	return f
}
