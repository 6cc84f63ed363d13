package calibrate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/zoo"
	"github.com/planc-dev/planc/passes/search"
)

var mixed = ir.Precision{Compute: ir.BF16, Params: ir.BF16, Grads: ir.F32, Reduce: ir.F32, Master: ir.F32,
	Moments: ir.F32}

// runs are plans of some models on nodes of A100s, with the steps that a cluster of these factors would take, give or
// take some noise.
func runs(t *testing.T, nodes []int, truth costmodel.Measured, noise float64) []Observation {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	var out []Observation
	for _, hidden := range []int{1024, 4096} {
		cfg := spec.Config{Family: spec.GPT2, Vocab: 50257, Hidden: hidden, Layers: 8, Heads: 16, KVHeads: 16,
			HeadDim: hidden / 16, FFN: 4 * hidden,
			MaxPositions: 1024, Activation: "gelu_new", NormEps: 1e-5, InitStd: 0.02, Tied: true, AttentionBias: true,
			MLPBias: true}
		m := zoo.Build("m", cfg, zoo.Options{SeqLen: 1024, Batch: 1, Elem: ir.BF16})
		for _, n := range nodes {
			for _, tp := range []int{1, 8, -8} { // -8: over nodes
				order := "tp,dp"
				if tp < 0 {
					tp, order = -tp, "dp,tp"
					if n < 8 {
						continue
					}
				}
				c, err := costmodel.Resolve(costmodel.Ref{Node: "dgx-a100", Nodes: n}, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				p := &search.Problem{Model: m, Cluster: c, GlobalBatch: 64 * n, Precision: mixed,
					Recipe: ir.Recipe{Optimizer: "adamw"}}
				plan := ir.SerialPlan(8, 8, mixed)
				plan.TP, plan.DP = tp, 8*n/tp
				plan.AxisOrder = order
				plan.MicroBatches = p.GlobalBatch / (8 * plan.DP)
				q := *p
				q.Cluster = c.Scaled(truth)
				took, err := search.Price(&q, plan)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, Observation{Name: fmt.Sprintf("%d nodes, tp %d %s, hidden %d", n, tp, order, hidden),
					Problem: p, Plan: plan,
					StepS: float64(took.StepS) * math.Exp(noise*r.NormFloat64())})
			}
		}
	}
	return out
}

// The factors that made the runs are found again within a tenth, to which belief in 1 draws them; those that the runs
// do not depend on stay as they are and are named.
func TestFitFindsFactors(t *testing.T) {
	truth := costmodel.Measured{Matrix: 0.7, Link: 0.5, Network: 0.6}
	r, err := Fit(runs(t, []int{1, 2, 8, 16}, truth, 0))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, f := range r.Factors {
		found[f.Key] = f.Value
	}
	for key, want := range map[string]float64{"matrix": 0.7, "link": 0.5, "network": 0.6} {
		if got := found[key]; math.Abs(got/want-1) > 0.1 {
			t.Errorf("%s is %.3f, want %v of %+v, open %v", key, got, want, r.Factors, r.Open)
		}
	}
	if e := r.MedianError(HeldOut); e > 0.02 {
		t.Errorf("left out, rows are off by %.1f %%", 100*e)
	}
	one, err := Fit(runs(t, []int{1}, truth, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range one.Factors {
		if f.Key == "network" {
			t.Errorf("one node tells of a network: %+v", f)
		}
	}
	if one.Measured.Network != 0 {
		t.Errorf("network %v", one.Measured.Network)
	}
}

// With the measured parts of its step, a single run determines several factors.
func TestFitToPartsOfOneRun(t *testing.T) {
	truth := costmodel.Measured{Matrix: 0.7, Link: 0.5, Memory: 0.8}
	rows := runs(t, []int{1}, truth, 0)
	for i := range rows {
		o := rows[i]
		if o.Plan.TP == 1 {
			continue
		}
		q := *o.Problem
		q.Cluster = q.Cluster.Scaled(truth)
		took, err := search.Price(&q, o.Plan)
		if err != nil {
			t.Fatal(err)
		}
		o.Parts = map[string]float64{}
		for group := range Groups {
			o.Parts[group] = GroupSeconds(took.Time, group)
		}
		r, err := Fit([]Observation{o})
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]float64{"matrix": 0.7, "link": 0.5} {
			if got := *r.Measured.Factor(key); math.Abs(got/want-1) > 0.1 {
				t.Errorf("%s: %s is %v, want %v of %+v", o.Name, key, got, want, r.Factors)
			}
		}
	}
}

// A fit to all, less a step for the row that is left out, predicts that row as a fit to the others does.
func TestLeaveOneOut(t *testing.T) {
	rows := runs(t, []int{1, 4}, costmodel.Measured{Matrix: 0.8, Link: 0.7}, 0.05)
	all, err := Fit(rows)
	if err != nil {
		t.Fatal(err)
	}
	changed := false
	for i, row := range all.Rows {
		others := append(append([]Observation{}, rows[:i]...), rows[i+1:]...)
		f := newFitter(others)
		var keys []string
		for _, k := range all.Factors {
			keys = append(keys, k.Key)
		}
		s, err := f.solve(keys)
		if err != nil {
			t.Fatal(err)
		}
		predict, err := f.price(&rows[i], measured(keys, s.x))
		if err != nil {
			t.Fatal(err)
		}
		if want := float64(predict.StepS); math.Abs(row.Without/want-1) > 0.01 {
			t.Errorf("%s: %.4g without it, a fit to the others says %.4g", row.Name, row.Without, want)
		}
		changed = changed || row.Moved != ""
	}
	if !changed {
		t.Errorf("no row changed anything: %+v", all.Rows)
	}
}

func TestNothingToFit(t *testing.T) {
	if _, err := Fit(nil); err == nil {
		t.Error("a fit to nothing")
	}
}

// A fit that predicts rows which it did not see worse than the catalogue is not kept.
func TestWorseFitIsNotKept(t *testing.T) {
	rows := runs(t, []int{1}, costmodel.Measured{}, 0)
	rows[0].StepS *= 1.9 // one run was slow; the others are as predicted
	rows[1].StepS *= 1.9
	r, err := Fit(rows)
	if err != nil {
		t.Fatal(err)
	}
	before, without := r.MedianError(Before), r.MedianError(HeldOut)
	if !r.Worse || r.Measured != (costmodel.Measured{}) || without <= before || len(r.Factors) == 0 {
		t.Errorf("worse %v: %.3f of rows left out, %.3f before; factors %+v, kept %+v", r.Worse, without, before,
			r.Factors, r.Measured)
	}
	saved, err := Fit(runs(t, []int{1}, costmodel.Measured{Matrix: 0.7}, 0.02))
	if err != nil || saved.Worse || saved.Measured.Matrix == 0 {
		t.Errorf("a fit that helps is not kept: %+v, %v", saved, err)
	}
}

// Rows that no factors explain are not fitted worse than by none.
func TestFitIsNoWorseThanNone(t *testing.T) {
	rows := runs(t, []int{1}, costmodel.Measured{}, 0)
	for i, by := range []float64{2, 1.2, 1.1, 0.4} {
		rows[i].StepS *= by
	}
	f := newFitter(rows)
	none := &solution{}
	if err := f.residuals(none); err != nil {
		t.Fatal(err)
	}
	s, err := f.solve(costmodel.MeasuredKeys)
	if err != nil {
		t.Fatal(err)
	}
	if s.cost() >= none.cost() {
		t.Errorf("%v costs %.0f, no factors %.0f", s.x, s.cost(), none.cost())
	}
}

// A fit to times in the wrong unit ends at the bound of its factors: a search that fails there would return 1.
func TestFitReachesItsBound(t *testing.T) {
	rows := runs(t, []int{1, 2}, costmodel.Measured{}, 0)
	for i := range rows {
		rows[i].StepS *= 1000
	}
	f := newFitter(rows)
	s, err := f.solve([]string{"matrix"})
	if err != nil {
		t.Fatal(err)
	}
	if s.x[0] != -farthest {
		t.Errorf("the logarithm of matrix is %v, want %v", s.x[0], -farthest)
	}
}
