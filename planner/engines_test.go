package planner

import (
	"strings"
	"testing"
)

// Each engine's row is the plan that a search under this engine recommends, and the fastest has none before it.
func TestCompareEngines(t *testing.T) {
	q := smallQuestion(t, "planc", 80)
	c, err := CompareEngines(q, checkedEngines)
	if err != nil {
		t.Fatal(err)
	}
	fastest := 0
	for i, row := range c.Engines {
		d, err := Decide(smallQuestion(t, row.Engine, 80), nil)
		if err != nil {
			t.Fatal(err)
		}
		if row.Engine != checkedEngines[i] || row.Plan.Plan != d.Best.Plan || *row.Predict != d.Best.Predict {
			t.Errorf("%s: %v, want %v", row.Engine, row.Plan.Plan, d.Best.Plan)
		}
		if *row.SlowerBy == 0 {
			fastest++
		}
		if *row.SlowerBy < 0 {
			t.Errorf("%s is faster than the fastest", row.Engine)
		}
	}
	if fastest == 0 {
		t.Error("no engine is the fastest")
	}
}

// Pins hold under each engine, and an engine that cannot follow them, or on whose devices nothing fits, says so.
func TestEnginesWithoutAPlan(t *testing.T) {
	c, err := CompareEngines(smallQuestion(t, "planc", 80, "plan.zero=3"), []string{"megatron", "fsdp"})
	if err != nil || c.Engines[0].Plan != nil || c.Engines[1].Plan.Zero != 3 || !strings.HasPrefix(c.Engines[0].Message,
		"zero 3: engine megatron runs zero 0 and 1") {
		t.Errorf("%+v, %v", c.Engines, err)
	}
	c, err = CompareEngines(smallQuestion(t, "planc", 1), []string{"megatron"})
	if err != nil || c.Engines[0].Plan != nil || !strings.HasPrefix(c.Engines[0].Message, "no plan fits: the nearest") {
		t.Errorf("%+v, %v", c.Engines, err)
	}
	if _, err := CompareEngines(smallQuestion(t, "planc", 80), []string{"megatorn"}); err == nil {
		t.Error("an engine that does not exist has a plan")
	}
}

// Refusals are the rules of another engine that a plan breaks.
func TestRefusals(t *testing.T) {
	q := smallQuestion(t, "planc", 80, "plan.zero=3")
	d, err := Decide(q, nil)
	if err != nil {
		t.Fatal(err)
	}
	broken := q.Refusals("megatron", d.Best.Plan)
	if len(broken) == 0 || broken[0].Key != "zero" {
		t.Errorf("%v: %+v", d.Best.Plan, broken)
	}
	if more := q.Refusals("megatron-fsdp", d.Best.Plan); len(more) > 0 && d.Best.Plan.PP == 1 &&
		d.Best.Plan.Recompute == "none" {
		t.Errorf("%v: %+v", d.Best.Plan, more)
	}
	if q.Refusals("planc", d.Best.Plan) != nil || q.Refusals("nothing", d.Best.Plan) != nil {
		t.Error("the job's own engine, or none, refuses a plan")
	}
}
