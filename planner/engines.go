package planner

import (
	"errors"
	"fmt"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
)

// EnginePlan is the plan to recommend under one engine.
type EnginePlan struct {
	Engine   string             `json:"engine"`
	Plan     *Plan              `json:"plan"`      // null if no plan is legal or fits
	Predict  *costmodel.Predict `json:"predict"`   // null with plan
	SlowerBy *float64           `json:"slower_by"` // fraction of the fastest engine's step; null with plan
	Message  string             `json:"message"`   // why there is no plan
}

// EngineComparison is the answer to which engine trains a job fastest, as `planc plan --engines --json` prints it.
type EngineComparison struct {
	Schema  int            `json:"schema"`
	Planc   string         `json:"planc"`
	Model   ModelSummary   `json:"model"`
	Cluster ClusterSummary `json:"cluster"`
	Engines []EnginePlan   `json:"engines"` // in the order in which they were asked for

	Question *Question `json:"-"`
}

// CompareEngines plans a question under several engines.
func CompareEngines(q *Question, names []string) (*EngineComparison, error) {
	c := &EngineComparison{Schema: 1, Model: modelSummary(q), Cluster: clusterSummary(q.Hardware),
		Engines: []EnginePlan{}, Question: q}
	fastest := costmodel.Seconds(0)
	for _, name := range names {
		one, err := q.UnderEngine(name)
		if err != nil {
			return nil, err
		}
		if one.Predict != nil && (fastest == 0 || one.Predict.StepS < fastest) {
			fastest = one.Predict.StepS
		}
		c.Engines = append(c.Engines, *one)
	}
	for i := range c.Engines {
		if one := &c.Engines[i]; one.Predict != nil {
			by := costmodel.SixDigits(float64(one.Predict.StepS/fastest) - 1)
			one.SlowerBy = &by
		}
	}
	return c, nil
}

// UnderEngine returns the plan to recommend under an engine, with the job's pins and further overrides. It returns an
// error if there is no such engine, or if the job is wrong under it.
func (q *Question) UnderEngine(name string, more ...spec.Override) (*EnginePlan, error) {
	other, err := ForEngine(q, name, more...)
	if err != nil {
		return nil, err
	}
	return BestOf(other, nil)
}

// ForEngine returns the question under an engine, on the same hardware, with further overrides.
func ForEngine(q *Question, name string, more ...spec.Override) (*Question, error) {
	other, err := q.Override(append(more, spec.SetFlag("train.engine="+name))...)
	if err != nil {
		return nil, err
	}
	other.Hardware, other.MeasuredCPU = q.Hardware, q.MeasuredCPU
	return other, nil
}

// BestOf returns the plan to recommend of those that something else can express, such as the file of a trainer. Nil
// expresses all.
func BestOf(q *Question, expresses func(*ir.Plan) bool) (*EnginePlan, error) {
	out := &EnginePlan{Engine: q.Train.Engine}
	var series search.Series
	p := q.Problem()
	p.Expresses = expresses
	best, _, err := bestExpressed(&series, p)
	var illegal *search.IllegalError
	var unfit *search.NoPlan
	switch {
	case errors.As(err, &illegal):
		out.Message = illegal.Reasons[0].Message
	case errors.As(err, &unfit):
		out.Message = "no plan fits: the nearest is " + overText(&unfit.NoFit, unfit.Nearest.Plan.PP > 1)
	case errors.Is(err, errNotExpressed):
		out.Message = err.Error()
	case err != nil:
		return nil, q.SearchError(err)
	default:
		out.Plan, out.Predict = &Plan{best.Plan}, &best.Predict
	}
	return out, nil
}

// Refusals returns the rules of an engine that a plan breaks; nil for the job's own engine, whose search obeys them,
// and for an engine that does not exist.
func (q *Question) Refusals(engine string, plan ir.Plan) (broken []BrokenRule) {
	e := engines.EngineOf(engine)
	if e == nil || q.Train.Engine == engine {
		return nil
	}
	d := search.DimsOf(q.Problem().Model)
	shape := &engines.Shape{KVHeads: d.KVHeads, Group: d.Group}
	for _, r := range e.PlanRules() {
		if !r.OK(&plan, shape) {
			broken = append(broken, BrokenRule{r.Key, r.Why(&plan, shape, fmt.Sprint(plan.JSON()[r.Key]))})
		}
	}
	return broken
}
