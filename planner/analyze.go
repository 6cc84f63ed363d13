package planner

import (
	"math"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/calibrate"
	"github.com/planc-dev/planc/passes/search"
)

// Measurement is what a run measured of its steps. Times are medians over the steps.
type Measurement struct {
	Run         string
	First, Last int // steps
	Steps       int
	Ranks       int // 0 if the parts were not measured
	StepS       float64
	// seconds by the names of calibrate.Groups, which add up to StepS; nil if the parts were not measured
	Groups      map[string]float64
	WaitS       float64 // that a rank waited for others, mean over the ranks
	MemoryBytes int64   // of a rank, at most
	Busy        []float64
}

// Observation returns the measurement as a row for a fit.
func (m *Measurement) Observation(name string, p *search.Problem, plan ir.Plan) calibrate.Observation {
	return calibrate.Observation{Name: name, Problem: p, Plan: plan, StepS: m.StepS, Parts: m.Groups}
}

// Analysis compares the prediction of a plan with a run of it.
type Analysis struct {
	Schema    int             `json:"schema"`
	Planc     string          `json:"planc"`
	Run       string          `json:"run"`
	First     int             `json:"first_step"`
	Last      int             `json:"last_step"`
	Steps     int             `json:"steps"` // that the medians are of
	Model     ModelSummary    `json:"model"`
	Cluster   ClusterSummary  `json:"cluster"`
	Rates     string          `json:"rates"` // at which the plan was predicted: catalogue, or the cluster's file
	Plan      Plan            `json:"plan"`
	Parts     []PartError     `json:"parts"` // none: not measured
	Step      StepError       `json:"step"`
	WaitS     float64         `json:"wait_s"`
	Memory    MemoryError     `json:"memory"`
	Slowest   *SlowestRank    `json:"slowest,omitempty"`
	Calibrate CalibrationNote `json:"calibration"`
	Replan    Replan          `json:"replan"`

	Name string `json:"-"` // of the plan, for people
}

// PartError is a part of a step, predicted and measured.
type PartError struct {
	Part      string   `json:"part"`
	Predicted float64  `json:"predicted_s"`
	Measured  float64  `json:"measured_s"`
	Error     *float64 `json:"error"`   // measured over predicted, minus 1; null if nothing was predicted
	OfStep    float64  `json:"of_step"` // the difference as a fraction of the predicted step
}

// StepError is the step, predicted and measured.
type StepError struct {
	Predicted float64 `json:"predicted_s"`
	Low       float64 `json:"predicted_s_low"`
	High      float64 `json:"predicted_s_high"`
	Measured  float64 `json:"measured_s"`
	Error     float64 `json:"error"`
	IsInside  bool    `json:"inside"` // of the predicted range
}

// MemoryError is the memory of a rank, predicted and measured.
type MemoryError struct {
	Predicted int64 `json:"predicted_bytes"`
	Measured  int64 `json:"measured_bytes"`
}

// SlowestRank is the rank with the most work of its own in a step.
type SlowestRank struct {
	Rank     int     `json:"rank"`
	BusyS    float64 `json:"busy_s"`
	SlowerBy float64 `json:"slower_by"` // than the median rank
}

// CalibrationNote is what a fit to the run changes.
type CalibrationNote struct {
	Factors []FittedFactor `json:"factors"`
	StepS   float64        `json:"step_s"` // predicted with the factors
}

// FittedFactor is a fitted factor of a cluster file's measured block.
type FittedFactor struct {
	Key   string  `json:"key"`
	Value float64 `json:"value"` // relative to the prediction
}

// Replan is the best plan with the fitted factors.
type Replan struct {
	IsSame   bool              `json:"same"`   // the plan of the run stays the one to recommend
	IsPinned bool              `json:"pinned"` // the job pins keys of the plan, which this search leaves free
	Plan     Plan              `json:"plan"`
	Predict  costmodel.Predict `json:"predict"`
	// than the run's plan, as a fraction of that plan's step; 0 if it is the same
	FasterBy float64 `json:"faster_by"`

	Name string `json:"-"`
}

// groupOrder is the order of the parts in an analysis.
var groupOrder = []string{"compute", "tp_comm", "cp_comm", "ep_comm", "pp_comm", "dp_comm", "optimizer", "other"}

// leastChange is the smallest change of a factor that is shown. Files have three digits.
const leastChange = 0.005

// Analyze compares a question's plan with a run, fits the cluster's factors to the run, and searches again with them.
func Analyze(q *Question, best *search.Priced, m *Measurement, watch func(search.Progress)) (*Analysis, error) {
	p := best.Predict
	a := &Analysis{Schema: 1, Run: m.Run, First: m.First, Last: m.Last, Steps: m.Steps, Name: best.Plan.String(),
		Plan: Plan{best.Plan}, WaitS: m.WaitS, Model: modelSummary(q), Cluster: clusterSummary(q.Hardware),
		Rates: "catalogue", Parts: []PartError{}, Calibrate: CalibrationNote{Factors: []FittedFactor{}},
		Memory: MemoryError{int64(p.MemoryBytes.Total), m.MemoryBytes}}
	a.Step = StepError{Predicted: float64(p.StepS), Low: float64(p.StepSLow), High: float64(p.StepSHigh),
		Measured: m.StepS, Error: m.StepS/float64(p.StepS) - 1}
	a.Step.IsInside = m.StepS >= a.Step.Low && m.StepS <= a.Step.High
	if costmodel.IsFile(q.Cluster.Node) {
		a.Rates = q.Cluster.Node
	}
	a.addParts(&p, m)
	a.addSlowest(m)
	problem := q.Problem()
	fit, err := calibrate.Fit([]calibrate.Observation{m.Observation("run", problem, best.Plan)})
	if err != nil {
		return nil, err
	}
	for _, f := range fit.Factors {
		if math.Abs(f.Value-1) >= leastChange {
			a.Calibrate.Factors = append(a.Calibrate.Factors, FittedFactor{f.Key, costmodel.SixDigits(f.Value)})
		}
	}
	return a, a.replan(q, best.Plan, fit.Measured, watch)
}

// addParts adds the parts that are predicted or measured.
func (a *Analysis) addParts(p *costmodel.Predict, m *Measurement) {
	if m.Groups == nil {
		return
	}
	for _, group := range groupOrder {
		e := PartError{Part: group, Predicted: calibrate.GroupSeconds(p.Time, group), Measured: m.Groups[group]}
		if e.Predicted == 0 && e.Measured == 0 {
			continue
		}
		e.OfStep = (e.Measured - e.Predicted) / float64(p.StepS)
		if e.Predicted > 0 {
			off := e.Measured/e.Predicted - 1
			e.Error = &off
		}
		a.Parts = append(a.Parts, e)
	}
}

// addSlowest adds the rank with the most work of its own.
func (a *Analysis) addSlowest(m *Measurement) {
	if len(m.Busy) < 2 {
		return
	}
	s := SlowestRank{}
	for i, x := range m.Busy {
		if x > s.BusyS {
			s.Rank, s.BusyS = i, x
		}
	}
	sorted := slices.Sorted(slices.Values(m.Busy))
	n := len(sorted)
	s.SlowerBy = s.BusyS/((sorted[n/2]+sorted[(n-1)/2])/2) - 1
	a.Slowest = &s
}

// replan searches with the fitted factors, among all plans: also those that the job's pins exclude.
func (a *Analysis) replan(q *Question, plan ir.Plan, factors costmodel.Measured,
	watch func(search.Progress)) error {
	scaled := *q
	scaled.Hardware = q.Hardware.Scaled(factors)
	own, err := search.Price(scaled.Problem(), plan)
	if err != nil {
		return err
	}
	a.Calibrate.StepS = float64(own.StepS)
	problem := scaled.Problem()
	isPinned := len(problem.Pins) > 0
	problem.Watch, problem.Pins = watch, nil
	result, err := search.Search(problem)
	if err != nil {
		return searchError(&scaled, err)
	}
	r := &a.Replan
	r.IsPinned = isPinned
	r.Plan, r.Predict, r.Name = Plan{result.Best.Plan}, result.Best.Predict, result.Best.Plan.String()
	r.IsSame = r.Name == a.Name
	if !r.IsSame {
		r.FasterBy = 1 - float64(result.Best.Predict.StepS)/float64(own.StepS)
	}
	return nil
}

// WorstPart returns the index of the part whose difference is the largest part of the step; -1 if none is a twentieth
// of it.
func (a *Analysis) WorstPart() int {
	worst, limit := -1, 0.05
	for i := range a.Parts {
		if d := math.Abs(a.Parts[i].OfStep); d > limit {
			worst, limit = i, d
		}
	}
	return worst
}
