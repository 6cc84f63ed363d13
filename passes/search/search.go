package search

import (
	"math"
	"runtime"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/price"
)

// Counts account for every plan of the space: Space = Infeasible + Bounded + Priced.
type Counts struct {
	Space      int `json:"space"`      // legal plans that the pins allow
	Infeasible int `json:"infeasible"` // plans that do not fit
	// plans not priced, because their lower bound is not below the best step
	Bounded int `json:"bounded"`
	Priced  int `json:"priced"` // plans that fit and were priced
	// plans whose schedule was simulated, including those that turned out not to fit
	Simulated int `json:"simulated"`
}

// Plus returns the sum of the counts of two searches.
func (c Counts) Plus(d Counts) Counts {
	return Counts{c.Space + d.Space, c.Infeasible + d.Infeasible, c.Bounded + d.Bounded, c.Priced + d.Priced,
		c.Simulated + d.Simulated}
}

// Result is the answer of a search.
type Result struct {
	Best Priced // the recommended plan: Robust or Fastest, as [Problem.Prefer] says
	// the plan of least risk among those that predictions cannot tell from the fastest, see [Apart]
	Robust  Priced
	Fastest Priced
	Counts  Counts
	// the best plan for each other value of each choice, the fastest first; those that do not fit come last
	Alternatives []Alternative
	Choices      []Choice

	searcher *searcher // the searcher that found it
}

// searcher runs the searches of one question. It prices plans with its pricer.
type searcher struct {
	*price.Pricer
	problem  *Problem
	dims     Dims
	searched *planSpace // the space that was searched for a [Result]
	// spaces of the result's choices with one pin removed, by the pin's key
	freedSpaces map[string]*planSpace
	// receives the progress of the search for the best plan; nil for other searches
	watch       func(Progress)
	window      float64 // [Apart], except in tests that use small spaces
	maxFamilies int     // [maxFamilies], except in tests
	balancer    stageBalancer
	// memory that is reused
	queue         queue
	memberScratch []member
}

// newSearcher returns the searcher of a problem.
func newSearcher(p *Problem) (*searcher, error) {
	pricer, err := price.New(p)
	if err != nil {
		return nil, err
	}
	return searcherOf(p, pricer), nil
}

// searcherOf returns the searcher of a problem with a pricer.
func searcherOf(p *Problem, pricer *price.Pricer) *searcher {
	s := &searcher{Pricer: pricer, problem: p, dims: DimsOf(p.Model), window: Apart, maxFamilies: maxFamilies,
		freedSpaces: map[string]*planSpace{}}
	s.balancer = stageBalancer{model: p.Model, dims: s.dims}
	return s
}

// Search finds the plan to recommend, and explains it. Of the plans that fit and that predictions cannot tell from
// the fastest, it recommends the one of least risk or, if the problem prefers it, the fastest. It returns an
// [IllegalError] if no plan with the pinned values is legal, a [NoPlan] if none fits, a [TooManyPlans] if the space
// is too large, and a plain error if the cluster cannot run such a job.
//
// The search is exact over its space, and the counts account for all of it. Three choices are solved instead of
// enumerated. recompute_layers is the fewest blocks with which the plan fits, and recompute_every the smallest
// number, because time grows and memory shrinks with either. If recomputed blocks are faster, as can happen under a
// zero-bubble schedule, the fastest count is taken. Groups of blocks (recompute_every above 1) are tried with every
// block recomputed or, on request, with the pinned values of recompute_layers. stage_layers is the split whose
// slowest stage is fastest, without regard to memory. It is exact with one chunk per stage or if all blocks are
// alike; otherwise each block counts as the mean of all. recompute_split is only tried on request.
func Search(p *Problem) (*Result, error) {
	s, err := newSearcher(p)
	if err != nil {
		return nil, err
	}
	s.UseHelpers(runtime.GOMAXPROCS(0) - 1)
	s.watch = p.Watch
	sp, err := s.space(p)
	if err != nil {
		return nil, err
	}
	c, counts, ok := s.choose(sp, nil)
	s.watch = nil
	if !ok {
		return nil, changeFinder{s}.noPlan(sp, counts)
	}
	s.searched = sp
	r := &Result{Best: c.best, Robust: c.robust, Fastest: c.fastest, Counts: counts, searcher: s}
	s.explain(sp, r)
	return r, nil
}

// filter restricts a search to the plans that pass all its functions. A nil function passes everything.
type filter struct {
	limit     costmodel.Seconds // if above 0, plans that take longer are skipped
	family    func(*spaceFamily) bool
	recompute func(string) bool // of the kind of recomputation
	member    func(*member) bool
}

// bestFirst is one best-first search for the fastest plan.
type bestFirst struct {
	s      *searcher
	space  *planSpace
	filter *filter
	// families that are not queued yet, in the order of their bounds
	pending []rankedFamily
	queue   queue
	counts  Counts
	fits    []fittingPlan // plans that fit and were priced
	// members that fit, but whose bound says that they are slower than the fastest
	slower    []*member
	fastest   costmodel.Seconds // step of the fastest plan so far, or the filter's limit
	anyMayFit bool              // bounds say that some plan may fit
	anyOpened bool              // some family was expanded
	steps     int               // iterations, for the progress reports
}

// fittingPlan is a plan that fits, with its position in the space.
type fittingPlan struct {
	candidate price.Candidate
	index     int
	time      costmodel.Seconds
	member    *member
}

// best returns the fastest plan that passes the filter. It prices plans in ascending order of their lower bounds,
// until no bound is below the best time. A family is refined when its cheap bound comes first in the queue, and
// expanded when its own bound does.
func (s *searcher) best(sp *planSpace, k *filter) (best Priced, n Counts, found bool) {
	h := s.searchBestFirst(sp, k)
	first := h.fastestFit()
	h.finish()
	if first == nil {
		return Priced{}, h.counts, false
	}
	return s.Priced(&first.candidate), h.counts, true
}

// found is the fastest plan, the plan of least risk, and which of them is recommended.
type found struct{ best, robust, fastest Priced }

// choose finds the fastest plan, and then the plan of least risk among those that predictions cannot tell from it.
// The counts cover both searches.
func (s *searcher) choose(sp *planSpace, k *filter) (c found, n Counts, ok bool) {
	h := s.searchBestFirst(sp, k)
	first := h.fastestFit()
	if first == nil {
		h.finish()
		return c, h.counts, false
	}
	limit := h.fastest * costmodel.Seconds(1+s.window)
	if p := s.problem; p.MaxStep > 0 {
		limit = max(h.fastest, min(limit, p.MaxStep))
	}
	least := h.robust(limit)
	h.finish()
	c.fastest, c.robust = s.Priced(&first.candidate), s.Priced(&least)
	c.best = c.robust
	if s.problem.Prefer == PreferFastest {
		c.best = c.fastest
	}
	return c, h.counts, true
}

// searchBestFirst prices plans until no bound is below the best time.
func (s *searcher) searchBestFirst(sp *planSpace, k *filter) *bestFirst {
	if k == nil {
		k = &filter{}
	}
	h := &bestFirst{s: s, space: sp, filter: k}
	h.counts.Space = sp.size
	h.queue, h.pending = s.queue[:0], sp.ranked(s.Pricer)
	h.fastest = costmodel.Seconds(math.Inf(1))
	if k.limit > 0 {
		h.fastest = k.limit
	}
	for h.next() {
		h.watch()
		switch e := h.queue.pop(); {
		case e.member != nil:
			h.priceMember(e.member)
		case e.branch != nil:
			h.queueMembers(e.branch)
		case e.family.floor == 0:
			h.boundFamily(e.family)
			h.queueFamily(e.family)
		default:
			h.queueBranches(e.family)
		}
	}
	return h
}

// fastestFit returns the fastest plan, and of those within a tie the first in the space; nil if none fits.
func (h *bestFirst) fastestFit() (first *fittingPlan) {
	for i := range h.fits {
		if f := &h.fits[i]; f.time <= h.fastest*(1+price.Tie) && (first == nil || f.index < first.index) {
			first = f
		}
	}
	return first
}

// finish completes the counts and returns the queue's memory for the next search.
func (h *bestFirst) finish() {
	h.s.StopPrecompile()
	h.counts.Bounded = h.counts.Space - h.counts.Infeasible - h.counts.Priced
	h.s.queue = h.queue
}

// next queues the families whose bound is next, and reports whether anything queued may be as fast as the best plan.
func (h *bestFirst) next() bool {
	limit := h.fastest * (1 + price.Tie)
	for len(h.pending) > 0 && h.pending[0].floor <= limit &&
		(len(h.queue) == 0 || h.pending[0].floor <= h.queue[0].floor) {
		f, floor := h.space.families[h.pending[0].index], h.pending[0].floor
		h.pending = h.pending[1:]
		if h.filter.family == nil || h.filter.family(f) {
			h.queueRefined(f, floor)
			h.watch()
		}
	}
	return len(h.queue) > 0 && h.queue[0].floor <= limit
}

// mayFit reports whether some plan of a family may fit.
func (h *bestFirst) mayFit(f *spaceFamily) bool {
	if h.s.MinBytes(h.space.problem, &f.Family) > h.s.ArenaCapacity() {
		h.counts.Infeasible += f.size
		return false
	}
	h.anyMayFit = true
	return true
}

// queueRefined queues a family by a better bound: by the pipeline bound of its degree class, or by its own bound if
// that is known. Until some family is known to fit, memory is checked first, because perhaps none does.
func (h *bestFirst) queueRefined(f *spaceFamily, ranked costmodel.Seconds) {
	if f.floor == 0 && (h.anyMayFit || h.mayFit(f)) {
		if f.roughFloor <= ranked { // the bound is still the one that ranked it
			f.roughFloor = max(f.roughFloor, h.s.PipelineBound(h.space.problem, f.Class(), &f.Plan))
		}
		if f.roughFloor > ranked {
			h.space.raisedBounds++
			h.queue.push(entry{floor: f.roughFloor, order: f.first, family: f})
			return
		}
		h.boundFamily(f)
	}
	h.queueFamily(f)
}

// queueFamily queues a family by its own bound, if it has one.
func (h *bestFirst) queueFamily(f *spaceFamily) {
	if f.floor > 0 {
		h.queue.push(entry{floor: f.floor, order: f.first, family: f})
	}
}

// boundFamily computes a family's own bound.
func (h *bestFirst) boundFamily(f *spaceFamily) {
	f.floor = max(f.roughFloor, h.s.FamilyBound(&f.Family))
	h.space.raisedBounds++
}

// queueBranches expands a family into its branches and queues those that may fit.
func (h *bestFirst) queueBranches(f *spaceFamily) {
	if !h.mayFit(f) {
		return
	}
	if !h.anyOpened {
		h.precompileRecomputed(f)
	}
	h.anyOpened = true
	for _, b := range h.s.branchesOf(h.space.problem, f) {
		if h.filter.recompute != nil && !h.filter.recompute(b.recompute.Kind) {
			continue
		}
		h.s.boundBranch(h.space.problem, b)
		if b.overBytes > 0 {
			h.counts.Infeasible += b.size
		} else {
			h.queue.push(entry{floor: b.floor, order: b.first, branch: b})
		}
	}
}

// queueMembers expands a branch into its members and queues those that fit.
func (h *bestFirst) queueMembers(b *branch) {
	h.s.expand(h.space.problem, b)
	h.counts.Infeasible += b.unfit
	for i := range b.fitting {
		if m := &b.fitting[i]; h.filter.member == nil || h.filter.member(m) {
			h.queue.push(entry{floor: m.Floor, order: m.index, member: m})
		}
	}
}

// priceMember simulates a member, unless a bound says that it is slower than the best.
func (h *bestFirst) priceMember(m *member) {
	best, ok := h.s.SolveRecompute(&m.Candidate, h.fastest*(1+price.Tie))
	if !ok {
		h.slower = append(h.slower, m)
		return
	}
	time := m.time
	if time == 0 || best.N != m.N {
		time = h.s.Price(&best).Time
	}
	if best.N == m.N { // searches for alternatives often need it again
		m.time = time
	}
	h.counts.Simulated++
	h.counts.Priced++
	h.fastest = min(h.fastest, time)
	h.s.LimitPrecompile(h.fastest * (1 + price.Tie))
	h.fits = append(h.fits, fittingPlan{best, m.index, time, m})
}

// Price predicts the step of one plan. It returns an [IllegalError] with the broken rules if the plan is not legal.
// Pins are ignored.
func Price(p *Problem, plan ir.Plan) (costmodel.Predict, error) {
	s, err := newSearcher(p)
	if err != nil {
		return costmodel.Predict{}, err
	}
	if rs := Legal(plan, s.dims, p.Cluster, p.GlobalBatch); len(rs) > 0 {
		return costmodel.Predict{}, &IllegalError{Plan: plan, Reasons: rs, Pins: p.Pins}
	}
	return s.Priced(price.CandidateOf(plan)).Predict, nil
}

// SearchWithGiven is Search with a given plan, which must have passed [Check]. Alternatives and choices are compared
// with it. best is what the search itself would choose. It returns a NoPlan if the given plan does not fit.
func SearchWithGiven(p *Problem, given ir.Plan) (r *Result, best Priced, err error) {
	s, err := newSearcher(p)
	if err != nil {
		return nil, best, err
	}
	s.watch = p.Watch
	sp, err := s.space(p)
	if err != nil {
		return nil, best, err
	}
	s.searched = sp
	c, counts, _ := s.choose(sp, nil)
	best = c.best
	s.watch = nil
	r = &Result{Best: s.Priced(price.CandidateOf(given)), Robust: c.robust, Fastest: c.fastest, Counts: counts,
		searcher: s}
	if !r.Best.Fits() {
		return nil, best, &NoPlan{Nearest: r.Best, NoFit: noFitOf(r.Best), Counts: Counts{Space: 1, Infeasible: 1,
			Simulated: 1}}
	}
	s.explain(sp, r)
	return r, best, nil
}
