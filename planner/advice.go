package planner

import (
	"fmt"
	"math"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/passes/search"
	"github.com/planc-dev/planc/planner/quantity"
)

// Advice is one suggestion next to the chosen plan. [Document.Advice] returns all of a document in this one type; in
// JSON each kind has its own key.
type Advice struct {
	Kind     AdviceKind
	Set      map[string]any // the fields that take the suggestion; nil if there is nothing to set
	Plan     *Plan          // nil if no plan is meant, or if none fits
	SlowerBy *float64       // fraction of the chosen plan's step; nil if it was not priced
	Message  string
}

// AdviceKind says what a suggestion is about.
type AdviceKind string

const (
	// AdviceFastest is the fastest plan, if a less risky one is recommended.
	AdviceFastest AdviceKind = "fastest"
	// AdviceSimpler is the least risky plan, if the job prefers the fastest one.
	AdviceSimpler AdviceKind = "simpler"
	// AdviceFaster is a near question, on fewer nodes or with a near batch, that trains notably faster.
	AdviceFaster AdviceKind = "faster"
	// AdviceTight is the best plan with more memory free, if the chosen one may not fit after all.
	AdviceTight AdviceKind = "tight"
	// AdviceRule is what following a rule of thumb comes to.
	AdviceRule AdviceKind = "rule"
)

// Preferences are the plans that other preferences of the job would give.
type Preferences struct {
	Fastest *OtherPlan `json:"fastest,omitempty"` // present if a less risky plan is recommended
	// present if the job prefers the fastest, and another has less risk
	Simpler *OtherPlan    `json:"simpler,omitempty"`
	Faster  *NearQuestion `json:"faster,omitempty"` // present if fewer nodes or a near batch are notably faster
}

// OtherPlan is the plan that would be recommended if the job preferred otherwise, and the fields that say so.
type OtherPlan struct {
	Set      map[string]any    `json:"set"`
	Plan     Plan              `json:"plan"`
	Predict  costmodel.Predict `json:"predict"`
	SlowerBy float64           `json:"slower_by"` // fraction of the chosen plan's step
}

// preferences returns the fastest plan if it is not the recommended one, or, if the job prefers the fastest, the plan
// of less risk.
func preferences(d *Decision) (out Preferences) {
	a, prefer, ok := d.Other()
	if !ok {
		return out
	}
	other := &OtherPlan{Set: map[string]any{"objective.prefer": prefer}, Plan: Plan{a.Plan}, Predict: a.Predict,
		SlowerBy: a.SlowerBy}
	if prefer == search.PreferFastest {
		out.Fastest = other
	} else {
		out.Simpler = other
	}
	return out
}

// NearQuestion is a question near the job's, on fewer nodes or with a near batch, whose best plan trains on notably
// more tokens per second.
type NearQuestion struct {
	Set     map[string]any    `json:"set"`
	Speedup float64           `json:"speedup"` // fraction of tokens per second
	Plan    Plan              `json:"plan"`
	Predict costmodel.Predict `json:"predict"`
	what    string            // in words
}

// FindFaster adds the near question that is notably faster to the document, if there is one. It tries only questions
// that take little time to answer.
func (d *Document) FindFaster() {
	if !d.Fits {
		return
	}
	l, ok := d.decision.Near(d.decision.Fastest)
	if !ok {
		return
	}
	d.Faster = &NearQuestion{Set: l.Set, Speedup: l.Speedup, Plan: Plan{l.Best.Plan}, Predict: l.Best.Predict,
		what: nearWords(l)}
}

// nearWords returns a near question in words: "batch 96", "3 nodes".
func nearWords(l search.Lever) string {
	if n, ok := l.Set["cluster.nodes"].(int); ok {
		if n == 1 {
			return "1 node"
		}
		return fmt.Sprintf("%d nodes", n)
	}
	return fmt.Sprintf("batch %v", l.Set["train.global_batch"])
}

// sureFit is the probability to fit below which a plan is called tight: two standard deviations.
const sureFit = 0.975

// TightFit is the best plan with more memory free, for a chosen plan that may not fit after all.
type TightFit struct {
	FitProbability float64 `json:"fit_probability"` // of the chosen plan
	MarginBytes    int64   `json:"margin_bytes"`    // by which predictions of such a plan's memory may be off
	Headroom       float64 `json:"headroom"`        // fraction; objective.headroom that keeps the margin free
	// Plan fits with a probability of 0.975 or more; null if none does.
	Plan     *Plan              `json:"plan"`
	Predict  *costmodel.Predict `json:"predict"`
	SlowerBy *float64           `json:"slower_by"` // fraction of the chosen plan's step
}

// FindTightFit adds the best plan with more memory free to the document, if the chosen plan's memory and the margin of
// its prediction do not both fit into a device.
func (d *Document) FindTightFit() {
	p, q := d.decision.Best.Predict, d.decision.Question
	if !d.Fits || p.FitProbability >= sureFit {
		return
	}
	device := q.Hardware.GPU.Memory()
	limit := mostSureMemory(engine(q), p.MemoryBytes, device)
	headroom := math.Ceil(1000*(1-float64(limit)/float64(device))) / 1000
	d.TightFit = &TightFit{FitProbability: p.FitProbability, MarginBytes: int64(device) - limit, Headroom: headroom}
	best, ok := search.Roomier(q.Problem(), headroom)
	if !ok {
		return
	}
	slower := costmodel.SixDigits(float64(best.Predict.StepS/p.StepS) - 1)
	d.TightFit.Plan, d.TightFit.Predict, d.TightFit.SlowerBy = &Plan{best.Plan}, &best.Predict, &slower
}

// mostSureMemory returns the most bytes that fit into a device with the probability sureFit, with parts in the
// proportions of m. The uncertainty depends on the engine; with another engine's, the headroom that is asked for could
// be less than what the probability lacks.
func mostSureMemory(e *engines.Engine, m costmodel.Memory, device costmodel.Bytes) int64 {
	low, high := int64(0), int64(device)
	for high-low > 1<<20 {
		middle := (low + high) / 2
		m.Total = middle
		if e.FitProbability(m, device) >= sureFit {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// Rule is a rule of thumb, and what following it comes to.
type Rule struct {
	Rule     string   `json:"rule"`
	Verdict  string   `json:"verdict"`
	SlowerBy *float64 `json:"slower_by"` // fraction of the chosen plan's step; null if it was not priced
	Message  string   `json:"message"`
	// the best that follows the rule; null if that is the chosen plan, or if there is none
	Plan *Plan `json:"plan"`

	DescribesPlan bool `json:"-"` // Message says how Plan differs from the chosen one
}

// rule returns the search's rule of thumb as a document's.
func (d *Document) rule(t *search.RuleOfThumb) Rule {
	out := Rule{Rule: t.Rule, Verdict: string(t.Verdict), Message: t.Message}
	switch t.Verdict {
	case search.Slower, search.Riskier, search.Faster, search.Differs, search.Agrees:
		out.SlowerBy = &t.SlowerBy
	}
	if t.Best == nil {
		return out
	}
	out.Plan = &Plan{t.Best.Plan}
	if out.Message == "" {
		a := d.alternative(*t.Best)
		out.Message = d.Label(a) + ": " + d.mainReason(a)
		out.DescribesPlan = true
	}
	return out
}

// Advice returns all suggestions of the document: the plan of another preference, a near question, a plan with more
// memory free, and rules of thumb if the document was explained.
func (d *Document) Advice() (out []Advice) {
	for _, p := range []struct {
		kind  AdviceKind
		other *OtherPlan
	}{{AdviceFastest, d.Fastest}, {AdviceSimpler, d.Simpler}} {
		if o := p.other; o != nil {
			out = append(out, Advice{Kind: p.kind, Set: o.Set, Plan: &o.Plan, SlowerBy: &o.SlowerBy,
				Message: d.otherPlanMessage(o)})
		}
	}
	if f := d.Faster; f != nil {
		out = append(out, Advice{Kind: AdviceFaster, Set: f.Set, Plan: &f.Plan, Message: f.message()})
	}
	if t := d.TightFit; t != nil {
		out = append(out, Advice{Kind: AdviceTight, Set: map[string]any{"objective.headroom": t.Headroom}, Plan: t.Plan,
			SlowerBy: t.SlowerBy, Message: d.tightMessage()})
	}
	if d.Explanation == nil {
		return out
	}
	for i := range d.Rules {
		r := &d.Rules[i]
		out = append(out, Advice{Kind: AdviceRule, Plan: r.Plan, SlowerBy: r.SlowerBy,
			Message: r.Rule + ": " + r.Message})
	}
	return out
}

// otherPlanMessage returns how the plan of another preference differs, what it costs, and how to get it.
func (d *Document) otherPlanMessage(o *OtherPlan) string {
	return fmt.Sprintf("%s: %s, %s; --set objective.prefer=%v", d.Label(Alternative{Plan: o.Plan}),
		quantity.Signed(o.SlowerBy), usedMemory(o.Predict.MemoryBytes), o.Set["objective.prefer"])
}

// message returns the near question, what it gains, and how to ask it.
func (n *NearQuestion) message() string {
	for key, value := range n.Set { // the only one
		return fmt.Sprintf("%s: %.2f × the tokens a second, %s a step; --set %s=%v", n.what, 1+n.Speedup,
			quantity.Seconds(float64(n.Predict.StepS)), key, value)
	}
	return ""
}

// tightMessage returns how certain the fit is, and what the next plan with enough headroom costs.
func (d *Document) tightMessage() string {
	t, q := d.TightFit, d.decision.Question
	device := "GPU"
	if q.Hardware.IsCPU() {
		device = "device"
	}
	s := fmt.Sprintf("p %.2f to fit into the %s of a %s: memory may be off by %s.", t.FitProbability,
		quantity.Bytes(int64(q.Hardware.GPU.Memory())), device, quantity.Bytes(t.MarginBytes))
	if d.FitAssumed {
		s = strings.TrimSuffix(s, ".") + ", as assumed."
	}
	if t.Plan == nil {
		return s + fmt.Sprintf(" No plan fits with objective.headroom %v.", t.Headroom)
	}
	return s + fmt.Sprintf(" With --set objective.headroom=%v the best is %s: %s, %s.", t.Headroom,
		Differences(t.Plan.Plan, d.Plan.Plan), quantity.Signed(*t.SlowerBy),
		quantity.Bytes(t.Predict.MemoryBytes.Total))
}
