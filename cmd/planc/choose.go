package main

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
)

// decision is what the search found: a plan that fits, or, of a pinned plan that does not, the plan all the same.
type decision struct {
	*search.Result
	took  time.Duration
	goal  *goalDoc       // nil where the objective is throughput
	unfit *search.NoPlan // nil if the plan fits
	own   *search.Priced // what the search itself would choose, where a lock holds another plan
	lock  *jobLock       // of those who obey and write locks
	// expect is what a training program compares its steps with; the zero value: what planc expects now.
	expect lock.Expect
}

// problem is the job as the search's question.
func (j *loaded) problem() *search.Problem {
	engine := costmodel.EngineOf(j.Train.Engine)
	p := &search.Problem{Model: j.model(), Cluster: j.cluster, GlobalBatch: j.Train.GlobalBatch,
		Precision: engine.State(j.Train.Precision.IR()),
		Engine:    engine, GEMM: j.Train.Precision.Compute,
		Recipe: j.recipe(), Headroom: j.Objective.Headroom, Pins: search.PinsOf(&j.Plan), WithSeq: j.modelOf,
		MaxDevices: j.wholeNode(), Narrower: j.narrowerState, Prefer: j.Objective.Prefer}
	if goal := j.Goal(); goal > 0 { // which a plan that is recommended must reach as the fastest does
		p.MaxStep = costmodel.Seconds(float64(j.Train.GlobalBatch*j.Train.SeqLen) / goal)
	}
	return p
}

// search finds the job's plan. Pins that leave one plan are priced even if it does not fit.
func (a *app) search(j *loaded) (*decision, error) {
	start := time.Now()
	goal, err := a.aim(j)
	if err != nil {
		return nil, err
	}
	d := &decision{goal: goal}
	p := j.problem()
	err = a.runSearch(p, func() (err error) { d.Result, err = search.Search(p); return err })
	d.took = time.Since(start)
	var illegal *search.IllegalError
	var unfit *search.NoPlan
	switch {
	case errors.As(err, &illegal):
		return nil, illegalPins(j, illegal)
	case tooMany(err):
		return nil, tooManyPlans(j, err)
	case errors.As(err, &unfit) && unfit.Counts.Space == 1 && len(search.PinsOf(&j.Plan)) > 0:
		d.Result = &search.Result{Best: unfit.Nearest, Counts: unfit.Counts}
		d.unfit = unfit
		return d, nil
	case errors.As(err, &unfit):
		return nil, noPlanFits(j, unfit, false)
	case err != nil:
		return nil, wrongCluster(j, err)
	}
	if goal != nil && goal.PerToken != nil { // the size was chosen by its fastest plan
		*goal.PerToken *= float64(d.Best.Predict.StepS / d.Fastest.Predict.StepS)
	}
	return d, nil
}

// tooMany reports whether a search failed because its space is too large.
func tooMany(err error) bool {
	var many *search.TooManyPlans
	return errors.As(err, &many)
}

// tooManyPlans points at the batch, whose divisors are most of the plans.
func tooManyPlans(j *loaded, err error) error {
	return ir.Diags{{Pos: j.Pos("train.global_batch"), Code: search.BadPlan,
		Msg: err.Error() + ": pin plan.pp, plan.ep or plan.micro_batch (`--set plan.pp=8`), or choose a " +
			"train.global_batch with fewer divisors"}}
}

// wrongCluster points at what keeps the cluster from running such a job at all.
func wrongCluster(j *loaded, err error) error {
	field := "cluster"
	if _, ok := j.cluster.DeviceOf(costmodel.EngineOf(j.Train.Engine), j.Train.Precision.Compute); !ok &&
		j.Has("train.precision") {
		field = "train.precision"
	}
	return ir.Diags{{Pos: j.Pos(field), Code: costmodel.BadCluster, Msg: err.Error()}}
}

// choose is search for those who need a plan that fits.
func (a *app) choose(j *loaded) (*decision, error) {
	if err := checkAimless(j); err != nil {
		return nil, err
	}
	d, err := a.search(j)
	if err == nil && d.unfit != nil {
		return nil, noPlanFits(j, d.unfit, false)
	}
	return d, err
}

// illegalPins points at the pins that no legal plan obeys.
func illegalPins(j *loaded, e *search.IllegalError) error {
	var diags ir.Diags
	for _, r := range e.Reasons {
		at := "plan." + r.Key
		if r.Key == "dp" && j.Plan.EPAxis == "own" && j.Has(at) {
			r.Message += fmt.Sprintf("; this dp is plan.dp × ep %d, as plan.ep_axis own has it", j.Plan.EP.Values[0])
		}
		if !j.Has("plan") { // no pin is to blame: the batch is what no plan divides
			at = "train.global_batch"
			r.Message += j.batchHints()
		}
		diags = append(diags, ir.Diag{Pos: j.Pos(j.pinned(at)), Code: search.BadPlan, Msg: r.Message})
	}
	if len(diags) == 0 { // an error without reasons is an error all the same
		diags = ir.Diags{{Pos: j.Pos("plan"), Code: search.BadPlan, Msg: e.Error()}}
	}
	return diags.Err()
}

// pinned is the field itself or, of a plan's key that the job leaves free, the first that it pins: that is the one to
// blame.
func (j *loaded) pinned(field string) string {
	if j.Has(field) {
		return field
	}
	for _, k := range ir.PlanKeys() {
		if at := "plan." + k; j.Has(at) {
			return at
		}
	}
	return field
}

// noPlanFits is screen 5. shown says that the result is on stdout already.
func noPlanFits(j *loaded, e *search.NoPlan, shown bool) error {
	c := j.cluster
	f := &noFitError{shown: shown, message: fmt.Sprintf("no plan fits: %s on %s (%d %s)", j.Config.Name, clusterText(c),
		c.Devices(), c.GPU.Name)}
	if e.Counts.Space == 1 {
		f.message = fmt.Sprintf("the plan does not fit: %s on %s (%d %s)", j.Config.Name, clusterText(c),
			c.Devices(), c.GPU.Name)
	}
	var changes []search.Change
	for _, c := range e.Changes {
		c.Set = j.asSet(c.Set)
		changes = append(changes, c)
		f.nearest = append(f.nearest, nearestChange{c.Set, c.Best.Predict})
	}
	p := e.Nearest.Plan
	f.detail = noFitScreen(p.String(), e.Nearest.Predict, e.NoFit.Stage, p.PP > 1, changes, c)
	if len(changes) == 0 {
		f.detail += prose("  tried", 12, j.tried()+": none fits")
	}
	return f
}

// count is N of the short form NxNAME in a change of the cluster's size, and the field that the change sets; "" if
// none.
func (j *loaded) count(set map[string]any) (n int, key string) {
	if n, ok := set["cluster.devices"].(int); ok {
		return n, "cluster.devices"
	}
	n, ok := set["cluster.nodes"].(int)
	if !ok {
		return 0, ""
	}
	if j.Cluster.Count != j.cluster.Nodes { // N counts devices
		n *= j.cluster.Node.Devices
	}
	return n, "cluster.nodes"
}

// asSet are the fields of this job that make a change: of a job with a batch in tokens, sequences are what counts.
func (j *loaded) asSet(set map[string]any) map[string]any {
	if n, key := j.count(set); key != "" && j.Cluster.Count > 0 { // of the short form, 4xh100
		set = maps.Clone(set)
		delete(set, key)
		set["cluster"] = fmt.Sprintf("%dx%s", n, j.Cluster.Node)
	}
	_, batch := set["train.global_batch"]
	_, seq := set["train.seq_len"]
	if !j.Has("train.global_batch_tokens") || !batch && !seq {
		return set
	}
	set = maps.Clone(set)
	set["train.global_batch_tokens"] = nil
	if !batch {
		set["train.global_batch"] = j.Train.GlobalBatch
	}
	return set
}
