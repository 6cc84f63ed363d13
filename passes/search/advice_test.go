package search

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// Levers and rules report what single searches report, for any number of cores.
func TestBeyond(t *testing.T) {
	p := problem(cluster(t, "dgx-a100", 2, 0), gpt2Config(12, 768, 12, 50257, 1024), 1024, 480, mixed)
	r := must(t, p)
	f := r.Beyond(124e6, r.Fastest)
	old := runtime.GOMAXPROCS(1)
	one := must(t, p).Beyond(124e6, r.Fastest)
	runtime.GOMAXPROCS(old)
	if !reflect.DeepEqual(f, one) {
		t.Errorf("on one core %+v, on all %+v", one, f)
	}
	for _, l := range f.Levers {
		for i, trial := range leverTrials(p) {
			if trial.Name != l.Name {
				continue
			}
			second, found := new(Series).fastest(&leverTrials(p)[i].Problem)
			if !found || l.Best == nil || *l.Best != second {
				t.Errorf("lever %+v; a search finds %+v, %v", l, second, found)
			}
			if l.Speedup < 0 && l.Name != "batch" {
				t.Errorf("more %s is slower: %+v", l.Name, l)
			}
		}
	}
	if len(f.Levers) != len(levers)-1 { // moe_slack is of experts
		t.Errorf("%d levers of %d", len(f.Levers), len(levers))
	}
	checkThumbs(t, p, r, f.Thumbs)
}

// checkThumbs compares rules with searches that have their pins.
func checkThumbs(t *testing.T, p *Problem, r *Result, answers []RuleOfThumb) {
	t.Helper()
	q := &ruleQuestion{p: p, params: 124e6, chosen: r.Best}
	found := map[string]RuleOfThumb{}
	for _, th := range answers {
		found[th.Rule] = th
	}
	asked := 0
	for i := range ruleOfThumbRows {
		rule := &ruleOfThumbRows[i]
		got, exists := found[rule.rule]
		if exists != rule.applies(q) {
			t.Errorf("rule %s: there %v", rule.rule, exists)
		}
		if !exists || rule.pins == nil {
			continue
		}
		for _, pins := range rule.pins(q) {
			asked++
			a, err := WhyNot(p, r.Best, pins)
			if err != nil {
				t.Fatal(err)
			}
			follows := pins.Match(&r.Best.Plan)
			if (got.Verdict == Agrees) != follows ||
				!follows && (got.Best == nil || *got.Best != a || got.SlowerBy != a.SlowerBy) {
				t.Errorf("rule %s: %+v, a search says %+v", rule.rule, got, a)
			}
		}
	}
	if asked < 2 {
		t.Errorf("%d rules were asked about", asked)
	}
}

// A rule that the pins forbid is reported as illegal, and a plan that follows a rule agrees with it.
func TestThumbsOfPinned(t *testing.T) {
	p := problem(cluster(t, "dgx-a100", 1, 0), gpt2Config(12, 768, 12, 50257, 1024), 1024, 480, mixed)
	p.Pins = Pins{"tp": {"4"}}
	r := must(t, p)
	for _, th := range r.Beyond(124e6, r.Fastest).Thumbs {
		if th.Rule == "<500M: DDP" && (th.Verdict != Faster || th.SlowerBy >= 0 || th.Message != "the job pins tp") {
			t.Errorf("%+v", th)
		}
	}
	p.Pins = Pins{"zero": {"0"}, "tp": {"1"}, "pp": {"1"}}
	r = must(t, p)
	for _, th := range r.Beyond(124e6, r.Fastest).Thumbs {
		if th.Rule == "<500M: DDP" && th.Verdict != Agrees {
			t.Errorf("%+v", th)
		}
	}
}

// Roomier finds the plan with more headroom, or none.
func TestRoomier(t *testing.T) {
	p := problem(cluster(t, "dgx-a100", 1, 0), gpt2Config(48, 1600, 25, 50257, 1024), 1024, 64, mixed)
	p.Headroom, p.Prefer = 0, PreferFastest
	full := must(t, p).Best
	used := 1 - float64(full.Predict.MemoryBytes.Total)/float64(p.Cluster.GPU.Memory())
	best, ok := Roomier(p, used+0.05)
	if !ok || float64(best.Predict.MemoryBytes.Total) > (1-used-0.05)*float64(p.Cluster.GPU.Memory()) ||
		best.Predict.StepS < full.Predict.StepS {
		t.Errorf("%v with %+v after %+v", ok, best, full)
	}
	if _, ok := Roomier(p, 0.999); ok {
		t.Error("a plan fits into a thousandth of the memory")
	}
}

// The rule on checkpointing agrees only with figures in its ranges.
func TestCheckpointed(t *testing.T) {
	for _, c := range []struct {
		saved, slower float64
		verdict       Verdict
		message       string
	}{
		{0.75, 0.221, Agrees, "here -75 % for +22.1 %"},
		{0.93, 0.013, Differs, "here -93 % for +1.3 %, which saves more and costs less"},
		{0.91, 0.221, Differs, "here -91 % for +22.1 %, which saves more"},
		{0.69, 0.147, Differs, "here -69 % for +14.7 %, which saves and costs less"},
		{0.75, 0.41, Differs, "here -75 % for +41.0 %, which costs more"},
	} {
		if got := checkpointed(c.saved, c.slower); got.Verdict != c.verdict || got.Message != c.message {
			t.Errorf("%v, %v: %s, %q; want %s, %q", c.saved, c.slower, got.Verdict, got.Message, c.verdict, c.message)
		}
	}
}

// A panic on any core reaches the caller, where it becomes planc's message and exit status.
func TestPanicsInParallelAreTheCallers(t *testing.T) {
	for n := range 5 {
		fault := func() (fault any) {
			defer func() { fault = recover() }()
			inParallel(5, make([]*Series, 2), func(i int, _ *Series) {
				if i == n {
					panic("a promise was broken\nhere")
				}
			})
			return nil
		}()
		if text, ok := fault.(string); !ok || !strings.HasPrefix(text, "a promise was broken\nhere\n") ||
			!strings.Contains(text, "advice_test.go") {
			t.Errorf("panic in %d of 5: %v", n, fault)
		}
	}
}

// While every core has a searcher, none of them uses other cores.
func TestHelpersAreBounded(t *testing.T) {
	p := problem(cluster(t, "dgx-a100", 1, 0), gpt2Config(12, 768, 12, 50257, 1024), 1024, 480, mixed)
	old := runtime.GOMAXPROCS(4)
	defer runtime.GOMAXPROCS(old)
	r := must(t, p)
	before := r.searcher.Helpers()
	end := r.searcher.limitHelpers(0)
	during := r.searcher.Helpers()
	end()
	each, err := new(Series).searcher(p)
	if err != nil {
		t.Fatal(err)
	}
	if after := r.searcher.Helpers(); before != 3 || during != 0 || after != 3 ||
		each.Helpers() != 0 {
		t.Errorf("on 4 cores a search has %d helpers, %d beside others, %d afterwards; a series has %d", before,
			during, after, each.Helpers())
	}
}
