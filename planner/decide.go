package planner

import (
	"errors"
	"fmt"
	"time"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/spec/strict"
	"github.com/planc-dev/planc/passes/search"
)

// Decision is what the search found for a question.
type Decision struct {
	*search.Result
	// Question is the one that was searched: its hardware has the size that the job's objective chose.
	Question *Question
	Took     time.Duration // of the search
	Goal     *Goal         // what the objective asked for; nil if it is throughput
	// NoPlan says why the plan does not fit. It is nil if the plan fits: only the plan that a job's pins leave as the
	// only one is a decision although it does not fit.
	NoPlan *search.NoPlan
	// IsGiven says that the plan was decided before, as by a lock: the result does not know about all other plans.
	IsGiven bool
}

// Decide finds the question's plan, and first the number of devices if the job's objective asks for it. watch is
// called now and then while the search runs; nil if nobody watches.
//
// Errors: ir.Diags if no plan with the job's pins is legal, if there are too many plans to search, or if the cluster
// cannot run such a job at all; a NoPlanError if no plan fits or none reaches the objective's goal.
func Decide(q *Question, watch func(search.Progress)) (*Decision, error) {
	start := time.Now()
	q, goal, err := chooseHardware(q)
	if err != nil {
		return nil, err
	}
	d := &Decision{Question: q, Goal: goal}
	p := q.Problem()
	p.Watch = watch
	d.Result, err = search.Search(p)
	d.Took = time.Since(start)
	var noPlan *search.NoPlan
	switch {
	case errors.As(err, &noPlan) && noPlan.Counts.Space == 1 && len(search.PinsOf(&q.Plan)) > 0:
		d.Result = &search.Result{Best: noPlan.Nearest, Counts: noPlan.Counts}
		d.NoPlan = noPlan
		return d, nil
	case err != nil:
		return nil, searchError(q, err)
	}
	if goal != nil && goal.JoulesPerToken != nil { // it was computed for the fastest plan of each size
		*goal.JoulesPerToken *= float64(d.Best.Predict.StepS / d.Fastest.Predict.StepS)
	}
	return d, nil
}

// searchError returns an error of package search as a caller of this package gets it: with positions in the job.
func searchError(q *Question, err error) error {
	var illegal *search.IllegalError
	var noPlan *search.NoPlan
	switch {
	case errors.As(err, &illegal):
		return illegalError(q, illegal)
	case errors.As(err, &noPlan):
		return q.NewNoPlanError(noPlan)
	}
	return q.SearchError(err)
}

// SearchError returns an error of package search with its position in the job: there are too many plans to search, or
// the cluster cannot run such a job at all.
func (q *Question) SearchError(err error) error {
	if isTooMany(err) {
		return ir.Diags{{Pos: q.Pos("train.global_batch"), Code: search.BadPlan,
			Msg: err.Error() + ": pin plan.pp, plan.ep or plan.micro_batch (`--set plan.pp=8`), or choose a " +
				"train.global_batch with fewer divisors"}}
	}
	field := "cluster"
	if _, ok := q.Hardware.DeviceOf(&engine(q).Kernels, q.Train.Precision.Compute); !ok && q.Has("train.precision") {
		field = "train.precision"
	}
	return ir.Diags{{Pos: q.Pos(field), Code: costmodel.BadCluster, Msg: err.Error()}}
}

// isTooMany reports whether a search failed because its space is too large.
func isTooMany(err error) bool {
	var many *search.TooManyPlans
	return errors.As(err, &many)
}

// illegalError points at the pins with which no plan is legal.
func illegalError(q *Question, e *search.IllegalError) error {
	var diags ir.Diags
	for _, r := range e.Reasons {
		at := "plan." + r.Key
		if r.Key == "dp" && q.Plan.EPAxis == "own" && q.Has(at) {
			r.Message += fmt.Sprintf("; with plan.ep_axis own, this dp is plan.dp × ep %d", q.Plan.EP.Values[0])
		}
		if !q.Has("plan") { // no pin is the reason: no plan divides the batch
			at = "train.global_batch"
			r.Message += batchHints(q)
		}
		if r.Field != "" && q.Has(r.Field) {
			at = r.Field
		}
		diags = append(diags, ir.Diag{Pos: q.Pos(pinnedField(q, at)), Code: search.BadPlan, Msg: r.Message})
	}
	if len(diags) == 0 { // the search gave no reasons
		diags = ir.Diags{{Pos: q.Pos("plan"), Code: search.BadPlan, Msg: e.Error()}}
	}
	return diags.Err()
}

// pinnedField returns the field itself if the job has it. For a key of the plan that the job leaves free, it returns
// the first key that the job pins, because that one is the reason.
func pinnedField(q *Question, field string) string {
	if q.Has(field) {
		return field
	}
	for _, k := range ir.PlanKeys() {
		if at := "plan." + k; q.Has(at) {
			return at
		}
	}
	return field
}

// CheckFixedHardware returns an error if the job's objective chooses the number of devices. A job to compile must say
// on which hardware it trains.
func (q *Question) CheckFixedHardware() error {
	if q.Objective.Kind == spec.Throughput {
		return nil
	}
	return ir.Diags{{Pos: q.Pos("objective.kind"), Code: strict.NotYet,
		Msg: fmt.Sprintf("objective %s chooses how many devices there are, which planc plan does and compiling does "+
			"not; set cluster.nodes to what it says and objective to null", q.Objective.Kind)}}
}
