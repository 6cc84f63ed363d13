package search

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/costmodel/engines"
)

// `moe_slack` is a lever if planc's own engine has experts and no pin sets it. The lever reports the best of a few
// values, including the default.
func TestSlackIsALever(t *testing.T) {
	cfg := llamaConfig(4, 1024, 16, 8, 512, 32000, 1024)
	cfg.Family, cfg.Experts, cfg.Choices, cfg.ExpertFFN = "qwen3_moe", 8, 2, 2048
	p := problem(cluster(t, "dgx-h100", 1, 0), cfg, 1024, 256, mixed)
	r := must(t, p)
	var trial *Trial
	trials := leverTrials(p)
	for i := range trials {
		if trials[i].Name == moeSlack {
			trial = &trials[i]
		}
	}
	if trial == nil {
		t.Fatal("no lever")
	}
	l := new(Series).lever(trial, r.Best)
	best := r.Best.Predict.StepS
	for _, text := range slackTexts() {
		a, err := WhyNot(p, r.Best, pinsKeepingSolved(r.Best.Plan, Pins{moeSlack: {text}}, p.Pins))
		if err != nil {
			t.Fatal(err)
		}
		if a.NoFit == nil && a.Predict.StepS < best {
			best = a.Predict.StepS
		}
	}
	if l.Best == nil || math.Abs(float64(l.Best.Predict.StepS/best)-1) > rounding || l.Speedup <= 0 ||
		l.Set["plan.moe_slack"] != l.Best.Plan.MoESlack {
		t.Errorf("%+v; one by one the best takes %v", l, best)
	}
	pinned, other := *p, *p
	pinned.Pins = Pins{moeSlack: {"1.5"}}
	other.Engine = engines.EngineOf("megatron")
	for _, q := range []*Problem{&pinned, &other} {
		for _, t2 := range leverTrials(q) {
			if t2.Name == moeSlack {
				t.Errorf("pins %v, engine %v: %+v", q.Pins, q.Engine.Name, t2.Set)
			}
		}
	}
}
