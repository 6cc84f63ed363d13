package price

import (
	"math/rand/v2"
	"testing"

	"github.com/planc-dev/planc/passes/search/internal/problems"
)

// Closed forms of memory and time equal the results of the passes' own tables.
func TestClosedForms(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for range draws(60) {
		p := randomProblem(t, r)
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, plan := range problems.PlansOf(p).Uneven(t, r, 20) {
			tables := s.tables(plan)
			want, stage := s.memory(tables)
			m := CandidateOf(plan)
			got, at := s.candidateMemory(m)
			if got != want || at != stage {
				t.Errorf("%v:\nclosed  %+v of stage %d\nlaid out %+v of stage %d", plan.Text(), got, at, want, stage)
			}
			a, b := s.stepOf(m).Simulate(), s.step(tables).Simulate()
			if d := float64(a.Total()/b.Total()) - 1; d > 1e-12 || d < -1e-12 {
				t.Errorf("%v:\nclosed %+v\npasses %+v", plan.Text(), a, b)
			}
		}
	}
}
