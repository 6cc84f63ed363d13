package main

import (
	"cmp"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner"
)

// document is what plan and explain print with --json; contract.md names the keys. The screens are laid out from
// it too, so that both say the same.
type document struct {
	Schema       int               `json:"schema"`
	Planc        string            `json:"planc"`
	Lock         string            `json:"lock"`
	Model        modelDoc          `json:"model"`
	Cluster      clusterDoc        `json:"cluster"`
	Engine       string            `json:"engine"`
	Plan         map[string]any    `json:"plan"`
	Fits         bool              `json:"fits"`
	FitAssumed   bool              `json:"fit_assumed"` // no memory of such a runtime on such devices was measured
	Stage        int               `json:"stage"`
	Guessed      []guessDoc        `json:"guessed"`
	Predict      costmodel.Predict `json:"predict"`
	Search       searchDoc         `json:"search"`
	Alternatives []alternativeDoc  `json:"alternatives"`
	Fastest      *otherDoc         `json:"fastest,omitempty"` // where it is not the plan
	// where the job prefers the fastest, and another has less risk
	Simpler *otherDoc `json:"simpler,omitempty"`
	// of plan, where fewer nodes or a near batch are notably faster
	Faster      *fasterDoc    `json:"faster,omitempty"`
	Training    *trainingDoc  `json:"training,omitempty"` // where the job says how long it is
	Goal        *planner.Goal `json:"goal,omitempty"`     // where the objective is not throughput
	Room        *roomDoc      `json:"room,omitempty"`     // where the plan may not fit after all
	*explainDoc               // of explain

	head header // what only screens show
}

type modelDoc struct {
	Name         string `json:"name"`
	Params       int64  `json:"params"`
	ParamsActive int64  `json:"params_active"`
	Layers       int    `json:"layers"`
}

type clusterDoc struct {
	Name    string `json:"name"`
	GPU     string `json:"gpu"`
	Devices int    `json:"devices"`
	Nodes   int    `json:"nodes"`
}

type guessDoc struct {
	Path  string `json:"path"`
	Value string `json:"value"`
	Why   string `json:"why"`
}

type searchDoc struct {
	search.Counts
	Restricted []string `json:"restricted"` // "key: which legal plans the counts leave out", see [search.Restricted]
	Seconds    float64  `json:"seconds"`
}

type alternativeDoc struct {
	Plan     map[string]any    `json:"plan"`
	Predict  costmodel.Predict `json:"predict"`
	SlowerBy *float64          `json:"slower_by"`
	NoFit    *search.NoFit     `json:"no_fit"`

	plan ir.Plan
	risk bool // it is faster, and not recommended for its risk
}

// explainDoc is what explain adds.
type explainDoc struct {
	Choices  []choiceDoc `json:"choices"`
	Binding  bindingDoc  `json:"binding"`
	Levers   []leverDoc  `json:"levers"`
	Rules    []ruleDoc   `json:"rules"`
	ErrorBar errorBarDoc `json:"error_bar"`
	WhyNot   *whyNotDoc  `json:"why_not"`
}

// choiceDoc is a choice with its runner-up, which differs only in it where such a plan is legal.
type choiceDoc struct {
	Name      string   `json:"name"`
	Taken     any      `json:"taken"`
	RunnerUp  any      `json:"runner_up"`
	Verdict   string   `json:"verdict"`
	SlowerBy  *float64 `json:"slower_by"`
	OverBytes *int64   `json:"over_bytes"`
	Part      string   `json:"part"`
	Message   string   `json:"message"`
	Free      *freeDoc `json:"rest_free"` // null where that is the same plan
}

// freeDoc is the best plan with another value of a choice and all else free.
type freeDoc struct {
	Plan     map[string]any `json:"plan"`
	SlowerBy *float64       `json:"slower_by"`
	NoFit    *search.NoFit  `json:"no_fit"`
}

type bindingDoc struct {
	Resource   string `json:"resource"`
	SlackBytes int64  `json:"slack_bytes"`
}

// leverDoc is a change of the hardware or the job, and by which fraction more tokens a second would be trained on.
type leverDoc struct {
	Name    string         `json:"name"`
	Set     map[string]any `json:"set"`
	Speedup float64        `json:"speedup"`
	Plan    map[string]any `json:"plan"` // the best under it; null where none fits

	best    *search.Priced
	experts search.Experts
}

// ruleDoc is a rule of thumb, and what following it comes to.
type ruleDoc struct {
	Rule     string         `json:"rule"`
	Verdict  string         `json:"verdict"`
	SlowerBy *float64       `json:"slower_by"`
	Message  string         `json:"message"`
	Plan     map[string]any `json:"plan"` // the best that follows it; null where that is the chosen one or none

	plan *ir.Plan
}

type errorBarDoc struct {
	Rows   int    `json:"rows"`
	Like   string `json:"like"`
	Beyond string `json:"beyond"` // of [costmodel.TraitNames]: what no measured run has the like of; else ""
}

// A share is a named part of the step's time.
type share struct {
	name  string
	value float64 // seconds
}

// shares are the parts of a step that are there, the largest first, other last.
func shares(t costmodel.Time) (out []share) {
	for _, name := range costmodel.TimeParts {
		if v := float64(t.Part(name)); v > 0 {
			out = append(out, share{name, v})
		}
	}
	rank := func(s share) float64 {
		if s.name == "other" {
			return 0
		}
		return s.value
	}
	slices.SortStableFunc(out, func(a, b share) int { return cmp.Compare(rank(b), rank(a)) })
	return out
}
