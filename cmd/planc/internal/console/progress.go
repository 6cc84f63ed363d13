package console

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/planc-dev/planc/planner/quantity"

	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/passes/search"
)

// progress is a line on a terminal that shows the progress of long work and is erased at its end.
type progress struct {
	after, every time.Duration                 // delay before the line is first shown, and between updates
	last         atomic.Pointer[func() string] // text of the line; nil if there is none yet
}

// newProgress returns a progress line. It is not shown for short work.
func newProgress() *progress { return &progress{after: 2 * Patience, every: Patience / 4} }

// set changes the text of the line. The function is called only when the line is shown.
func (l *progress) set(text func() string) { l.last.Store(&text) }

// EraseLine erases the current line of a terminal.
const EraseLine = "\r\x1b[K"

// RunSearch runs a search of a problem and shows its progress.
func (c *Console) RunSearch(p *search.Problem, do func() error) error {
	return c.WatchSearch(func(watch func(search.Progress)) error {
		p.Watch = watch
		return do()
	})
}

// WatchSearch runs a search that reports its progress to watch. A terminal shows it on a line; other outputs get one
// notice if the search takes long, and watch is nil.
func (c *Console) WatchSearch(do func(watch func(search.Progress)) error) error {
	if c.Quiet || !c.terminal {
		return c.RunSearches(func() error { return do(nil) })
	}
	line := newProgress()
	line.set(func() string { return "searching ..." })
	defer line.show(c.Stderr)()
	return do(func(at search.Progress) { line.set(func() string { return progressText(&at) }) })
}

// RunSearches runs several searches, whose progress is not shown.
func (c *Console) RunSearches(work func() error) error { return c.RunWithNotice("searching", work) }

// show starts to show the line. The function that it returns ends that.
func (l *progress) show(w *Stream) (end func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		shown, timer := false, time.NewTimer(l.after)
		defer timer.Stop()
		for {
			select {
			case <-stop:
				if shown {
					w.line("")
				}
				return
			case <-timer.C:
				timer.Reset(l.every)
				if text := l.last.Load(); text != nil {
					shown = true
					w.line((*text)())
				}
			}
		}
	}()
	return func() { close(stop); <-done }
}

// progressText formats the progress of a search.
func progressText(p *search.Progress) string {
	switch {
	case p.Done == 0:
		return fmt.Sprintf("searching: %s groups of plans so far", quantity.Count(p.Families))
	case p.Best == 0:
		return fmt.Sprintf("searching: %s of %s groups of plans", quantity.Count(p.Done), quantity.Count(p.Families))
	}
	return fmt.Sprintf("searching: %s of %s groups of plans, best so far %v", quantity.Count(p.Done),
		quantity.Count(p.Families), p.Best)
}

// WatchBuild shows how many packages the go command has compiled: on a progress line of a terminal, otherwise on a new
// line each second, so that no build is silent. The function that it returns ends that.
func (c *Console) WatchBuild(r *build.Request) (end func()) {
	if c.Quiet {
		return func() {}
	}
	var at atomic.Pointer[string]
	say := func(text string) { at.Store(&text) }
	say("building ...")
	r.Watch = func(done, all int) {
		if all == 0 {
			say(fmt.Sprintf("building: %d packages", done))
			return
		}
		say(fmt.Sprintf("building: %d of %d packages", done, all))
	}
	return c.WatchWork(func() string { return *at.Load() })
}

// WatchWork shows how far long work is: on a progress line of a terminal, otherwise on a new line each second. The
// function that it returns ends that.
func (c *Console) WatchWork(text func() string) (end func()) {
	switch {
	case c.Quiet:
		return func() {}
	case c.terminal:
		line := &progress{after: Patience, every: Patience / 4}
		line.set(text)
		return line.show(c.Stderr)
	}
	return repeatEvery(Patience, func() { c.Notef("%s", text()) })
}

// repeatEvery calls f at each interval until end is called, which waits for the last call.
func repeatEvery(interval time.Duration, f func()) (end func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		timer := time.NewTimer(interval)
		defer timer.Stop()
		for {
			select {
			case <-stop:
				return
			case <-timer.C:
				f()
				timer.Reset(interval)
			}
		}
	}()
	return func() { close(stop); <-done }
}

// WatchKernels shows on a terminal how many kernels have been compiled. The function that it returns ends that.
func (c *Console) WatchKernels(r *build.KernelRequest) (end func()) {
	if c.Quiet || !c.terminal {
		return func() {}
	}
	line := newProgress()
	r.Watch = func(done, all int) {
		line.set(func() string { return fmt.Sprintf("kernels  %d of %d", done, all) })
	}
	return line.show(c.Stderr)
}
