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

// ahead is the bases that are made before they are asked for.
type ahead struct {
	helpers int            // other cores that may make some
	jobs    *jobs          // all that there were: what was made and not taken may be asked for yet
	most    *atomic.Uint64 // the bits of the floor above which nobody asks any more; below 0: not at all
}

// jobs are those of searchers that work side by side.
type jobs struct {
	sync.Mutex
	of map[profileKey]*job
}

// find is the job of a base, a new one where there is none.
func (j *jobs) find(k profileKey) *job {
	j.Lock()
	defer j.Unlock()
	if j.of[k] == nil {
		j.of[k] = &job{}
	}
	return j.of[k]
}

// job is a base that whoever comes first makes. Who takes it takes a copy.
type job struct {
	once sync.Once
	base *base // nil where it could not be made
}

// wanted is a base that may be asked for, for plans that take no less than a floor.
type wanted struct {
	key   profileKey
	floor costmodel.Seconds
}

// worthwhile is how many bases there are at least for which other cores are asked.
const worthwhile = 4

// mostHelpers is how many cores help: more would wait for memory.
const mostHelpers = 7

// make lets other cores make bases that are not there yet, in some order. What they were to make before is given up.
func (a *ahead) make(s *searcher, soon []wanted) {
	a.limit(-1)
	var missing []wanted
	if a.jobs == nil {
		a.jobs = &jobs{of: map[profileKey]*job{}}
	}
	for _, w := range soon {
		if s.bases[w.key] != nil || s.profiles[w.key] != nil {
			continue
		}
		if b := s.bases[w.key.plain()]; b != nil {
			a.jobs.know(b)
		}
		missing = append(missing, w)
	}
	a.most = nil
	if len(missing) < worthwhile {
		return
	}
	all := a.jobs
	var next atomic.Int64
	most := new(atomic.Uint64)
	a.most = most
	a.limit(costmodel.Seconds(math.Inf(1)))
	for range a.helpers {
		go func() {
			for i := int(next.Add(1)) - 1; i < len(missing) &&
				float64(missing[i].floor) <= math.Float64frombits(most.Load()); i = int(next.Add(1)) - 1 {
				all.find(missing[i].key).make(s, all, missing[i].key)
			}
		}()
	}
}

// make makes the base if nobody has begun to, else it waits. Who asks for one that could not be made meets the same
// panic again, where it is reported.
func (j *job) make(s *searcher, all *jobs, k profileKey) {
	j.once.Do(func() {
		defer func() { _ = recover() }()
		if k.again == "none" {
			j.base = s.newBase(k, s.newProfile(k))
			return
		}
		plain := all.find(k.plain())
		plain.make(s, all, k.plain())
		j.base = s.recomputing(k, plain.base)
	})
}

// know takes over a base that is there already.
func (j *jobs) know(b *base) {
	of := j.find(b.key)
	of.once.Do(func() { of.base = b })
}

// limit lets nobody begin a base for plans that take longer.
func (a *ahead) limit(floor costmodel.Seconds) {
	if a.most != nil {
		a.most.Store(math.Float64bits(float64(floor)))
	}
}

// stop lets nobody begin another base.
func (a *ahead) stop() {
	a.limit(-1)
	a.most = nil
}

// take is a base that was made ahead, or is being made, or is made now.
func (a *ahead) take(s *searcher, k profileKey) *base {
	switch {
	case s.profiles[k] != nil:
		return s.newBase(k, s.profile(k))
	case a.jobs != nil:
		j := a.jobs.find(k)
		j.make(s, a.jobs, k)
		if j.base == nil {
			return s.newBase(k, s.profile(k))
		}
		s.profiles[k] = j.base.profile
		return j.base.copied()
	case k.again != "none":
		b := s.recomputing(k, s.baseAt(k.plain()))
		s.profiles[k] = b.profile
		return b
	}
	return s.newBase(k, s.profile(k))
}

// alone lets a searcher do without other cores, which have searchers of their own, until what it returns is called. So
// there are never more at work than cores: those of a [Series] have no helpers either.
func (s *searcher) alone() (end func()) {
	n := s.ahead.helpers
	s.ahead.helpers = 0
	return func() { s.ahead.helpers = n }
}

// list notes the bases that a choice of the degrees needs where nothing is recomputed.
func (e *enumeration) list(plan *ir.Plan) {
	for _, vpp := range []int{1, 2} {
		plan.VPP = vpp
		for _, plan.Schedule = range e.p.schedules(plan) {
			if k := baseKey(*plan); !e.met[k] && (plan.PP > 1 || plan.VPP == 1) {
				e.met[k] = true
				e.keys = append(e.keys, wanted{key: k})
			}
		}
	}
}

// basesOf are the bases that an enumeration asks for, in its order, and then those that bounds ask for of families
// whose backward is two passes.
func (s *searcher) basesOf(p *Problem, set *setting) []wanted {
	e := &enumeration{s: s, p: p, set: set, met: map[profileKey]bool{}}
	e.degrees()
	var each, apart []wanted
	for _, w := range e.keys {
		if !w.key.apart {
			continue
		}
		apart = append(apart, w)
		w.key.each = w.key.replicas || w.key.cp > 1
		if w.key.each {
			each = append(each, w)
		}
	}
	return slices.Concat(e.keys, each, p.again(slices.Concat(apart, each), nil))
}

// again are bases with what a search may do again.
func (p *Problem) again(plain []wanted, may func(string) bool) (out []wanted) {
	for _, w := range plain {
		for _, kind := range []string{"selective", "full"} {
			if p.Pins.allows("recompute", kind) && (may == nil || may(kind)) {
				w.key.again = kind
				out = append(out, w)
			}
		}
	}
	return out
}

// again lists the bases that a hunt's families ask for once they are opened, those first that are opened first: that of
// the first and of those that are queued.
func (h *hunt) again(first *family) (out []wanted) {
	floors := map[*base]costmodel.Seconds{first.base(): 0}
	var last *base
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
		out = append(out, wanted{b.key, floor})
	}
	out = h.sp.problem.again(out, h.keep.kind)
	slices.SortFunc(out, func(a, b wanted) int {
		return cmp.Or(cmp.Compare(a.floor, b.floor), cmp.Compare(a.key.experts.ep, b.key.experts.ep),
			cmp.Compare(a.key.tp, b.key.tp))
	})
	return out
}
