package lock

import (
	"math"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner"
)

// InputsOf returns the fields that decide the job's plan; for the cluster, its figures. The price of a node and the
// tokens to train on are included only if the objective depends on them.
func InputsOf(q *planner.Question) Inputs {
	in := Inputs{}
	for _, s := range Sections {
		in[s] = map[string]string{}
	}
	for _, r := range q.Deciding() {
		section, key, _ := strings.Cut(r.Path, ".")
		if section != "cluster" {
			in[section][key] = r.Value
		}
	}
	if train := in["train"]; train["precision.master"] == "none" { // as in plans: the parameters are the master copy
		train["precision.master"] = train["precision.params"]
	}
	if q.Objective.Prefer == search.PreferRobust { // the default; older locks do not contain it
		delete(in["objective"], "prefer")
	}
	in["cluster"] = q.Hardware.Deciding()
	if q.Objective.Kind == spec.Cost {
		in["cluster"]["node.price_per_hour"] = strconv.FormatFloat(q.Hardware.Node.PricePerHour, 'g', -1, 64)
	}
	if q.Objective.Kind != spec.Throughput && q.Objective.Days > 0 {
		in["objective"]["tokens"] = strconv.FormatFloat(q.TrainTokens(q.Train.GlobalBatch, q.Train.SeqLen), 'g', -1, 64)
	}
	return in
}

// ExpectOf returns the prediction that the binary compares its steps with: for a CPU, where it runs, whatever the
// cluster of the plan. It is zero if the plan cannot be priced on a CPU.
func ExpectOf(q *planner.Question, best search.Priced) Expect {
	c, p := q.Hardware, best.Predict
	if !c.IsCPU() {
		var err error
		c, p, err = onCPU(q, best.Plan)
		if err != nil {
			return Expect{}
		}
	}
	d, _ := c.Device(q.Train.Precision.IR().Compute)
	return Expect{StepS: p.StepS, StepError: math.Round(1e4*float64(p.StepSHigh/p.StepS-1)) / 1e4,
		TokensPerS: p.TokensPerS, MemoryBytes: p.MemoryBytes.Total, PeakFlops: d.Peak}
}

// onCPU prices a plan on the catalogue's CPU, with one device per rank.
func onCPU(q *planner.Question, plan ir.Plan) (*costmodel.Cluster, costmodel.Predict, error) {
	c, err := costmodel.Resolve(costmodel.Ref{Node: "cpu", Nodes: 1, Devices: plan.Ranks()}, nil, nil)
	if err != nil {
		return nil, costmodel.Predict{}, err
	}
	question := *q.Problem()
	question.Cluster, question.Recipe.Sides = c, false
	p, err := search.Price(&question, plan)
	return c, p, err
}
