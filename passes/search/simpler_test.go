package search

import (
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// checkSimpler holds the simpler plan against brute force with its key pinned, and against all alternatives. It returns how many
// there are.
func checkSimpler(t *testing.T, p *Problem, res *Result, shared *caches) int {
	t.Helper()
	s, ok := res.Simpler()
	for _, a := range res.Alternatives {
		near := a.NoFit == nil && a.Predict.StepS <= res.Best.Predict.StepS*(1+Alike)
		if near && a.key != "axis_order" && nowhereMore(&a.Plan, &res.Best.Plan) && (!ok || a.Plan != s.Plan && nowhereMore(&a.Plan, &s.Plan)) {
			t.Errorf("%v is simpler than %v; named is %v (%v)", a.Plan.Text(), res.Best.Plan.Text(), s.Plan.Text(), ok)
		}
	}
	if !ok {
		return 0
	}
	q := *p
	q.Pins = p.Pins.With(Pins{s.Key: {s.Value}})
	if all := bruteForce(t, &q, shared).run(); all.best != s.Plan || s.SlowerBy > Alike || s.NoFit != nil || !nowhereMore(&s.Plan, &res.Best.Plan) {
		t.Errorf("simpler than %v is said to be %+v; with %s %s brute force finds %v", res.Best.Plan.Text(), s, s.Key, s.Value, all.best.Text())
	}
	return 1
}

// nowhereMore is what simpler means, key by key.
func nowhereMore(a, b *ir.Plan) bool {
	again := func(p *ir.Plan) bool { return p.Recompute != "none" }
	grouped := func(p *ir.Plan) bool { return p.Zero > 0 && p.ZeroGroup < p.DP*p.CP }
	noMore := a.PP <= b.PP && a.VPP <= b.VPP && a.TP <= b.TP && a.CP <= b.CP && a.EP <= b.EP && a.ETP <= b.ETP && a.Zero <= b.Zero &&
		(!a.SP || b.SP) && (!again(a) || again(b)) && (!grouped(a) || grouped(b)) && (!a.Splits() || b.Splits())
	same := a.PP == b.PP && a.VPP == b.VPP && a.TP == b.TP && a.CP == b.CP && a.EP == b.EP && a.ETP == b.ETP && a.Zero == b.Zero &&
		a.SP == b.SP && again(a) == again(b) && grouped(a) == grouped(b) && a.Splits() == b.Splits()
	return noMore && !same
}

func TestSimpler(t *testing.T) {
	plan := ir.Plan{DP: 8, TP: 1, PP: 1, CP: 1, EP: 1, ETP: 1, VPP: 1, Zero: 3, ZeroGroup: 8, Recompute: "none"}
	zero := func(z int) ir.Plan { p := plan; p.Zero = z; return p }
	split := plan
	split.TP, split.DP, split.Zero, split.ZeroGroup = 2, 4, 0, 1
	better := func(p ir.Plan, slower float64) Alternative {
		return Alternative{Plan: p, Predict: costmodel.Predict{StepS: costmodel.Seconds(1 + slower)}, SlowerBy: slower, key: "zero"}
	}
	ordered := better(zero(0), 0.001)
	ordered.key = "axis_order"
	unfit := better(zero(0), 0)
	unfit.NoFit = &NoFit{}
	for _, c := range []struct {
		name         string
		alternatives []Alternative
		want         string // zero's value, "" for none
	}{
		{"nothing else", nil, ""},
		{"the simplest, though others are faster", []Alternative{better(zero(2), 0.002), better(zero(1), 0.003), better(zero(0), 0.007)}, "0"},
		{"what is slower than that is not as good", []Alternative{better(zero(1), 0.003), better(zero(0), 0.02)}, "1"},
		{"what does not fit is none", []Alternative{unfit}, ""},
		{"an order of the axes, pinned, need not lead to it", []Alternative{ordered, better(zero(1), 0.003)}, "1"},
		{"less of one part and more of another is not simpler", []Alternative{better(split, 0.001)}, ""},
	} {
		r := Result{Best: Priced{Plan: plan, Predict: costmodel.Predict{StepS: 1}}, Alternatives: c.alternatives}
		s, ok := r.Simpler()
		if ok != (c.want != "") || s.Value != c.want {
			t.Errorf("%s: zero %q (%v), not %q", c.name, s.Value, ok, c.want)
		}
	}
}
