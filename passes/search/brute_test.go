package search

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/planc-dev/planc/passes/search/price"
	"github.com/planc-dev/planc/passes/search/space"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// Brute force checks the search: it prices every plan with every recompute count, and checks every bound against each
// price.

// brute is the result of brute force.
type brute struct {
	*searcher
	t     *testing.T
	space *planSpace
	best  ir.Plan
	time  costmodel.Seconds
	fits  int     // plans of the space that fit with some recompute count
	least ir.Plan // plan of least risk in the window
	near  int     // plans in the window
	seen  map[string]int
}

// bruteForce prices a problem's space. Profiles of the model may be shared.
func bruteForce(t *testing.T, p *Problem, shared *price.Memo) *brute {
	t.Helper()
	if shared == nil {
		shared = &price.Memo{}
	}
	pricer, err := shared.Pricer(p)
	if err != nil {
		t.Fatal(err)
	}
	s := searcherOf(p, pricer)
	b := &brute{searcher: s, t: t, seen: map[string]int{}}
	b.space, err = s.space(p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// run prices all plans. Of those within a tie of the fastest, it takes the first.
func (b *brute) run() *brute {
	var plans []ir.Plan
	var times []costmodel.Seconds
	var risks []risk
	b.time = costmodel.Seconds(math.Inf(1))
	for _, f := range b.space.families {
		for _, br := range b.branchesOf(b.problem, f) {
			ms := slices.Collect(b.members(b.problem, br))
			for i := range ms {
				m, fits := &ms[i], false
				for n := br.recompute.MinN; n <= br.recompute.MaxN; n++ {
					q := m.at(n)
					c := b.Price(&q)
					b.hold(m, br, n, &c)
					if c.Memory.Fits() {
						plans, times, fits = append(plans, q.Plan()), append(times, c.Time), true
						plan := q.Plan()
						risks = append(risks, risk{Pressure(c.Memory), simplicity(&plan)})
						b.time = min(b.time, c.Time)
					}
				}
				if fits {
					b.fits++
				}
			}
		}
	}
	for i, time := range times {
		if time <= b.time*(1+price.Tie) {
			b.best = plans[i]
			break
		}
	}
	b.leastRisk(plans, times, risks)
	return b
}

// leastRisk returns the plan of least risk in the window: of equal ones the fastest, and of those within a tie the
// first.
func (b *brute) leastRisk(plans []ir.Plan, times []costmodel.Seconds, risks []risk) {
	limit := b.time * costmodel.Seconds(1+b.window)
	if p := b.problem; p.MaxStep > 0 {
		limit = max(b.time, min(limit, p.MaxStep))
	}
	best := -1
	for i := range plans {
		if times[i] > limit {
			continue
		}
		b.near++
		if best < 0 || risks[i].compare(&risks[best]) < 0 || risks[i] == risks[best] && times[i] < times[best] {
			best = i
		}
	}
	for i := range plans {
		if times[i] <= limit && risks[i] == risks[best] && times[i] <= times[best]*(1+price.Tie) {
			b.least = plans[i]
			break
		}
	}
}

// hold checks the bounds of a plan, and of everything that contains it, against its price. Bounds of time hold for
// recompute counts from the smallest on that the memory bound allows.
func (b *brute) hold(m *member, br *branch, n int, c *price.Price) {
	q := m.at(n)
	f, plan := m.Family, q.Plan()
	time := c.Time
	if time == 0 {
		time = b.StepTime(&q)
	}
	if bound := b.SimulatedBound(&q); bound > time {
		b.t.Errorf("%v takes %v; the simulation with lower bounds takes %v", plan.Text(), time, bound)
	}
	for _, what := range []string{plan.Schedule, "recompute " + plan.Recompute, fmt.Sprint("zero ", plan.Zero),
		fmt.Sprint("pp ", plan.PP), fmt.Sprint("ep ", min(2, plan.EP))} {
		b.seen[what]++
	}
	if c.Memory.Fits() {
		switch {
		case b.MinBytes(b.problem, f) > b.ArenaCapacity(), br.overBytes > 0, m.OverBytes > 0, n < m.N, n < br.n:
			b.t.Errorf("%v fits; its bounds of memory: family %d of %d, branch over %d from %d on, plan over %d "+
				"from %d on", plan.Text(),
				b.MinBytes(b.problem, f), b.ArenaCapacity(), br.overBytes, br.n, m.OverBytes, m.N)
		}
		b.seen["fits"]++
	}
	if n >= m.N && m.Floor > time || n >= br.n && br.floor > time || b.FamilyBound(f) > time ||
		b.WorkBound(f.Class(), &f.Plan) > time ||
		b.PipelineBound(b.problem, f.Class(), &f.Plan) > b.FamilyBound(f) {
		b.t.Errorf("%v takes %v; its bounds of time: arithmetic %v, layers %v, family %v, branch %v, plan %v",
			plan.Text(), time, b.WorkBound(f.Class(), &f.Plan),
			b.PipelineBound(b.problem, f.Class(), &f.Plan), b.FamilyBound(f), br.floor, m.Floor)
	}
}

// at returns the member with a recompute count.
func (m *member) at(n int) price.Candidate {
	p := m.Candidate
	p.N = n
	return p
}

// agrees compares the results of the search and of brute force.
func (b *brute) agrees(c found, n Counts, ok bool) {
	b.t.Helper()
	size := b.space.size
	switch {
	case ok != (b.fits > 0), ok && c.fastest.Plan != b.best:
		b.t.Errorf("the search found %v (%v), brute force %v, of %d plans %d fit", c.fastest.Plan.Text(), ok,
			b.best.Text(), size, b.fits)
	case ok && c.robust.Plan != b.least:
		b.t.Errorf("of least risk the search found %v, brute force %v, of %d plans in the window; the fastest is %v",
			c.robust.Plan.Text(), b.least.Text(), b.near, b.best.Text())
	case n.Space != size, n.Infeasible+n.Bounded+n.Priced != size, n.Priced > b.fits, n.Infeasible > size-b.fits,
		!ok && n.Infeasible != size:
		b.t.Errorf("the search counted %+v, brute force %d plans of which %d fit", n, size, b.fits)
	}
}

// tighten gives devices about as much memory as some plan of the space needs.
func tighten(t *testing.T, r *rand.Rand, p *Problem, shared *price.Memo) {
	b := bruteForce(t, p, shared)
	f := b.space.families[r.IntN(len(b.space.families))]
	br := b.branchesOf(p, f)[0]
	q := slices.Collect(b.members(p, br))[0].at(br.recompute.MinN)
	need := float64(b.Price(&q).Memory.Total)
	p.Cluster.GPU.MemoryGiB = need * (0.3 + r.Float64()) / (1 - p.Headroom) / float64(1<<30)
}

// narrow pins keys of a problem to the values of some plan of its space, until the space is small.
func narrow(t *testing.T, r *rand.Rand, p *Problem, largest int, shared *price.Memo) {
	narrowBy(t, r, p, largest, shared, []string{"pp", "tp", "schedule", "vpp", "micro_batch", "zero", "recompute",
		"axis_order", "cp", "cp_kind", "ep", "etp"})
}

// shapeKeys are the keys that do not restrict which plans a family has.
var shapeKeys = []string{"pp", "tp", "schedule", "vpp", "micro_batch", "axis_order", "cp", "cp_kind", "ep", "etp"}

func narrowBy(t *testing.T, r *rand.Rand, p *Problem, largest int, shared *price.Memo, keys []string) {
	for {
		b := bruteForce(t, p, shared)
		if b.space.size <= largest {
			return
		}
		f := b.space.families[r.IntN(len(b.space.families))]
		key := keys[r.IntN(len(keys))]
		plan := f.Plan
		if shard := p.Shardings(&plan); key == "zero" {
			plan.Zero = shard[r.IntN(len(shard))].Zero
		}
		if as := p.RecomputeChoices(&plan, 1); key == "recompute" {
			plan.Recompute = as[r.IntN(len(as))].Kind
		}
		p.Pins = p.Pins.Merge(Pins{key: {space.KeyValues(plan)[key]}})
	}
}

// Many small problems: on CPU and GPU, on one node and two, with about the memory that some plan needs. PLANC_BRUTE
// is their number; more than a thousand, as in .ci/run, take minutes.
func TestSearchIsBruteForceOfMany(t *testing.T) {
	many := 60
	if n, err := strconv.Atoi(os.Getenv("PLANC_BRUTE")); err == nil {
		many = n
	}
	each := 30 // problems per model
	if many > 500 {
		each = 125
	}
	r := rand.New(rand.NewPCG(11, 12))
	seen := map[string]int{}
	for range many / each {
		model, shared := randomProblem(t, r), new(price.Memo)
		for range each {
			p := *model
			p.Cluster, p.GlobalBatch, p.Pins = randomCluster(t, r), []int{4, 6, 12}[r.IntN(3)], model.Pins
			if p.Validate() != nil {
				continue
			}
			if s, err := newSearcher(&p); err != nil {
				t.Fatal(err)
			} else if _, err := s.space(&p); err != nil {
				seen["no legal plan"]++
				continue
			}
			narrow(t, r, &p, 24, shared)
			tighten(t, r, &p, shared)
			b := bruteForce(t, &p, shared)
			p.MaxStep = costmodel.Seconds([]float64{0, 1e-9, 0.01}[r.IntN(3)])
			b.window = []float64{Apart, 0.1, 0.5}[r.IntN(3)]
			c, n, found := b.choose(b.space, nil)
			b.run().agrees(c, n, found)
			if found && c.robust.Plan != c.fastest.Plan {
				seen["another of less risk"]++
				seen["less memory pressure"] += bit(Pressure(c.robust.Predict.MemoryBytes) <
					Pressure(c.fastest.Predict.MemoryBytes))
				seen["memory pressure left"] += bit(Pressure(c.robust.Predict.MemoryBytes) > 0)
			}
			seen["in the window"] += b.near
			for k, v := range b.seen {
				seen[k] += v
			}
			seen["problems"]++
			seen["plans"] += b.space.size
			seen["bounded"] += n.Bounded
			if !found {
				seen["no plan fits"]++
			}
		}
	}
	t.Log(seen)
	for what, want := range map[string]int{"another of less risk": many / 20, "less memory pressure": many / 60,
		"memory pressure left": many / 60, "problems": 3 * many / 4, "bounded": many, "no plan fits": many / 100,
		"zb-h1": many, "zb-v": many / 2, "interleaved": many / 2, "gpipe": many,
		"zero 1": many, "zero 2": many, "zero 3": many, "recompute full": many, "recompute selective": many,
		"pp 4": many / 2, "ep 2": many / 4} {
		if seen[what] < want {
			t.Errorf("%s: %d of %d problems, %d are wanted", what, seen[what], many, want)
		}
	}
}

// smallProblem draws a problem with a space that is priced quickly.
func smallProblem(t *testing.T, r *rand.Rand) *Problem {
	for {
		p := randomProblem(t, r)
		s, err := newSearcher(p)
		if err != nil {
			t.Fatal(err)
		}
		if sp, err := s.space(p); err == nil && sp.size < 400 {
			return p
		}
	}
}

// The complete answer, with alternatives.
func TestSearchIsBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	bounded, none, other := 0, 0, 0
	for i := range 16 {
		p := smallProblem(t, r)
		p.Cluster.GPU.MemoryGiB = []float64{1, 0.008, 0.005, 0.0025}[i%4]
		b := bruteForce(t, p, nil).run()
		res, err := Search(p)
		var no *NoPlan
		switch {
		case errors.As(err, &no) && !no.Nearest.Fits() && no.NoFit.OverBytes > 0:
			none++
			b.agrees(found{}, no.Counts, false)
		case err != nil:
			t.Errorf("%d plans fit, the search says %v", b.fits, err)
		default:
			b.agrees(found{res.Best, res.Robust, res.Fastest}, res.Counts, true)
			bounded += res.Counts.Bounded
			checkAlternatives(t, p, res, b.Memo())
			other += bit(res.Best.Plan != res.Fastest.Plan)
		}
	}
	if bounded == 0 || none == 0 || other == 0 {
		t.Errorf("%d plans were bounded, %d jobs had no plan, %d had one of less risk than the fastest: the test "+
			"draws too tamely", bounded, none, other)
	}
}

// An alternative is what the search finds with its choice pinned. No alternative beats the chosen plan.
func checkAlternatives(t *testing.T, p *Problem, res *Result, shared *price.Memo) {
	t.Helper()
	for _, c := range res.Choices {
		if c.Free == nil {
			continue
		}
		key := func(p *ir.Plan) string { return space.KeyValues(*p)[c.Name] }
		checkAlternative(t, p, res, c, *c.Free, Pins{c.Name: {key(&c.Free.Plan)}}, shared)
		if c.RestKept == nil {
			if len(c.Broken) == 0 || c.Verdict != Slower && c.Verdict != DoesNot && c.Verdict != Riskier {
				t.Errorf("choice %+v", c)
			}
			continue
		}
		checkAlternative(t, p, res, c, *c.RestKept,
			pinsKeepingSolved(res.Best.Plan, Pins{c.Name: {key(&c.RestKept.Plan)}},
				p.Pins), shared)
		if c.RunnerUp != key(&c.RestKept.Plan) || (c.Verdict == DoesNot) != (c.RestKept.NoFit != nil) ||
			(c.Verdict == Riskier) != (c.RestKept.NoFit == nil && c.RestKept.SlowerBy < 0) || c.Free.NoFit == nil &&
			compareAlternatives(*c.RestKept, *c.Free) < 0 {
			t.Errorf("choice %+v: kept %+v, free %+v", c, c.RestKept, c.Free)
		}
	}
	for i, a := range res.Alternatives {
		faster := a.NoFit == nil && a.SlowerBy < 0
		if a.Plan == res.Best.Plan || faster && !a.Riskier(res.Best) ||
			i > 0 && compareAlternatives(res.Alternatives[i-1], a) > 0 {
			t.Errorf("alternative %d: %+v", i, a)
		}
	}
}

// checkAlternative checks an alternative of a choice against all plans with some pins.
func checkAlternative(t *testing.T, p *Problem, res *Result, c Choice, a Alternative, pins Pins, shared *price.Memo) {
	t.Helper()
	q := *p
	q.Pins = p.Pins.Merge(pins)
	all := bruteForce(t, &q, shared).run()
	want := all.least // the recommendation with the pins: the chosen plan, if it follows them
	if pins.Match(&res.Best.Plan) {
		want = res.Best.Plan
	}
	if fits := a.NoFit == nil; fits != (all.fits > 0) {
		t.Errorf("choice %+v: %d plans fit", c, all.fits)
	} else if fits && (a.Plan != all.best || a.SlowerBy < -Apart) {
		t.Errorf("choice %+v: brute force %v, alternative %+v", c, all.best, a)
	} else if b, err := WhyNot(p, res.Best, pins); err != nil || fits && b.Plan != want {
		t.Errorf("choice %+v: brute force recommends %v, why-not %+v, %v", c, want, b, err)
	} else if second, err := res.WhyNot(pins); err != nil || second.Plan != b.Plan ||
		second.Predict.StepS != b.Predict.StepS || (second.NoFit == nil) != fits {
		t.Errorf("choice %+v: a search of its own finds %+v, the search that was done %+v, %v", c, b, second, err)
	}
}
