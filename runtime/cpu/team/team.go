package team

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/planc-dev/planc/runtime/cpu/asm"
)

// Job is work whose parts may run concurrently in any order, each on one thread. The parts depend only on
// the work, never on the number of threads, and so do the results.
type Job interface{ Part(i int) }

// MaxParts limits the parts of a job.
const MaxParts = 1<<16 - 1

// Run executes parts 0 to parts-1 of a job and returns when all are done. It uses the threads of a free
// team, or only the caller's if no team is free. j must not be on the stack (keep jobs in a pool). A panic
// of a part is raised in the caller when all parts have ended.
func Run(j Job, parts int) { runParts(j, parts, false) }

// RunInTurn is run for parts of different length: whichever thread is free takes the next one.
func RunInTurn(j Job, parts int) { runParts(j, parts, true) }

func runParts(j Job, parts int, inTurn bool) {
	if parts > 1 {
		if t := teams.get(); t != nil {
			t.run(j, parts, inTurn)
			f := t.fault.Swap(nil)
			teams.put(t)
			if f != nil {
				panic(f.text)
			}
			return
		}
	}
	for i := range parts {
		j.Part(i)
	}
}

// Threads sets the number of teams and the number of threads of each. There is one team for each rank that
// calls kernels, whose thread belongs to the team. The other threads are goroutines that live until the
// next call of Threads, and sleep except for a moment after each job. No kernel may run meanwhile.
func Threads(ranks, each int) {
	teams.mu.Lock()
	defer teams.mu.Unlock()
	for _, t := range teams.all {
		t.close()
	}
	teams.all, teams.free = nil, nil
	teamSize.Store(int32(max(1, each)))
	if each <= 1 {
		return
	}
	for range ranks {
		t := newTeam(each - 1)
		teams.all, teams.free = append(teams.all, t), append(teams.free, t)
	}
}

// teamSize is the number of threads of a team, at least 1.
var teamSize atomic.Int32

// Size returns the number of threads of a team: 1 if Threads was never called.
func Size() int { return max(1, int(teamSize.Load())) }

// teams are those that Threads created.
var teams teamList

type teamList struct {
	mu        sync.Mutex
	all, free []*team
}

// get returns a free team: if there are several, the one that was last used on the caller's core, whose
// helpers most likely have its rows in their caches.
func (ts *teamList) get() (t *team) {
	ts.mu.Lock()
	if n := len(ts.free) - 1; n >= 0 {
		at, own := n, asm.Core()
		for i, free := range ts.free {
			if free.core == own {
				at = i
			}
		}
		t = ts.free[at]
		t.core, ts.free[at], ts.free = own, ts.free[n], ts.free[:n]
	}
	ts.mu.Unlock()
	return t
}

// put returns a team, unless Threads has closed it meanwhile.
func (ts *teamList) put(t *team) {
	ts.mu.Lock()
	if !t.closed.Load() {
		ts.free = append(ts.free, t)
	}
	ts.mu.Unlock()
}

// team is a group of helpers that execute one job at a time together with the caller's thread. The parts
// are ordered, and each thread has a range of them, which are mostly the same rows as in the previous job,
// so that its core's caches still hold them. A thread that is done takes parts from the ends of the others'
// ranges: a thread that the system delays holds up one part, not all.
type team struct {
	ranges  []partRange   // by thread, the caller's first
	number  uint32        // of the job
	parts   atomic.Uint32 // of the job
	done    atomic.Uint32 // number of finished parts
	waiting atomic.Bool   // the caller sleeps until all parts are done
	closed  atomic.Bool
	inTurn  atomic.Bool            // the job's parts are taken in turn
	core    uint32                 // of the caller; guarded by the mutex of teams
	job     Job                    // written between jobs
	fault   atomic.Pointer[fault]  // the first one of the job
	overlap atomic.Pointer[func()] // what a helper does before it executes more parts
	wake    chan struct{}
	helpers []*helper
}

// fault is a panic of a part, which is raised again in the caller's thread: in a helper it would end the
// process even if the caller recovers.
type fault struct{ text string }

type helper struct {
	thread int // its number: the caller is 0
	asleep atomic.Bool
	wake   chan struct{}
}

// An idle thread looks for work spins times, with some pauses of the processor in between: tens of
// microseconds, less than waking it would take. Then it sleeps, so that others can use its core.
const (
	spins  = 300
	pauses = 8
)

func newTeam(helpers int) *team {
	t := &team{ranges: make([]partRange, helpers+1), wake: make(chan struct{}, 1)}
	for i := range helpers {
		h := &helper{thread: i + 1, wake: make(chan struct{}, 1)}
		t.helpers = append(t.helpers, h)
		go h.serve(t)
	}
	return t
}

func (t *team) close() {
	t.closed.Store(true)
	t.rouse()
}

// Overlap makes a helper of a team call f when it has no part of a job, and execute parts again afterwards.
// It does nothing if there are no teams, or if they end before. f must not call a kernel with more than one
// part. n, the caller's rank, chooses the team. If no helper has started f before the next call for the
// same team, the next call replaces it.
func Overlap(n int, f *func()) {
	teams.mu.Lock()
	defer teams.mu.Unlock()
	if len(teams.all) == 0 {
		return
	}
	t := teams.all[n%len(teams.all)]
	t.overlap.Store(f)
	t.rouse()
}

// rangeOf returns the range of parts of one of the threads: first to end-1. The caller, which is already
// running, has one if any thread has.
func rangeOf(i, threads, parts int) (first, end int) {
	up := threads - 1
	return (i*parts + up) / threads, ((i+1)*parts + up) / threads
}

// run executes a job's parts with the helpers.
func (t *team) run(j Job, parts int, inTurn bool) {
	t.job = j
	t.done.Store(0)
	t.parts.Store(uint32(parts))
	t.inTurn.Store(inTurn)
	t.number++
	for i := range t.ranges {
		first, end := rangeOf(i, len(t.ranges), parts)
		if inTurn { // the caller's range holds all
			first, end = min(i*parts, parts), parts
		}
		t.ranges[i].set(t.number, first, end)
	}
	t.rouse()
	t.work(0)
	for i := 0; t.done.Load() != uint32(parts); i++ {
		if i < spins {
			asm.Pause(pauses)
			continue
		}
		t.waiting.Store(true)
		if t.done.Load() == uint32(parts) {
			t.waiting.Store(false)
			return
		}
		<-t.wake // may be a late signal of an earlier job
	}
}

// rouse wakes the sleeping helpers.
func (t *team) rouse() {
	for _, h := range t.helpers {
		if h.asleep.Swap(false) {
			signal(h.wake)
		}
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// work executes parts of the team's job until none is left: those of the thread, then the others'.
func (t *team) work(thread int) {
	for i := range t.ranges {
		own := &t.ranges[(thread+i)%len(t.ranges)]
		for {
			part, ok := own.take(i == 0 || t.inTurn.Load())
			if !ok {
				break
			}
			// The caller waits for this part, so the job does not change.
			parts := t.parts.Load()
			t.part(part)
			if t.done.Add(1) == parts && t.waiting.Swap(false) {
				signal(t.wake)
			}
		}
	}
}

// part executes one part.
func (t *team) part(n int) {
	defer func() {
		if x := recover(); x != nil {
			t.fault.CompareAndSwap(nil, &fault{fmt.Sprintf("%v\n%s", x, debug.Stack())})
		}
	}()
	t.job.Part(n)
}

// left reports whether there is work for a helper, or the team has ended.
func (t *team) left() bool {
	if t.overlap.Load() != nil {
		return true
	}
	for i := range t.ranges {
		if t.ranges[i].left() {
			return true
		}
	}
	return t.closed.Load()
}

// serve is the main loop of a helper.
func (h *helper) serve(t *team) {
	for !t.closed.Load() {
		if t.overlap.Load() != nil {
			if f := t.overlap.Swap(nil); f != nil {
				(*f)()
			}
		}
		t.work(h.thread)
		for i := 0; i < spins && !t.left(); i++ {
			asm.Pause(pauses)
			if i%16 == 15 {
				runtime.Gosched() // lets goroutines run that wait for this thread
			}
		}
		if t.left() {
			continue
		}
		h.asleep.Store(true)
		if t.left() {
			h.asleep.Store(false)
			continue
		}
		<-h.wake
	}
}
