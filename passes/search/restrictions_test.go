package search

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/passes/search/internal/problems"
	"github.com/planc-dev/planc/passes/search/space"

	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/ir"
)

// The restrictions of a search, word for word.
func TestRestricted(t *testing.T) {
	small := gpt2Config(12, 768, 12, 50257, 1024)
	const (
		split  = "stage_layers: all but the split whose slowest stage is fastest, memory aside"
		groups = "recompute_every: above 1 with only some blocks recomputed"
		parts  = "recompute_split: true"
		short  = "cp: where a rank has fewer than 8192 positions"
	)
	for _, x := range []struct {
		devices int
		seq     int
		engine  string
		pins    Pins
		want    []string
	}{
		{8, 1024, "planc", nil, []string{split, groups, parts, short}},
		{8, 1024, "planc", Pins{"pp": {"1"}}, []string{groups, parts, short}},
		{8, 1024, "planc", Pins{"recompute": {"none"}}, []string{split, short}},
		{8, 1024, "planc", Pins{"stage_layers": {"6,6"}, "recompute_every": {"1"}, "recompute_split": {"false"},
			"cp": {"1"}}, nil},
		{8, 1024, "planc", Pins{"tp": {"1"}, "cp_kind": {"none"}}, []string{split, groups}},
		{8, 1024, "planc", Pins{"sp": {"true"}, "recompute": {"selective"}}, []string{split, short}},
		{8, 65536, "planc", nil, []string{split, groups, parts}},
		{8, 1024, "megatron", nil, []string{"stage_layers: all but the even split; if blocks do not divide, all but " +
			"the one whose slowest stage is fastest, memory aside", groups, parts, short}},
		{1, 1024, "planc", nil, []string{groups}},
		{8, 1024, "planc", Pins{"tp": {"1"}, "pp": {"1"}, "cp_kind": {"none", "ring"}}, []string{groups, short}},
		{8, 1024, "planc", Pins{"tp": {"1"}, "pp": {"1"}, "cp_kind": {"ring", "heads"}}, []string{groups}},
		{1, 1024, "planc", Pins{"recompute_every": {"1", "2"}}, []string{groups}},
		{1, 1024, "planc", Pins{"recompute_every": {"2"}, "recompute_layers": {"3"}}, nil},
	} {
		p := problem(cluster(t, "dgx-h100", 1, x.devices), small, x.seq, 64, mixed)
		p.Pins, p.Engine = x.pins, engines.EngineOf(x.engine)
		if got := Restricted(p); !slices.Equal(got, x.want) {
			t.Errorf("%d devices, seq %d, %s, %s: %q, want %q", x.devices, x.seq, x.engine, x.pins, got, x.want)
		}
	}
}

// lacking returns the key that keeps a legal plan out of a space; "" if it is in it.
func (s *searcher) lacking(sp *planSpace, plan *ir.Plan) string {
	key := func(p *ir.Plan) string {
		return fmt.Sprint(p.TP, p.PP, p.CP, p.CPKind, p.SP, p.VPP, p.Schedule, p.MicroBatch, p.EP, p.ETP, p.MoESlack)
	}
	value, other := "", "cp"
	switch {
	case s.dims.Experts == 0:
	case plan.ETP > 1 && plan.ETP < plan.TP && sp.problem.IsFree("etp"):
		other = "etp"
	case plan.MoESlack != space.DefaultMoESlack && sp.problem.IsFree("moe_slack"):
		other = "moe_slack"
	case plan.Splits() && sp.problem.IsFree("schedule"):
		other = "schedule"
	}
	for _, f := range sp.families {
		switch {
		case key(&f.Plan) != key(plan):
			value = max(value, other)
		case f.Plan.StageLayers != plan.StageLayers:
			value = "stage_layers"
		case !slices.ContainsFunc(s.Shardings(sp.problem, plan), func(x space.Sharding) bool {
			return x.Zero == plan.Zero && x.Group == plan.ZeroGroup
		}):
			return "zero_group"
		case !slices.Contains(f.OrderNames, plan.AxisOrder):
			return "axis_order"
		case slices.ContainsFunc(sp.problem.RecomputeChoices(plan, plan.LargestChunk()),
			func(a space.RecomputeChoice) bool {
				return hasChoice(&a, plan)
			}):
			return ""
		case plan.RecomputeSplit:
			return "recompute_split"
		default:
			return "recompute_every"
		}
	}
	return value
}

// hasChoice reports whether a plan recomputes as the choice says.
func hasChoice(a *space.RecomputeChoice, p *ir.Plan) bool {
	if a.Kind != p.Recompute || a.Grouped != (p.RecomputeEvery > 1) || a.Split != p.RecomputeSplit {
		return false
	}
	return a.Kind == "none" || a.Grouped && p.RecomputeLayers == a.Layers && p.RecomputeEvery >= a.MinN &&
		p.RecomputeEvery <= a.MaxN || !a.Grouped && p.RecomputeLayers >= a.MinN && p.RecomputeLayers <= a.MaxN
}

// No legal plan is left out except by a named restriction.
func TestWhatIsLeftOutIsNamed(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 6))
	seen := map[string]int{}
	for range 40 {
		p := randomProblem(t, r)
		p.Pins = nil
		s, err := newSearcher(p)
		if err != nil {
			t.Fatal(err)
		}
		plans := problems.PlansOf(p)
		p.Pins = drawPins(t, r, plans)
		sp, err := s.space(p)
		if err != nil {
			continue
		}
		named := strings.Join(Restricted(p), "; ")
		for range 4000 {
			plan := plans.Any(r)
			if !followsPins(p.Pins, &plan) || len(Legal(plan, s.dims, p.Cluster, p.GlobalBatch)) > 0 {
				continue
			}
			key := s.lacking(sp, &plan)
			seen[key]++
			for k := range p.Pins {
				seen[k+" pinned"]++
			}
			if key != "" && !strings.Contains(named, key) {
				t.Errorf("%v is not tried for its %s, with %s; what is named: %s", plan.Text(), key, p.Pins, named)
			}
		}
	}
	t.Log(seen)
	for _, key := range []string{"", "cp", "etp", "moe_slack", "schedule", "stage_layers", "recompute_split",
		"recompute_every"} {
		if seen[key] == 0 {
			t.Errorf("no plan was drawn that is out for its %q", key)
		}
	}
	for _, key := range drawnKeys {
		if seen[key+" pinned"] == 0 {
			t.Errorf("no plan was drawn that follows a pin of %s", key)
		}
	}
}

// drawnKeys are the keys that drawPins may pin: those that decide what a search leaves out, and some others.
var drawnKeys = []string{"tp", "pp", "cp", "cp_kind", "sp", "schedule", "zero", "etp", "moe_slack", "stage_layers",
	"recompute", "recompute_layers", "recompute_every", "recompute_split"}

// drawPins pins up to three keys to the value of one legal plan, or to the values of two.
func drawPins(t *testing.T, r *rand.Rand, plans *problems.Plans) Pins {
	pins := Pins{}
	for n := r.IntN(4); len(pins) < n; {
		key := drawnKeys[r.IntN(len(drawnKeys))]
		for range 1 + r.IntN(2) {
			plan := plans.Legal(t, r)
			for !followsPins(pins.Without(key), &plan) {
				plan = plans.Legal(t, r)
			}
			if v := space.KeyValues(plan)[key]; !slices.Contains(pins[key], v) &&
				(key != "stage_layers" || len(pins[key]) == 0) {
				pins[key] = append(pins[key], v)
			}
		}
	}
	return pins
}

// followsPins reports whether a plan has the values of all pins.
func followsPins(p Pins, plan *ir.Plan) bool {
	kv := space.KeyValues(*plan)
	for key := range p {
		if !p.Allows(key, kv[key]) {
			return false
		}
	}
	return true
}
