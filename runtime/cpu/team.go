package cpu

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// A job is work whose parts may run at the same time, in any order, each by one thread. What the parts are follows from
// the work alone, never from the number of threads: so its results do not depend on that.
type job interface{ part(i int) }

// maxParts bounds the parts of a job.
const maxParts = 1<<16 - 1

// run does parts 0 to parts-1 of a job and returns when all are done: on the threads of a team that is free, or on the
// caller's alone if none is. j must not be on the stack (keep jobs in a pool). A part's panic is the caller's, once all
// have ended.
func run(j job, parts int) { runParts(j, parts, false) }

// runInTurn is run for parts that are of different length: whoever is free takes the next one.
func runInTurn(j job, parts int) { runParts(j, parts, true) }

func runParts(j job, parts int, inTurn bool) {
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
		j.part(i)
	}
}

// Threads sets how many teams there are, and how many threads of each: one team a rank that calls kernels, its thread
// among the team's. The teams' other threads are goroutines that live until the next call of Threads and sleep, but
// for a moment after each job. No kernel may run meanwhile.
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

// teamSize is how many threads a team has, at least 1.
var teamSize atomic.Int32

// teamThreads is how many threads a team has: 1 where Threads was never called.
func teamThreads() int { return max(1, int(teamSize.Load())) }

// teams are those that Threads made.
var teams teamList

type teamList struct {
	mu        sync.Mutex
	all, free []*team
}

// get takes a free team: of several the one that was last taken on the caller's core, whose helpers most likely have
// its rows.
func (ts *teamList) get() (t *team) {
	ts.mu.Lock()
	if n := len(ts.free) - 1; n >= 0 {
		at, own := n, core()
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

// put gives a team back; not one that Threads has closed meanwhile.
func (ts *teamList) put(t *team) {
	ts.mu.Lock()
	if !t.closed.Load() {
		ts.free = append(ts.free, t)
	}
	ts.mu.Unlock()
}

// A team is helpers that do parts of one job at a time with the thread that brings it. Of the parts, which lie one
// behind another, each thread has a range of its own, and most often the same rows as in the job before, which its
// core's caches still have. Who is done takes from the ends of the others' ranges: a thread that the system holds up
// delays one part, not all.
type team struct {
	reaches []reach       // of each thread, the caller's first
	number  uint32        // of the job
	parts   atomic.Uint32 // of the job
	done    atomic.Uint32 // parts
	waiting atomic.Bool   // the caller sleeps until all parts are done
	closed  atomic.Bool
	inTurn  atomic.Bool            // the job's parts are taken in turn
	core    uint32                 // of the caller; teams' mutex guards it
	job     job                    // written between jobs
	fault   atomic.Pointer[fault]  // the first of the job's
	beside  atomic.Pointer[func()] // what a helper does before it does more parts
	wake    chan struct{}
	helpers []*helper
}

// fault is a panic of a part, which the thread that brought the job takes on: in a helper it would end the process,
// whatever the caller recovers from.
type fault struct{ text string }

type helper struct {
	thread int // its number: the caller is 0
	asleep atomic.Bool
	wake   chan struct{}
}

// A thread that has nothing to do looks for something spins times, each time after some pauses of the processor: tens
// of microseconds, which is less than waking it would take. Then it sleeps, so that others have its core.
const (
	spins  = 300
	pauses = 8
)

func newTeam(helpers int) *team {
	t := &team{reaches: make([]reach, helpers+1), wake: make(chan struct{}, 1)}
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

// Overlap has a helper of one of the teams call f when it has no part of a job at hand, and do parts again thereafter:
// not at all where there are no teams, or they end before. f calls no kernel whose work is more than one part. A call
// for which no helper was free yet gives way to the next of the same team, which n, the caller's rank, chooses.
func Overlap(n int, f *func()) {
	teams.mu.Lock()
	defer teams.mu.Unlock()
	if len(teams.all) == 0 {
		return
	}
	t := teams.all[n%len(teams.all)]
	t.beside.Store(f)
	t.rouse()
}

// turnOf are the parts of one of so many threads: first to end-1. The caller, which is there already, has one if any
// has.
func turnOf(i, threads, parts int) (first, end int) {
	up := threads - 1
	return (i*parts + up) / threads, ((i+1)*parts + up) / threads
}

// run does a job's parts with the helpers.
func (t *team) run(j job, parts int, inTurn bool) {
	t.job = j
	t.done.Store(0)
	t.parts.Store(uint32(parts))
	t.inTurn.Store(inTurn)
	t.number++
	for i := range t.reaches {
		first, end := turnOf(i, len(t.reaches), parts)
		if inTurn { // all are in the caller's reach
			first, end = min(i*parts, parts), parts
		}
		t.reaches[i].set(t.number, first, end)
	}
	t.rouse()
	t.work(0)
	for i := 0; t.done.Load() != uint32(parts); i++ {
		if i < spins {
			pause(pauses)
			continue
		}
		t.waiting.Store(true)
		if t.done.Load() == uint32(parts) {
			t.waiting.Store(false)
			return
		}
		<-t.wake // or an earlier job's, which came late
	}
}

// rouse wakes the helpers that sleep.
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

// work does parts of the team's job until none is left to take: those of the thread, then others'.
func (t *team) work(thread int) {
	for i := range t.reaches {
		own := &t.reaches[(thread+i)%len(t.reaches)]
		for {
			part, ok := own.take(i == 0 || t.inTurn.Load())
			if !ok {
				break
			}
			// The caller waits for this part, so the job stays what it is.
			parts := t.parts.Load()
			t.part(part)
			if t.done.Add(1) == parts && t.waiting.Swap(false) {
				signal(t.wake)
			}
		}
	}
}

// part does one.
func (t *team) part(n int) {
	defer func() {
		if x := recover(); x != nil {
			t.fault.CompareAndSwap(nil, &fault{fmt.Sprintf("%v\n%s", x, debug.Stack())})
		}
	}()
	t.job.part(n)
}

// left tells whether there is something for a helper to do, or the team has ended.
func (t *team) left() bool {
	if t.beside.Load() != nil {
		return true
	}
	for i := range t.reaches {
		if t.reaches[i].left() {
			return true
		}
	}
	return t.closed.Load()
}

// serve is a helper's life.
func (h *helper) serve(t *team) {
	for !t.closed.Load() {
		if t.beside.Load() != nil {
			if f := t.beside.Swap(nil); f != nil {
				(*f)()
			}
		}
		t.work(h.thread)
		for i := 0; i < spins && !t.left(); i++ {
			pause(pauses)
			if i%16 == 15 {
				runtime.Gosched() // to goroutines that wait for this thread
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
