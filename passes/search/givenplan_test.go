package search

import (
	"errors"
	"strings"
	"testing"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/zoo"
)

func givenProblem(t *testing.T, node string) *Problem {
	c := llamaConfig(2, 64, 8, 4, 128, 512, 64)
	return &Problem{Model: zoo.Build("m", c, zoo.Options{SeqLen: 64, Batch: 1, Elem: ir.F32}),
		Cluster: cluster(t, node, 1, 0), GlobalBatch: 16,
		Precision: ir.FullPrecision(ir.F32), Recipe: ir.Recipe{Optimizer: "adamw"}, Headroom: 0.1, Pins: Pins{}}
}

// allPlans returns the plans of a problem's space.
func allPlans(t testing.TB, p *Problem) (out []ir.Plan) {
	t.Helper()
	s, err := newSearcher(p)
	if err != nil {
		t.Fatal(err)
	}
	sp, err := s.space(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range sp.families {
		for _, b := range s.branchesOf(p, f) {
			for m := range s.members(p, b) {
				out = append(out, m.Plan())
			}
		}
	}
	return out
}

// Every plan of the space passes, and every manual change of one key is reported by its key.
func TestCheck(t *testing.T) {
	p := givenProblem(t, "dgx-h100")
	plans := allPlans(t, p)
	for _, plan := range plans {
		if rs := Check(p, plan); len(rs) > 0 {
			t.Errorf("%v: %v", plan, rs)
		}
	}
	second := plans[0]
	second.Recompute, second.RecomputeLayers = "full", 2
	if rs := Check(p, second); len(rs) > 0 {
		t.Errorf("%v: %v", second, rs)
	}
	for key, value := range map[string]string{"dp": "3", "tp": "3", "zero_group": "3", "micro_batches": "5",
		"schedule": "gpipe", "recompute_layers": "1", "recompute_every": "2", "recompute_split": "true",
		"stage_layers": "1,1", "axis_order": "dp,tp", "precision": "f64,f64,f64,f64,f64,f64", "sp": "true",
		"offload": "params:cpu", "pp": "2"} {
		plan := plans[0]
		if err := plan.SetKey(key, value); err != nil {
			t.Fatal(err)
		}
		rs := Check(p, plan)
		if len(rs) == 0 || key != "dp" && key != "tp" && rs[0].Key != key && key != "micro_batches" && key != "pp" {
			t.Errorf("%s %s: %v", key, value, rs)
		}
	}
	p.Pins = Pins{"tp": {"2"}}
	if rs := Check(p, plans[0]); len(rs) != 1 || !strings.Contains(rs[0].Message, "plan.tp does not allow") {
		t.Errorf("%v: %v", plans[0], rs)
	}
}

// With the best plan given, the result equals that of Search. With another one given, alternatives are compared with
// that one.
func TestSearchWithGiven(t *testing.T) {
	p := givenProblem(t, "dgx-h100")
	found, err := Search(p)
	if err != nil {
		t.Fatal(err)
	}
	same, best, err := SearchWithGiven(p, found.Best.Plan)
	if err != nil || best != found.Best || same.Best != found.Best || same.Counts != found.Counts ||
		len(same.Alternatives) != len(found.Alternatives) {
		t.Errorf("%+v, best %v, %v; want %+v", same, best, err, found)
	}
	given := found.Alternatives[0].Plan
	for _, a := range found.Alternatives {
		if a.NoFit == nil && a.SlowerBy > 0 {
			given = a.Plan
		}
	}
	other, best, err := SearchWithGiven(p, given)
	if err != nil || best != found.Best || other.Best.Plan != given {
		t.Fatalf("%+v, best %v, %v", other, best, err)
	}
	faster := false
	for _, a := range other.Alternatives {
		faster = faster || a.SlowerBy < 0
	}
	locked := false
	for _, c := range other.Choices {
		locked = locked || c.Free != nil && c.Free.NoFit == nil && c.Free.SlowerBy < 0 && !c.Pinned
	}
	if !faster || !locked {
		t.Errorf("beside %v: %+v", given, other)
	}
}

func TestSearchWithGivenDoesNotFit(t *testing.T) {
	p := givenProblem(t, "t4")
	plans := allPlans(t, p)
	p.Cluster.GPU.MemoryGiB = 0.1
	var unfit *NoPlan
	if _, _, err := SearchWithGiven(p, plans[0]); !errors.As(err, &unfit) || unfit.NoFit.OverBytes <= 0 {
		t.Errorf("%v", err)
	}
}
