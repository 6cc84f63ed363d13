package price

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/planc-dev/planc/costmodel"
)

// Most of a search's time is spent on compiling the layers of base profiles. They are independent of each other, so
// other cores compile those that will soon be needed. The results do not depend on which core computes them.

// basePrecompiler compiles base profiles on other cores before they are needed.
type basePrecompiler struct {
	helpers int          // number of other cores that may help
	jobs    *compileJobs // all jobs so far: results that were not taken may still be needed
	// bits of the lower bound above which bases are no longer needed; below 0 means none are; nil if nothing runs
	floorLimit *atomic.Uint64
}

// compileJobs are the jobs of searchers that run concurrently.
type compileJobs struct {
	sync.Mutex
	byKey map[profileKey]*compileJob
}

// find returns the job of a base, a new one if there is none.
func (j *compileJobs) find(k profileKey) *compileJob {
	j.Lock()
	defer j.Unlock()
	if j.byKey[k] == nil {
		j.byKey[k] = &compileJob{}
	}
	return j.byKey[k]
}

// compileJob computes a base once, by the first that needs it. Callers take copies.
type compileJob struct {
	once sync.Once
	base *baseProfile // nil if it could not be compiled
}

// baseRequest is a base that may be needed, for plans whose step is at least floor.
type baseRequest struct {
	key   profileKey
	floor costmodel.Seconds
}

// minParallelBases is the smallest number of missing bases for which other cores are used.
const minParallelBases = 4

// maxHelpers is the largest number of other cores; more would wait for memory.
const maxHelpers = 7

// start lets other cores compile the missing bases of a list in order. It cancels what they have not begun.
func (a *basePrecompiler) start(s *layerProfiler, soon []baseRequest) {
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
	highest := new(atomic.Uint64)
	a.floorLimit = highest
	a.limit(costmodel.Seconds(math.Inf(1)))
	for range a.helpers {
		go func() {
			for i := int(next.Add(1)) - 1; i < len(missing) &&
				float64(missing[i].floor) <= math.Float64frombits(highest.Load()); i = int(next.Add(1)) - 1 {
				all.find(missing[i].key).run(s, all, missing[i].key)
			}
		}()
	}
}

// run compiles the base if nobody has begun to, and otherwise waits. If it panics, the caller that needs the base
// meets the same panic again and reports it.
func (j *compileJob) run(s *layerProfiler, all *compileJobs, k profileKey) {
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

// store adds a base that already exists.
func (j *compileJobs) store(b *baseProfile) {
	job := j.find(b.key)
	job.once.Do(func() { job.base = b })
}

// limit prevents the start of bases for plans that take longer.
func (a *basePrecompiler) limit(floor costmodel.Seconds) {
	if a.floorLimit != nil {
		a.floorLimit.Store(math.Float64bits(float64(floor)))
	}
}

// stop prevents the start of further bases.
func (a *basePrecompiler) stop() {
	a.limit(-1)
	a.floorLimit = nil
}

// get returns a base that was or is being compiled by another core, or compiles it.
func (a *basePrecompiler) get(s *layerProfiler, k profileKey) *baseProfile {
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
