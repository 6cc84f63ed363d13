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
	own  *search.Priced // the recommended plan; nil unless the lock holds a different one
	lock *lock.Job      // of commands that obey and write locks
	// expect is the prediction that a training program compares its steps with. The zero value means the current
	// prediction.
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

// searchPlan finds the job's plan, on the hardware that its objective chooses. If the pins leave a
// single plan, it is priced even if it does not fit.
func searchPlan(ui *console.Console, j *loaded) (*decision, error) {
	var d *planner.Decision
	err := ui.WatchSearch(func(watch func(search.Progress)) (err error) {
		d, err = planner.Decide(j.Question, watch)
		return err
	})
	if err != nil {
		return nil, toNoPlanError(err)
	}
	return &decision{Decision: d, job: j.withQuestion(d.Question)}, nil
}

// choosePlan calls searchPlan. It returns an error if no plan fits or the job leaves its hardware open.
func choosePlan(ui *console.Console, j *loaded) (*decision, error) {
	if err := j.CheckFixedHardware(); err != nil {
		return nil, err
	}
	d, err := searchPlan(ui, j)
	if err == nil && d.NoPlan != nil {
		return nil, newJobNoPlanError(d.job, d.NoPlan, false)
	}
	return d, err
}

// toNoPlanError adds the text of its screen to a NoPlanError of the planner. It returns other errors as they are.
func toNoPlanError(err error) error {
	var noPlan *planner.NoPlanError
	if !errors.As(err, &noPlan) {
		return err
	}
	return newNoPlanError(noPlan, false)
}

// newJobNoPlanError returns the error of a job for which no plan fits. shown says that the result is on stdout already.
func newJobNoPlanError(j *loaded, e *search.NoPlan, shown bool) error {
	return newNoPlanError(j.NewNoPlanError(e), shown)
}

// newNoPlanError returns the planner's error with the text of its screen.
func newNoPlanError(e *planner.NoPlanError, shown bool) *noPlanError {
	f := &noPlanError{shown: shown, message: e.Message}
	if e.Nearest == nil {
		return f
	}
	for _, c := range e.Changes {
		f.nearest = append(f.nearest, nearestChange{c.Set, c.Best.Predict})
	}
	p := e.Nearest.Plan
	f.detail = screen.NoPlan(p.String(), e.Nearest.Predict, e.Stage, p.PP > 1, e.Changes, e.Cluster)
	if e.Tried != "" {
		f.detail += layout.Prose("  tried", 12, e.Tried+": none fits")
	}
	return f
}
