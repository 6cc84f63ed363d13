package team

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/planc-dev/planc/runtime/cpu/asm"
)

// counter is a job that counts how often each part was executed.
type counter struct {
	times [64]atomic.Int32
	slow  time.Duration
	inner *counter // executed inside each part
}

func (c *counter) Part(i int) {
	if c.slow > 0 {
		time.Sleep(c.slow)
	}
	if c.inner != nil {
		Run(c.inner, 1)
	}
	c.times[i].Add(1)
}

// withThreads runs a test with one team of the given number of threads.
func withThreads(t *testing.T, each int, f func(*testing.T)) {
	Threads(1, each)
	defer Threads(0, 0)
	f(t)
}

func TestEachPartIsDoneOnce(t *testing.T) {
	for _, each := range []int{1, 2, 3, 5} {
		withThreads(t, each, func(t *testing.T) {
			for round := range 300 {
				c := &counter{}
				parts := round % 65
				if round%100 == 99 {
					time.Sleep(3 * time.Millisecond) // the helpers sleep
				}
				if round%50 == 49 {
					c.slow = 100 * time.Microsecond // the caller sleeps
				}
				if round%2 == 0 {
					Run(c, parts)
				} else {
					RunInTurn(c, parts)
				}
				for i := range c.times {
					if n, want := c.times[i].Load(), int32(1); i < parts && n != want || i >= parts && n != 0 {
						t.Fatalf("%d threads, round %d: part %d of %d was done %d times", each, round, i, parts, n)
					}
				}
			}
		})
	}
}

// Callers without a team work alone: calls from inside a part, and from other goroutines.
func TestCallersWithoutATeam(t *testing.T) {
	withThreads(t, 3, func(t *testing.T) {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 50 {
					c := &counter{inner: &counter{}}
					Run(c, 40)
					if n := c.inner.times[0].Load(); n != 40 {
						t.Errorf("the inner job was done %d times, want 40", n)
					}
				}
			})
		}
		all.Wait()
	})
}

func TestThreadsDuringAJob(t *testing.T) {
	defer Threads(0, 0)
	var all sync.WaitGroup
	stop := make(chan struct{})
	all.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				c := &counter{}
				Run(c, 64)
				if c.times[63].Load() != 1 {
					t.Error("the last part was not done once")
				}
			}
		}
	})
	for i := range 50 {
		Threads(1, 1+i%4)
		time.Sleep(200 * time.Microsecond)
	}
	close(stop)
	all.Wait()
	Threads(2, 3)
	if len(teams.all) != 2 || len(teams.all[0].helpers) != 2 {
		t.Errorf("2 ranks of 3 threads have %d teams of %d helpers", len(teams.all), len(teams.all[0].helpers))
	}
}

// A panic of a part is raised in the caller, on whichever thread it occurred, and the team remains usable.
func TestPanicOfAPartIsTheCallers(t *testing.T) {
	withThreads(t, 3, func(t *testing.T) {
		for round := range 50 {
			c := &counter{slow: 50 * time.Microsecond}
			fault := func() (fault any) {
				defer func() { fault = recover() }()
				Run(c, 65) // of 64
				return nil
			}()
			if text, ok := fault.(string); !ok ||
				!strings.HasPrefix(text, "runtime error: index out of range [64] with length 64\n") {
				t.Fatalf("round %d: panic %v", round, fault)
			}
			Run(c, 64)
			for i := range c.times {
				if n := c.times[i].Load(); n != 2 {
					t.Fatalf("round %d: part %d was done %d times of 2", round, i, n)
				}
			}
		}
		if len(teams.free) != 1 {
			t.Errorf("%d teams are free, of 1", len(teams.free))
		}
	})
}

// The ranks' own threads and the helpers together are as many as requested.
func TestThreadsAreAsManyAsAsked(t *testing.T) {
	defer Threads(0, 0)
	for _, z := range [][2]int{{1, 1}, {1, 2}, {2, 1}, {2, 3}, {5, 4}, {3, 0}} {
		ranks, each := z[0], z[1]
		Threads(ranks, each)
		helpers := 0
		for _, team := range teams.all {
			helpers += len(team.helpers)
		}
		if got, want := ranks+helpers, ranks*max(1, each); got != want {
			t.Errorf("%d ranks of %d threads are %d threads, not %d", ranks, each, got, want)
		}
	}
}

func TestRunDoesNotAllocate(t *testing.T) {
	withThreads(t, 2, func(t *testing.T) {
		c := &counter{}
		if n := testing.AllocsPerRun(200, func() { Run(c, 64) }); n != 0 {
			t.Errorf("run allocates %v times", n)
		}
	})
}

func BenchmarkRun(b *testing.B) {
	Threads(1, 2)
	defer Threads(0, 0)
	c := &counter{}
	for b.Loop() {
		Run(c, 2)
	}
}

// inOrder is a job whose first part lasts until the others are done. It records their order.
type inOrder struct {
	mu    sync.Mutex
	order []int
	parts int
	done  chan struct{}
}

func (o *inOrder) Part(i int) {
	if i == 0 {
		<-o.done
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.order = append(o.order, i)
	if len(o.order) == o.parts-1 {
		close(o.done)
	}
}

// In turn, whichever thread is free takes the next part. Otherwise a thread takes its own parts from the
// first, and another thread's from the last. The helper may see the caller's range before its own.
func TestInTurn(t *testing.T) {
	withThreads(t, 2, func(t *testing.T) {
		for range 50 {
			untilAsleep()
			o := &inOrder{parts: 8, done: make(chan struct{})}
			RunInTurn(o, o.parts)
			if !slices.Equal(o.order, []int{1, 2, 3, 4, 5, 6, 7}) {
				t.Fatalf("parts were done in the order %v", o.order)
			}
			untilAsleep()
			o = &inOrder{parts: 8, done: make(chan struct{})}
			Run(o, o.parts)
			var own, others []int
			for _, part := range o.order {
				if part < 4 {
					others = append(others, part)
				} else {
					own = append(own, part)
				}
			}
			if !slices.Equal(own, []int{4, 5, 6, 7}) || !slices.Equal(others, []int{3, 2, 1}) {
				t.Fatalf("of threads' own parts, they were done in the order %v", o.order)
			}
		}
	})
}

// untilAsleep waits until the helpers sleep: one that is still looking for parts of the previous job may
// take parts of the next one as it would take those of the previous one.
func untilAsleep() {
	for _, t := range teams.all {
		for _, h := range t.helpers {
			for !h.asleep.Load() {
				runtime.Gosched()
			}
		}
	}
}

// A caller gets the team that it last used if several are free.
func TestTeamOfACore(t *testing.T) {
	defer Threads(0, 0)
	Threads(3, 2)
	own := asm.Core()
	for i, team := range teams.all {
		team.core = own + 1
		if i == 1 {
			team.core = own
		}
	}
	if got := teams.get(); got != teams.all[1] && asm.Core() == own {
		t.Error("another team than the core's")
	}
	if len(teams.free) != 2 || teams.free[0] == teams.all[1] || teams.free[1] == teams.all[1] {
		t.Errorf("%d teams are left", len(teams.free))
	}
}
