package search

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// Most of a search's time goes into compiling a model's layers once per base. Bases do not depend on each other, so
// that the machine's other cores make those ahead that will be asked for soon. What is found does not depend on who
// made it.

// basePrecompiler is the bases that are made before they are asked for.
type basePrecompiler struct {
	helpers    int            // other cores that may make some
	jobs       *compileJobs   // all that there were: what was made and not taken may be asked for yet
	floorLimit *atomic.Uint64 // the bits of the floor above which nobody asks any more; below 0: not at all
}

// compileJobs are those of searchers that work side by side.
type compileJobs struct {
	sync.Mutex
	byKey map[profileKey]*compileJob
}

// find is the job of a base, a new one where there is none.
func (j *compileJobs) find(k profileKey) *compileJob {
	j.Lock()
	defer j.Unlock()
	if j.byKey[k] == nil {
		j.byKey[k] = &compileJob{}
	}
	return j.byKey[k]
}

// compileJob is a base that whoever comes first makes. Who takes it takes a copy.
type compileJob struct {
	once sync.Once
	base *baseProfile // nil where it could not be made
}

// baseRequest is a base that may be asked for, for plans that take no less than a floor.
type baseRequest struct {
	key   profileKey
	floor costmodel.Seconds
}

// minParallelBases is how many bases there are at least for which other cores are asked.
const minParallelBases = 4

// maxHelpers is how many cores help: more would wait for memory.
const maxHelpers = 7

// run lets other cores make bases that are not there yet, in some order. What they were to make before is given up.
func (a *basePrecompiler) start(s *searcher, soon []baseRequest) {
	a.limit(-1)
	var missing []baseRequest
	if a.jobs == nil {
		a.jobs = &compileJobs{byKey: map[profileKey]*compileJob{}}
	}
	for _, w := range soon {
		if s.bases[w.key] != nil || s.profiles[w.key] != nil {
			continue
		}
		if b := s.bases[w.key.withoutRecompute()]; b != nil {
			a.jobs.store(b)
		}
		missing = append(missing, w)
	}
	a.floorLimit = nil
	if len(missing) < minParallelBases {
		return
	}
	all := a.jobs
	var next atomic.Int64
	most := new(atomic.Uint64)
	a.floorLimit = most
	a.limit(costmodel.Seconds(math.Inf(1)))
	for range a.helpers {
		go func() {
			for i := int(next.Add(1)) - 1; i < len(missing) &&
				float64(missing[i].floor) <= math.Float64frombits(most.Load()); i = int(next.Add(1)) - 1 {
				all.find(missing[i].key).run(s, all, missing[i].key)
			}
		}()
	}
}

// run makes the base if nobody has begun to, else it waits. Who asks for one that could not be made meets the same
// panic again, where it is reported.
func (j *compileJob) run(s *searcher, all *compileJobs, k profileKey) {
	j.once.Do(func() {
		defer func() { _ = recover() }()
		if k.recompute == "none" {
			j.base = s.newBase(k, s.newProfile(k))
			return
		}
		plain := all.find(k.withoutRecompute())
		plain.run(s, all, k.withoutRecompute())
		j.base = s.recomputing(k, plain.base)
	})
}

// store takes over a base that is there already.
func (j *compileJobs) store(b *baseProfile) {
	of := j.find(b.key)
	of.once.Do(func() { of.base = b })
}

// limit lets nobody begin a base for plans that take longer.
func (a *basePrecompiler) limit(floor costmodel.Seconds) {
	if a.floorLimit != nil {
		a.floorLimit.Store(math.Float64bits(float64(floor)))
	}
}

// stop lets nobody begin another base.
func (a *basePrecompiler) stop() {
	a.limit(-1)
	a.floorLimit = nil
}

// get is a base that was made ahead, or is being made, or is made now.
func (a *basePrecompiler) get(s *searcher, k profileKey) *baseProfile {
	switch {
	case s.profiles[k] != nil:
		return s.newBase(k, s.profile(k))
	case a.jobs != nil:
		j := a.jobs.find(k)
		j.run(s, a.jobs, k)
		if j.base == nil {
			return s.newBase(k, s.profile(k))
		}
		s.profiles[k] = j.base.profile
		return j.base.clone()
	case k.recompute != "none":
		b := s.recomputing(k, s.baseAt(k.withoutRecompute()))
		s.profiles[k] = b.profile
		return b
	}
	return s.newBase(k, s.profile(k))
}

// withoutHelpers lets a searcher do without other cores, which have searchers of their own, until what it returns is called. So
// there are never more at work than cores: those of a [Series] have no helpers either.
func (s *searcher) withoutHelpers() (end func()) {
	n := s.precompiler.helpers
	s.precompiler.helpers = 0
	return func() { s.precompiler.helpers = n }
}

// listBases notes the bases that a choice of the degrees needs where nothing is recomputed.
func (e *enumeration) listBases(plan *ir.Plan) {
	for _, vpp := range []int{1, 2} {
		plan.VPP = vpp
		for _, plan.Schedule = range e.p.schedules(plan) {
			if k := baseKey(*plan); !e.basesMet[k] && (plan.PP > 1 || plan.VPP == 1) {
				e.basesMet[k] = true
				e.baseRequests = append(e.baseRequests, baseRequest{key: k})
			}
		}
	}
}

// neededBases are the bases that an enumeration asks for, in its order, and then those that bounds ask for of families
// whose backward is two passes.
func (s *searcher) neededBases(p *Problem, set *ruleContext) []baseRequest {
	e := &enumeration{s: s, p: p, set: set, basesMet: map[profileKey]bool{}}
	e.degrees()
	var each, apart []baseRequest
	for _, w := range e.baseRequests {
		if !w.key.splitBackward {
			continue
		}
		apart = append(apart, w)
		w.key.scatterEachMicro = w.key.replicas || w.key.cp > 1
		if w.key.scatterEachMicro {
			each = append(each, w)
		}
	}
	return slices.Concat(e.baseRequests, each, p.recomputeBases(slices.Concat(apart, each), nil))
}

// recompute are bases with what a search may do again.
func (p *Problem) recomputeBases(plain []baseRequest, may func(string) bool) (out []baseRequest) {
	for _, w := range plain {
		for _, kind := range []string{"selective", "full"} {
			if p.Pins.allows("recompute", kind) && (may == nil || may(kind)) {
				w.key.recompute = kind
				out = append(out, w)
			}
		}
	}
	return out
}

// recomputeChoice lists the bases that a hunt's families ask for once they are opened, those first that are opened first: that of
// the first and of those that are queued.
func (h *bestFirst) recomputeBases(first *family) (out []baseRequest) {
	floors := map[*baseProfile]costmodel.Seconds{first.base(): 0}
	var last *baseProfile
	for i := range h.queue {
		e := &h.queue[i]
		if e.family == nil {
			continue
		}
		b := e.family.base()
		if least, met := floors[b]; b != last && !met || e.floor < least {
			floors[b] = e.floor
		}
		last = b
	}
	for b, floor := range floors {
		out = append(out, baseRequest{b.key, floor})
	}
	out = h.space.problem.recomputeBases(out, h.filter.recompute)
	slices.SortFunc(out, func(a, b baseRequest) int {
		return cmp.Or(cmp.Compare(a.floor, b.floor), cmp.Compare(a.key.experts.ep, b.key.experts.ep),
			cmp.Compare(a.key.tp, b.key.tp))
	})
	return out
}
