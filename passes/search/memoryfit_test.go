package search

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/passes/search/price"
)

// problemLong is Mixtral 8x7B with 16,384 positions on 16 H100, for which memory rules out most plans.
func problemLong(t testing.TB) *Problem {
	cfg := llamaConfig(32, 4096, 32, 8, 14336, 32000, 16384)
	cfg.Family, cfg.Experts, cfg.Choices, cfg.ExpertFFN, cfg.RouteShare = spec.Mixtral, 8, 2, 14336, true
	return problem(cluster(t, "dgx-h100", 2, 0), cfg, 16384, 64, mixed)
}

// Levers that share profiles and speeds report what new searches report.
func TestLeversShare(t *testing.T) {
	onlyBrute(t) // TestSeriesOfMany compares levers too
	p := problemLong(t)
	r := must(t, p)
	f := r.Beyond(47e9, r.Fastest)
	for i, trial := range leverTrials(p) {
		if trial.Name == moeSlack {
			continue
		}
		second, found := new(Series).fastest(&trial.Problem)
		if l := f.Levers[i]; !found || l.Best == nil || *l.Best != second {
			t.Errorf("lever %+v; a search finds %+v, %v", l, second, found)
		}
	}
}

// A problem's best plan is within its own time, which levers use as their limit.
func TestWithinItsOwnTime(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 17))
	found := 0
	for range 12 {
		p := randomProblem(t, r)
		var s Series
		best, ok := s.fastest(p)
		if !ok {
			continue
		}
		found++
		if got, ok, err := s.Within(p, s.time(p, best.Plan)); err != nil || !ok || got != best {
			t.Errorf("%v is not within its own time: %v, %v, %v", best.Plan.Text(), got.Plan.Text(), ok, err)
		}
	}
	if found < 6 {
		t.Errorf("%d problems had a plan", found)
	}
}

// Different questions of one series have the answers of new searches, with a limit and with levers. Devices have
// about the memory that some plan needs, networks are slow or have high latency, and pins leave many plans or few.
func TestSeriesOfMany(t *testing.T) {
	seen, seeds := map[string]int{}, 1
	if isBrute() {
		seeds = 4
	}
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 29))
		model, series, shared := randomProblem(t, r), new(Series), new(price.Memo)
		for range 8 {
			p := *model
			p.Cluster, p.GlobalBatch = randomCluster(t, r), 12
			if p.Validate() != nil || !hasPlan(t, &p) {
				continue
			}
			narrowBy(t, r, &p, 100+r.IntN(200), shared, shapeKeys)
			for range 4 {
				q := p
				q.Cluster, q.GlobalBatch = cloneCluster(p.Cluster), []int{6, 12, 24}[r.IntN(3)]
				if hasPlan(t, &q) {
					tighten(t, r, &q, shared)
					agreeOnOne(t, r, series, &q, shared, seen)
				}
			}
		}
	}
	t.Log(seen)
	if seen["fits true"] < 5*seeds || seen["fits false"] < 5*seeds || seen["levers"] < 6*seeds {
		t.Errorf("seen %v", seen)
	}
}

// freshSeries returns a series that knows profiles of the model, but no times.
func freshSeries(shared *price.Memo) *Series {
	return &Series{memo: *shared}
}

// agreeOnOne compares a question to a series, with a limit or without, and its levers, with new searches.
func agreeOnOne(t *testing.T, r *rand.Rand, series *Series, p *Problem, shared *price.Memo, seen map[string]int) {
	want, fits := freshSeries(shared).fastest(p)
	limit := costmodel.Seconds(math.Inf(1))
	if fits && r.IntN(2) == 0 {
		limit = series.time(p, want.Plan) * costmodel.Seconds(1+r.Float64()/2)
	}
	got, ok, failed := series.Within(p, limit)
	if failed != nil || ok != fits || ok && got != want {
		t.Errorf("within %v the series has %v (%v, %v), a search from nothing %v (%v)", limit, got.Plan.Text(), ok,
			failed, want.Plan.Text(), fits)
	}
	seen["fits "+strconv.FormatBool(ok)]++
	if ok && r.IntN(3) == 0 {
		agreeOnLevers(t, series, p, got, shared, seen)
	}
}

func hasPlan(t *testing.T, p *Problem) bool {
	s, err := newSearcher(p)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.space(p)
	return err == nil
}

// agreeOnLevers compares levers of a series with new searches.
func agreeOnLevers(t *testing.T, r *Series, p *Problem, base Priced, shared *price.Memo, seen map[string]int) {
	t.Helper()
	for _, trial := range leverTrials(p) {
		if trial.Name == moeSlack || trial.Problem.Validate() != nil {
			continue
		}
		want, fits := freshSeries(shared).fastest(&trial.Problem)
		if got := r.lever(&trial, base); (got.Best != nil) != fits || fits && *got.Best != want {
			t.Errorf("lever %s comes to %v, a search from nothing to %v (%v)", trial.Name, got.Best,
				want.Plan.Text(), fits)
		}
		seen["levers"]++
	}
}
