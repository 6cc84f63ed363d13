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
	profiles map[profileKey]*profile
	bases    map[profileKey]*base
	inFlight map[flightKey][]int
	stale    map[profileKey]bool // profiles whose engine's constants have moved
	frames   map[frameKey]*frame
	states   map[stateKey]*state

	timetables map[flightKey]*ir.Timetable
	works      map[costmodel.Device]map[worksKey][][3]arithmetic
	fittings   map[fittingKey]*fitting
}

func newCaches() *caches {
	return &caches{profiles: map[profileKey]*profile{}, bases: map[profileKey]*base{}, inFlight: map[flightKey][]int{},
		frames: map[frameKey]*frame{}, states: map[stateKey]*state{}, timetables: map[flightKey]*ir.Timetable{},
		works: map[costmodel.Device]map[worksKey][][3]arithmetic{}, fittings: map[fittingKey]*fitting{}}
}

// copied are caches of their own that begin with what these hold, which nobody changes any more.
func (c *caches) copied() *caches {
	own := &caches{profiles: maps.Clone(c.profiles), bases: map[profileKey]*base{}, inFlight: maps.Clone(c.inFlight),
		frames: maps.Clone(c.frames),
		states: maps.Clone(c.states), timetables: maps.Clone(c.timetables), fittings: copied(c.fittings),
		works: map[costmodel.Device]map[worksKey][][3]arithmetic{}}
	for d, w := range c.works {
		own.works[d] = maps.Clone(w)
	}
	for k, b := range c.bases {
		own.bases[k] = b.copied()
	}
	return own
}

// copied is a base with room of its own for what is found out of it.
func (b *base) copied() *base {
	own := *b
	own.byMicro, own.works = maps.Clone(b.byMicro), maps.Clone(b.works)
	return &own
}

// searcher holds what one question's searches share.
type searcher struct {
	*caches
	*speeds
	ahead   ahead
	problem *Problem
	within  *space            // that was searched for a [Result]
	free    map[string]*space // those of the result's choices where pins give one up
	// is told how far the search for the best plan is; nil: nobody, or what is searched for is another
	watch       func(Progress)
	dims        Dims
	device      costmodel.Device
	modelFlops  float64
	formula     string
	capacity    int     // bytes of a device for the arena
	window      float64 // [Apart], but for tests that draw from small spaces
	maxFamilies int     // [maxFamilies], except in tests
	usable      int64   // bytes of a device for all that a plan needs, as [costmodel.Memory] counts its capacity
	overlap     [2]bool // data-parallel collectives run beside compute: with ZeRO 0, and above
	exposedTP   float64 // part of tensor parallel collectives that compute waits for

	cpu     bool
	moments int // of a parameter, that the optimizer keeps

	layerMoves map[moveKey][]moved
	own        map[worksKey][][3]arithmetic // of works, those of the device
	listed     map[shardingsKey][]sharding
	named      map[ordersKey][]string
	redone     map[againsKey][]again
	stageNeeds map[needsKey][]stateNeed
	settlings  map[settleKey][]settling
	prices     map[priceKey]*price
	plays      map[pipelinedKey]costmodel.Seconds

	bucketPrices map[bucketKey]*bucketPrice

	balancing  balancing
	kept       kept // this and what follows: room for what is written anew for each plan
	costing    []layerCost
	held       []hold
	shares     []share
	tries      []tried
	kindFloors []kindFloor
	queue      queue
}

func newSearcher(p *Problem) (*searcher, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	dev, _ := p.Cluster.DeviceOf(p.engine(), p.Computes())
	empty := p.Cluster.MemoryOf(func(string) int { return 0 }, p.Cluster.Devices(), p.Headroom)
	s := &searcher{caches: newCaches(), speeds: newSpeeds(p, dev), problem: p, dims: DimsOf(p.Model), device: dev,
		modelFlops: modelFlops(p.Model), formula: formula(p.Model),
		capacity: int(empty.Capacity - empty.Total), usable: empty.Capacity, window: Apart, maxFamilies: maxFamilies,
		layerMoves: map[moveKey][]moved{}, listed: map[shardingsKey][]sharding{}, named: map[ordersKey][]string{},
		redone: map[againsKey][]again{}, stageNeeds: map[needsKey][]stateNeed{}, settlings: map[settleKey][]settling{},
		prices: map[priceKey]*price{}, plays: map[pipelinedKey]costmodel.Seconds{},
		bucketPrices: map[bucketKey]*bucketPrice{}, free: map[string]*space{}}
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
	s.ahead.helpers, s.watch = min(mostHelpers, runtime.GOMAXPROCS(0)-1), p.Watch
	sp, err := s.space(p)
	if err != nil {
		return nil, err
	}
	c, counts, ok := s.choose(sp, nil)
	s.watch = nil
	if !ok {
		return nil, s.noPlan(sp, counts)
	}
	s.within = sp
	r := &Result{Best: c.best, Robust: c.robust, Fastest: c.fastest, Counts: counts, searcher: s}
	s.explain(sp, r)
	return r, nil
}

// keep restricts a search: what it does not hold of is passed over. A nil function holds of all.
type keep struct {
	limit  costmodel.Seconds // above 0: plans that take longer are of no interest
	family func(*family) bool
	kind   func(string) bool // of what is recomputed
	member func(*member) bool
}

// hunt is one search for the best plan.
type hunt struct {
	s       *searcher
	sp      *space
	keep    *keep
	rest    []rank // those that had no turn yet
	queue   queue
	n       Counts
	counts  bool // somebody wants to know them: families that do not fit must have their turn
	fits    []fit
	passed  []*member // that fit, and of which a bound said that they are slower than the fastest
	fastest costmodel.Seconds
	roomy   bool // some family has room for one of its plans, so far as bounds say
	opened  bool // some family had its turn
	steps   int  // for those who watch
}

// fit is a plan that fits, with its place in the space.
type fit struct {
	point  point
	place  int
	time   costmodel.Seconds
	member *member
}

// best prices plans in ascending order of their bounds, until no bound is below the best time. A family is looked at
// when the bound of its arithmetic has its turn, and opened, as a branch of it is, when its own has.
func (s *searcher) best(sp *space, k *keep) (best Priced, n Counts, found bool) {
	h := s.hunt(sp, k)
	first := h.first()
	h.end()
	if first == nil {
		return Priced{}, h.n, false
	}
	return s.priced(&first.point), h.n, true
}

// found are the two plans that a search finds, and which of them is recommended.
type found struct{ best, robust, fastest Priced }

// choose finds the fastest plan, and then the one of least risk among those that predictions do not tell from it. The
// counts are those of both.
func (s *searcher) choose(sp *space, k *keep) (c found, n Counts, ok bool) {
	h := s.hunt(sp, k)
	first := h.first()
	if first == nil {
		h.end()
		return c, h.n, false
	}
	limit := h.fastest * costmodel.Seconds(1+s.window)
	if p := s.problem; p.MaxStep > 0 {
		limit = max(h.fastest, min(limit, p.MaxStep))
	}
	least := h.robust(limit)
	h.end()
	c.fastest, c.robust = s.priced(&first.point), s.priced(&least)
	c.best = c.robust
	if s.problem.Prefer == PreferFastest {
		c.best = c.fastest
	}
	return c, h.n, true
}

// hunt looks at plans until no bound is below the best time.
func (s *searcher) hunt(sp *space, k *keep) *hunt {
	counts := k == nil
	if counts {
		k = &keep{}
	}
	h := &hunt{s: s, sp: sp, keep: k, counts: counts}
	h.n.Space = sp.size
	h.queue, h.rest = s.queue[:0], sp.ranked(s)
	h.fastest = costmodel.Seconds(math.Inf(1))
	if k.limit > 0 {
		h.fastest = k.limit
	}
	for h.next() {
		h.watch()
		switch e := h.queue.pop(); {
		case e.member != nil:
			h.price(e.member)
		case e.branch != nil:
			h.members(e.branch)
		case e.family.floor == 0:
			h.bound(e.family)
			h.push(e.family)
		default:
			h.branches(e.family)
		}
	}
	return h
}

// first is the fastest plan, of those within a tie the first in the space; nil if none fits.
func (h *hunt) first() (first *fit) {
	for i := range h.fits {
		if f := &h.fits[i]; f.time <= h.fastest*(1+tie) && (first == nil || f.place < first.place) {
			first = f
		}
	}
	return first
}

// end completes the counts, and gives back what the next hunt can use.
func (h *hunt) end() {
	h.s.ahead.stop()
	h.n.Bounded = h.n.Space - h.n.Infeasible - h.n.Priced
	h.s.queue = h.queue
}

// next tells whether something may be no slower than the best, and queues the families whose turn comes before it.
func (h *hunt) next() bool {
	limit := h.fastest * (1 + tie)
	for len(h.rest) > 0 && h.rest[0].floor <= limit && (len(h.queue) == 0 || h.rest[0].floor <= h.queue[0].floor) {
		f, floor := h.sp.families[h.rest[0].place], h.rest[0].floor
		h.rest = h.rest[1:]
		if h.keep.family == nil || h.keep.family(f) {
			if !h.counts && h.s.hopeless(h.sp.problem, f) {
				continue
			}
			h.refine(f, floor)
			h.watch()
		}
	}
	return len(h.queue) > 0 && h.queue[0].floor <= limit
}

// room tells whether some plan of a family may fit.
func (h *hunt) room(f *family) bool {
	if h.s.least(h.sp.problem, f) > h.s.capacity {
		h.n.Infeasible += f.size
		return false
	}
	h.roomy = true
	return true
}

// refine queues a family by what it takes nearly; by its own bound once that has its turn, or where it is known. As
// long as none was found to have room that is looked at first: perhaps none has.
func (h *hunt) refine(f *family, ranked costmodel.Seconds) {
	if f.floor == 0 && (h.roomy || h.room(f)) {
		if f.rough <= ranked { // no more is known than when it got its rank
			f.rough = max(f.rough, h.s.nearly(h.sp.problem, f.cell, &f.plan))
		}
		if f.rough > ranked {
			h.sp.raised++
			h.queue.push(entry{floor: f.rough, order: f.first, family: f})
			return
		}
		h.bound(f)
	}
	h.push(f)
}

// push queues a family by its own bound, if it has one.
func (h *hunt) push(f *family) {
	if f.floor > 0 {
		h.queue.push(entry{floor: f.floor, order: f.first, family: f})
	}
}

// bound finds a family's own bound.
func (h *hunt) bound(f *family) {
	f.floor = max(f.rough, h.s.familyFloor(f, &perhaps, 0))
	h.sp.raised++
}

func (h *hunt) branches(f *family) {
	if !h.room(f) {
		return
	}
	if !h.opened && h.s.ahead.helpers > 0 {
		h.s.ahead.make(h.s, h.again(f))
	}
	h.opened = true
	for _, b := range h.s.open(h.sp.problem, f) {
		if h.keep.kind != nil && !h.keep.kind(b.again.kind) {
			continue
		}
		h.s.weigh(h.sp.problem, b)
		if b.over > 0 {
			h.n.Infeasible += b.size
		} else {
			h.queue.push(entry{floor: b.floor, order: b.first, branch: b})
		}
	}
}

func (h *hunt) members(b *branch) {
	ms := h.s.grow(h.sp.problem, b)
	for i := range ms {
		switch m := &ms[i]; {
		case h.keep.member != nil && !h.keep.member(m):
		case m.over > 0:
			h.n.Infeasible++
		default:
			h.queue.push(entry{floor: m.floor, order: m.place, member: m})
		}
	}
}

func (h *hunt) price(m *member) {
	best, ok := h.s.solve(m, h.fastest*(1+tie))
	if !ok {
		h.passed = append(h.passed, m)
		return
	}
	p := h.s.price(&best)
	h.n.Simulated++
	h.n.Priced++
	h.fastest = min(h.fastest, p.time)
	h.s.ahead.limit(h.fastest * (1 + tie))
	h.fits = append(h.fits, fit{best, m.place, p.time, m})
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
	return s.priced(s.member(plan)).Predict, nil
}
