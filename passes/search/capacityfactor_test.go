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

// There is one more round if the fullest expert has more tokens than slots, and none if it cannot.
func TestNextRound(t *testing.T) {
	cfg := llamaConfig(2, 64, 4, 2, 64, 256, 64)
	cfg.Family, cfg.Experts, cfg.Choices, cfg.ExpertFFN = "qwen3_moe", 8, 2, 64
	p := problem(cluster(t, "dgx-h100", 1, 2), cfg, 64, 16, mixed)
	plan := DimsOf(p.Model).SerialPlan(8, p.Precision)
	for _, c := range []struct{ slack, rounds, room float64 }{ // 512 tokens, 128 for each expert, 148 for the fullest
		{1, 2, 2}, {1.125, 2, 2.25}, {1.25, 1, 1.25}, {2, 1, 2}, {4, 1, 0}, // 4: a slot for every token
	} {
		plan.MoESlack = c.slack
		e := ExpertsOf(p, plan)
		if want := 1 + math.Sqrt(2*math.Log(8)*0.75/128); math.Abs(e.Fullest-want) > 1e-9 || e.Rounds != c.rounds ||
			e.Room != c.room {
			t.Errorf("slack %v: %+v, want %v rounds up to %v, the fullest %v", c.slack, e, c.rounds, c.room, want)
		}
	}
}
