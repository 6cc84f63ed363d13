package search

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// A series answers as single searches do, whatever was asked before.
func TestSeries(t *testing.T) {
	var s Series
	base := problem(cluster(t, "dgx-h100", 1, 0), llamaConfig(32, 4096, 32, 8, 14336, 128256, 8192), 8192, 64, mixed)
	for _, size := range []struct{ nodes, devices int }{{1, 1}, {1, 4}, {1, 8}, {2, 8}, {3, 8}, {8, 8}, {1, 4}} {
		p := *base
		p.Cluster = cluster(t, "dgx-h100", size.nodes, size.devices)
		want, wantErr := Search(&p)
		got, counts, err := s.Best(&p)
		var no, wantNo *NoPlan
		var illegal, wantIllegal *IllegalError
		switch {
		case errors.As(wantErr, &wantIllegal):
			if !errors.As(err, &illegal) {
				t.Errorf("%v: %v, want %v", size, err, wantErr)
			}
		case errors.As(wantErr, &wantNo):
			if !errors.As(err, &no) || no.Nearest != wantNo.Nearest || no.NoFit != wantNo.NoFit ||
				no.Counts != wantNo.Counts {
				t.Errorf("%v: %v, want %v", size, err, wantErr)
			}
		case err != nil || got != want.Best || counts != want.Counts:
			t.Errorf("%v: %+v %+v %v, want %+v %+v", size, got, counts, err, want.Best, want.Counts)
		}
	}
}

// Within finds the best plan if it takes no longer than the limit, and none otherwise. What it skips takes longer.
func TestWithin(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 5))
	found := 0
	for range 14 {
		p := randomProblem(t, r)
		var s Series
		best, ok := s.fastest(p)
		if !ok {
			continue
		}
		found++
		step := best.Predict.StepS
		if got, ok, err := s.Within(p, step*1.0001); err != nil || !ok || got.Plan != best.Plan {
			t.Errorf("%v takes %v; within a little more there is %v, %v, %v", best.Plan.Text(), step,
				got.Plan.Text(), ok, err)
		}
		if got, ok, err := s.Within(p, step*0.9999); err != nil || ok {
			t.Errorf("%v takes %v; within a little less there is %v, %v", best.Plan.Text(), step, got.Plan.Text(), err)
		}
		checkLeastWork(t, p)
	}
	if found < 7 {
		t.Errorf("%d problems had a plan", found)
	}
}

// checkLeastWork compares the bound of a limit with the tighter bound of each family.
func checkLeastWork(t *testing.T, p *Problem) {
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
		if work, floor := s.WorkBound(f.Class(), &f.Plan), s.FamilyBound(&f.Family); work > floor {
			t.Errorf("%v: its work takes %v, its floor is %v", f.Plan.Text(), work, floor)
		}
	}
}
