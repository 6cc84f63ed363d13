package search

import (
	"maps"
	"math"
	"runtime"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// tie is the relative difference below which two step times are equal.
const tie = 1e-9

// Priced is a plan with its prediction.
type Priced struct {
	Plan    ir.Plan
	Predict costmodel.Predict
	Stage   int // the fullest, which its memory is of
}

// Fits says whether the plan fits into the devices.
func (p Priced) Fits() bool { return p.Predict.MemoryBytes.Fits() }

// Counts account for the space: Space = Infeasible + Bounded + Priced.
type Counts struct {
	Space      int `json:"space"`      // legal plans that the pins allow
	Infeasible int `json:"infeasible"` // do not fit
	Bounded    int `json:"bounded"`    // not priced: their bound is not below the best
	Priced     int `json:"priced"`     // fit and were priced
	Simulated  int `json:"simulated"`  // whose schedule was simulated, those that turned out not to fit included
}

// Result is the answer.
type Result struct {
	Best    Priced // recommended: as [Problem.Prefer] says, Robust or Fastest
	Robust  Priced // of least risk among those that predictions do not tell from the fastest, see [Apart]
	Fastest Priced
	Counts  Counts
	// the best plan for each other value of each choice, the fastest first, then those that do not fit
	Alternatives []Alternative
	Choices      []Choice

	searcher *searcher // that found it
}

// caches hold what questions about one model, precision and kind of device share.
type caches struct {
	profiles       map[profileKey]*profile
	bases          map[profileKey]*baseProfile
	inFlight       map[scheduleKey][]int
	stale          map[profileKey]bool // profiles whose engine's constants have moved
	pipelineSplits map[pipelineSplitKey]*pipelineSplit
	stateLayouts   map[stateLayoutKey]*stateLayout

	timetables map[scheduleKey]*ir.Timetable
	works      map[costmodel.Device]map[computeKey][][3]computeTime
	memoryFits map[memoryFitKey]*memoryFit
}

func newCaches() *caches {
	return &caches{profiles: map[profileKey]*profile{}, bases: map[profileKey]*baseProfile{}, inFlight: map[scheduleKey][]int{},
		pipelineSplits: map[pipelineSplitKey]*pipelineSplit{}, stateLayouts: map[stateLayoutKey]*stateLayout{}, timetables: map[scheduleKey]*ir.Timetable{},
		works: map[costmodel.Device]map[computeKey][][3]computeTime{}, memoryFits: map[memoryFitKey]*memoryFit{}}
}

// copyFits are caches of their own that begin with what these hold, which nobody changes any more.
func (c *caches) clone() *caches {
	own := &caches{profiles: maps.Clone(c.profiles), bases: map[profileKey]*baseProfile{}, inFlight: maps.Clone(c.inFlight),
		pipelineSplits: maps.Clone(c.pipelineSplits),
		stateLayouts:   maps.Clone(c.stateLayouts), timetables: maps.Clone(c.timetables), memoryFits: copyFits(c.memoryFits),
		works: map[costmodel.Device]map[computeKey][][3]computeTime{}}
	for d, w := range c.works {
		own.works[d] = maps.Clone(w)
	}
	for k, b := range c.bases {
		own.bases[k] = b.clone()
	}
	return own
}

// clone is a base with room of its own for what is found out of it.
func (b *baseProfile) clone() *baseProfile {
	own := *b
	own.byMicro, own.workByDevice = maps.Clone(b.byMicro), maps.Clone(b.workByDevice)
	return &own
}

// searcher holds what one question's searches share.
type searcher struct {
	*caches
	*clusterCosts
	precompiler basePrecompiler
	problem     *Problem
	searched    *planSpace            // that was searched for a [Result]
	freedSpaces map[string]*planSpace // those of the result's choices where pins give one up
	// is told how far the search for the best plan is; nil: nobody, or what is searched for is another
	watch         func(Progress)
	dims          Dims
	device        costmodel.Device
	modelFlops    float64
	formula       string
	arenaCapacity int     // bytes of a device for the arena
	window        float64 // [Apart], but for tests that draw from small spaces
	maxFamilies   int     // [maxFamilies], except in tests
	usableBytes   int64   // bytes of a device for all that a plan needs, as [costmodel.Memory] counts its capacity
	overlap       [2]bool // data-parallel collectives run beside compute: with ZeRO 0, and above
	exposedTP     float64 // part of tensor parallel collectives that compute waits for

	cpu     bool
	moments int // of a parameter, that the optimizer keeps

	zeroTimeCache  map[zeroTimeKey][]zeroTime
	deviceWorks    map[computeKey][][3]computeTime // of works, those of the device
	shardingCache  map[shardingsKey][]sharding
	orderCache     map[ordersKey][]string
	recomputeCache map[recomputesKey][]recomputeChoice
	stateMemories  map[stateMemoryKey][]stateMemory
	postPassCache  map[postPassKey][]postPassBound
	prices         map[priceKey]*price
	pipelineEnds   map[simulatedBoundKey]costmodel.Seconds

	bucketPrices map[bucketKey]*bucketPrice

	balancer          stageBalancer
	activationScratch activationMemory // this and what follows: room for what is written anew for each plan
	costScratch       []layerCost
	stageScratch      []stageBuffers
	countScratch      []kindCount
	triedScratch      []triedCount
	boundScratch      []chunkBound
	queue             queue
}

func newSearcher(p *Problem) (*searcher, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	dev, _ := p.Cluster.DeviceOf(p.engine(), p.Computes())
	empty := p.Cluster.MemoryOf(func(string) int { return 0 }, p.Cluster.Devices(), p.Headroom)
	s := &searcher{caches: newCaches(), clusterCosts: newClusterCosts(p, dev), problem: p, dims: DimsOf(p.Model), device: dev,
		modelFlops: modelFlops(p.Model), formula: flopsFormula(p.Model),
		arenaCapacity: int(empty.Capacity - empty.Total), usableBytes: empty.Capacity, window: Apart, maxFamilies: maxFamilies,
		zeroTimeCache: map[zeroTimeKey][]zeroTime{}, shardingCache: map[shardingsKey][]sharding{}, orderCache: map[ordersKey][]string{},
		recomputeCache: map[recomputesKey][]recomputeChoice{}, stateMemories: map[stateMemoryKey][]stateMemory{}, postPassCache: map[postPassKey][]postPassBound{},
		prices: map[priceKey]*price{}, pipelineEnds: map[simulatedBoundKey]costmodel.Seconds{},
		bucketPrices: map[bucketKey]*bucketPrice{}, freedSpaces: map[string]*planSpace{}}
	s.exposedTP = p.engine().ExposedTP(p.Cluster)
	s.overlap, s.cpu, s.moments = [2]bool{s.overlaps(0), s.overlaps(1)}, p.Cluster.IsCPU(), p.Recipe.Moments()
	return s, nil
}

// Search finds the plan to recommend, and what else there is to say: of the plans that fit and that predictions do not
// tell from the fastest, the one of least risk, or, if the problem prefers it, the fastest. It fails with an
// [IllegalError] if no plan with the pinned values is legal, with a [NoPlan] if none fits, with a [TooManyPlans] if the
// space is too large to search, and with a plain error if the cluster cannot run such a job at all.
//
// It is exact over its space, and the counts account for all of it. Three choices are solved rather than counted:
// recompute_layers is the fewest blocks that fit, and recompute_every the least number that does, since time grows and
// memory shrinks with either; where a block that is recomputed is faster, as under a zero-bubble schedule it may be,
// the fastest number; groups of blocks (recompute_every above 1) are tried with every block recomputed or, on request,
// so many as pins of recompute_layers say. stage_layers is the split whose slowest stage is fastest, without a look at
// memory: exactly with one chunk a stage or where all blocks are alike, else as if each were the mean of all.
// recompute_split is tried on request.
func Search(p *Problem) (*Result, error) {
	s, err := newSearcher(p)
	if err != nil {
		return nil, err
	}
	s.precompiler.helpers, s.watch = min(maxHelpers, runtime.GOMAXPROCS(0)-1), p.Watch
	sp, err := s.space(p)
	if err != nil {
		return nil, err
	}
	c, counts, ok := s.choose(sp, nil)
	s.watch = nil
	if !ok {
		return nil, s.noPlan(sp, counts)
	}
	s.searched = sp
	r := &Result{Best: c.best, Robust: c.robust, Fastest: c.fastest, Counts: counts, searcher: s}
	s.explain(sp, r)
	return r, nil
}

// measureActivations restricts a search: what it does not hold of is passed over. A nil function holds of all.
type filter struct {
	limit     costmodel.Seconds // above 0: plans that take longer are of no interest
	family    func(*family) bool
	recompute func(string) bool // of what is recomputed
	member    func(*member) bool
}

// searchBestFirst is one search for the best plan.
type bestFirst struct {
	s         *searcher
	space     *planSpace
	filter    *filter
	pending   []rankedFamily // those that had no turn yet
	queue     queue
	counts    Counts
	countAll  bool // somebody wants to know them: families that do not fit must have their turn
	fits      []fittingPlan
	slower    []*member // that fit, and of which a bound said that they are slower than the fastest
	fastest   costmodel.Seconds
	anyMayFit bool // some family has room for one of its plans, so far as bounds say
	anyOpened bool // some family had its turn
	steps     int  // for those who watch
}

// fittingPlan is a plan that fits, with its place in the space.
type fittingPlan struct {
	candidate candidate
	index     int
	time      costmodel.Seconds
	member    *member
}

// best prices plans in ascending order of their bounds, until no bound is below the best time. A family is looked at
// when the bound of its arithmetic has its turn, and opened, as a branch of it is, when its own has.
func (s *searcher) best(sp *planSpace, k *filter) (best Priced, n Counts, found bool) {
	h := s.searchBestFirst(sp, k)
	first := h.fastestFit()
	h.finish()
	if first == nil {
		return Priced{}, h.counts, false
	}
	return s.priced(&first.candidate), h.counts, true
}

// found are the two plans that a search finds, and which of them is recommended.
type found struct{ best, robust, fastest Priced }

// choose finds the fastest plan, and then the one of least risk among those that predictions do not tell from it. The
// counts are those of both.
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
	c.fastest, c.robust = s.priced(&first.candidate), s.priced(&least)
	c.best = c.robust
	if s.problem.Prefer == PreferFastest {
		c.best = c.fastest
	}
	return c, h.counts, true
}

// bestFirst looks at plans until no bound is below the best time.
func (s *searcher) searchBestFirst(sp *planSpace, k *filter) *bestFirst {
	counts := k == nil
	if counts {
		k = &filter{}
	}
	h := &bestFirst{s: s, space: sp, filter: k, countAll: counts}
	h.counts.Space = sp.size
	h.queue, h.pending = s.queue[:0], sp.ranked(s)
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

// fastestFit is the fastest plan, of those within a tie the first in the space; nil if none fits.
func (h *bestFirst) fastestFit() (first *fittingPlan) {
	for i := range h.fits {
		if f := &h.fits[i]; f.time <= h.fastest*(1+tie) && (first == nil || f.index < first.index) {
			first = f
		}
	}
	return first
}

// finish completes the counts, and gives back what the next hunt can use.
func (h *bestFirst) finish() {
	h.s.precompiler.stop()
	h.counts.Bounded = h.counts.Space - h.counts.Infeasible - h.counts.Priced
	h.s.queue = h.queue
}

// next tells whether something may be no slower than the best, and queues the families whose turn comes before it.
func (h *bestFirst) next() bool {
	limit := h.fastest * (1 + tie)
	for len(h.pending) > 0 && h.pending[0].floor <= limit && (len(h.queue) == 0 || h.pending[0].floor <= h.queue[0].floor) {
		f, floor := h.space.families[h.pending[0].index], h.pending[0].floor
		h.pending = h.pending[1:]
		if h.filter.family == nil || h.filter.family(f) {
			if !h.countAll && h.s.cannotFit(h.space.problem, f) {
				continue
			}
			h.queueRefined(f, floor)
			h.watch()
		}
	}
	return len(h.queue) > 0 && h.queue[0].floor <= limit
}

// classSlab tells whether some plan of a family may fit.
func (h *bestFirst) mayFit(f *family) bool {
	if h.s.minBytes(h.space.problem, f) > h.s.arenaCapacity {
		h.counts.Infeasible += f.size
		return false
	}
	h.anyMayFit = true
	return true
}

// queueRefined queues a family by what it takes nearly; by its own bound once that has its turn, or where it is known. As
// long as none was found to have room that is looked at first: perhaps none has.
func (h *bestFirst) queueRefined(f *family, ranked costmodel.Seconds) {
	if f.floor == 0 && (h.anyMayFit || h.mayFit(f)) {
		if f.roughFloor <= ranked { // no more is known than when it got its rank
			f.roughFloor = max(f.roughFloor, h.s.pipelineBound(h.space.problem, f.class, &f.plan))
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
func (h *bestFirst) queueFamily(f *family) {
	if f.floor > 0 {
		h.queue.push(entry{floor: f.floor, order: f.first, family: f})
	}
}

// boundFamily finds a family's own bound.
func (h *bestFirst) boundFamily(f *family) {
	f.floor = max(f.roughFloor, h.s.familyBound(f, &anyRecompute, 0))
	h.space.raisedBounds++
}

func (h *bestFirst) queueBranches(f *family) {
	if !h.mayFit(f) {
		return
	}
	if !h.anyOpened && h.s.precompiler.helpers > 0 {
		h.s.precompiler.start(h.s, h.recomputeBases(f))
	}
	h.anyOpened = true
	for _, b := range h.s.branchesOf(h.space.problem, f) {
		if h.filter.recompute != nil && !h.filter.recompute(b.recompute.kind) {
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

func (h *bestFirst) queueMembers(b *branch) {
	ms := h.s.membersOf(h.space.problem, b)
	for i := range ms {
		switch m := &ms[i]; {
		case h.filter.member != nil && !h.filter.member(m):
		case m.overBytes > 0:
			h.counts.Infeasible++
		default:
			h.queue.push(entry{floor: m.floor, order: m.index, member: m})
		}
	}
}

func (h *bestFirst) priceMember(m *member) {
	best, ok := h.s.solveRecompute(m, h.fastest*(1+tie))
	if !ok {
		h.slower = append(h.slower, m)
		return
	}
	p := h.s.price(&best)
	h.counts.Simulated++
	h.counts.Priced++
	h.fastest = min(h.fastest, p.time)
	h.s.precompiler.limit(h.fastest * (1 + tie))
	h.fits = append(h.fits, fittingPlan{best, m.index, p.time, m})
}

// Price predicts one plan, legal or refused with the rules that it breaks. Pins are not looked at.
func Price(p *Problem, plan ir.Plan) (costmodel.Predict, error) {
	s, err := newSearcher(p)
	if err != nil {
		return costmodel.Predict{}, err
	}
	if rs := Legal(plan, s.dims, p.Cluster, p.GlobalBatch); len(rs) > 0 {
		return costmodel.Predict{}, &IllegalError{Plan: plan, Reasons: rs, Pins: p.Pins}
	}
	return s.priced(s.candidateOf(plan)).Predict, nil
}
