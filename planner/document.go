package planner

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
)

// Document is a decision as `planc plan --json` and `planc explain --json` print it (docs/output.md). The screens of
// both commands show the same values.
type Document struct {
	Schema     int            `json:"schema"`
	Planc      string         `json:"planc"` // version of the program that made it
	Lock       string         `json:"lock"`  // how the job's lock relates to it: none, obeyed, stale
	Model      ModelSummary   `json:"model"`
	Cluster    ClusterSummary `json:"cluster"`
	Engine     string         `json:"engine"`
	Plan       Plan           `json:"plan"`
	Fits       bool           `json:"fits"`
	FitAssumed bool           `json:"fit_assumed"` // no memory of this engine was measured on such devices
	Stage      int            `json:"stage"`       // the one that uses the most memory
	Remarks
	Predict      costmodel.Predict `json:"predict"`
	Search       SearchSummary     `json:"search"`
	Alternatives []Alternative     `json:"alternatives"`
	Preferences
	Training *Training `json:"training,omitempty"` // absent if the job does not say how long it is
	Goal     *Goal     `json:"goal,omitempty"`     // absent if the objective is throughput
	TightFit *TightFit `json:"room,omitempty"`     // present if the plan may not fit after all
	*Explanation
	decision *Decision
}

// Remarks are what a document says about its job.
type Remarks struct {
	Assumed []Assumption `json:"guessed"`
	Notes   []string     `json:"notes,omitempty"` // see [Question.Notes]
}

// ModelSummary is the model of a document.
type ModelSummary struct {
	Name         string `json:"name"`
	Params       int64  `json:"params"`
	ParamsActive int64  `json:"params_active"` // of one token, with experts
	Layers       int    `json:"layers"`
}

// ClusterSummary is the cluster of a document.
type ClusterSummary struct {
	Name    string `json:"name"`
	GPU     string `json:"gpu"`
	Devices int    `json:"devices"` // of all nodes
	Nodes   int    `json:"nodes"`
}

// Assumption is a value that decides the plan, or its price, and that the user did not write.
type Assumption struct {
	Path  string `json:"path"`
	Value string `json:"value"`
	Why   string `json:"why"`
}

// SearchSummary says what a search looked at.
type SearchSummary struct {
	search.Counts
	Restricted []string `json:"restricted"` // "key: the legal plans that the counts leave out", see [search.Restricted]
	Seconds    float64  `json:"seconds"`
}

// NewDocument returns a decision as a document, without an explanation. The caller fills in Planc and, if there is a
// lock, Lock.
func NewDocument(decision *Decision) *Document {
	q, best := decision.Question, decision.Best
	d := &Document{
		Schema: 1, Lock: "none", Engine: q.Train.Engine,
		Model: modelSummary(q), Cluster: clusterSummary(q.Hardware),
		Plan: Plan{best.Plan}, Fits: best.Fits(), FitAssumed: !q.HasMeasuredMemory(),
		Remarks: Remarks{assumptions(q, best.Plan), q.Notes()},
		Predict: best.Predict, Stage: best.Stage,
		Search: SearchSummary{Counts: decision.Counts, Restricted: search.Restricted(q.Problem()),
			Seconds: float64(costmodel.Seconds(decision.Took.Seconds()).Rounded())},
		Alternatives: []Alternative{},
		Training:     trainingOf(q.Hardware, best.Predict, q.TrainTokens(q.Train.GlobalBatch, q.Train.SeqLen)),
		Goal:         decision.Goal, decision: decision,
	}
	for _, a := range decision.Alternatives {
		d.Alternatives = append(d.Alternatives, d.alternative(a))
	}
	d.Preferences = preferences(decision)
	return d
}

func modelSummary(q *Question) ModelSummary {
	return ModelSummary{Name: q.Config.Name, Params: q.Config.Params(), ParamsActive: q.Config.ActiveParams(),
		Layers: q.Config.Layers}
}

func clusterSummary(c *costmodel.Cluster) ClusterSummary {
	return ClusterSummary{Name: c.Name, GPU: c.GPU.Name, Devices: c.Devices(), Nodes: c.Nodes}
}

// HasMeasuredMemory reports whether memory was measured of the job's engine on devices like its own, so that a
// probability to fit has a base: planc's engine was measured on CPUs (law 3), other engines in published runs on GPUs.
func (q *Question) HasMeasuredMemory() bool {
	return q.Hardware.IsCPU() || !engine(q).Own
}

// assumptions returns what decides the plan, or its price, and was not written by the user.
func assumptions(q *Question, plan ir.Plan) []Assumption {
	out := []Assumption{}
	for _, g := range q.Assumed {
		out = append(out, Assumption(g))
	}
	if plan.MoESlack > 0 && q.Plan.MoESlack.Free() && engine(q).Own {
		out = append(out, Assumption{"plan.moe_slack", fmt.Sprint(plan.MoESlack), "taken, not searched"})
	}
	if n := q.Config.Ahead; n > 0 {
		out = append(out, Assumption{"model", "", fmt.Sprintf("num_nextn_predict_layers %d is left out", n)})
	}
	if c := q.Hardware; isLinkAssumed(q) {
		out = append(out, Assumption{"node.link.latency_us", strconv.FormatFloat(c.Node.Link.LatencyUS, 'g', -1, 64),
			"catalogue, not measured"})
	}
	source := q.Hardware.Source
	for _, path := range slices.Sorted(maps.Keys(source)) {
		if strings.HasPrefix(source[path], "not measured") {
			out = append(out, Assumption{path, "", source[path]})
		}
	}
	return out
}

// isLinkAssumed reports whether the latency of the links inside a node was not measured.
func isLinkAssumed(q *Question) bool {
	c := q.Hardware
	if q.MeasuredCPU != nil || c.Measured.Link != 0 || c.Measured.Collectives != "" || c.Devices() < 2 {
		return false
	}
	return !costmodel.IsFile(q.Job.Cluster.Node) || strings.HasPrefix(c.Source["node.link.latency_us"], "estimate")
}
