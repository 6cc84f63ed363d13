package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/planc-dev/planc/codegen/build"
	"github.com/planc-dev/planc/passes/search"
)

// progress is the line that long work shows on a terminal, and takes away again.
type progress struct {
	after, every time.Duration                 // until it is shown first, and anew
	last         atomic.Pointer[func() string] // what it says; nil: nothing yet
}

// newProgress is a line that short work does not show.
func newProgress() *progress { return &progress{after: 2 * patience, every: patience / 4} }

// set changes what the line says; text is asked for only when it is shown.
func (l *progress) set(text func() string) { l.last.Store(&text) }

// eraseLine begins a terminal's line anew, empty.
const eraseLine = "\r\x1b[K"

// runSearch runs a search of a problem and shows its progress.
func (a *app) runSearch(p *search.Problem, do func() error) error {
	return a.watchSearch(func(watch func(search.Progress)) error {
		p.Watch = watch
		return do()
	})
}

// watchSearch runs a search that reports its progress to watch. A terminal shows it on a line; other outputs get one
// notice if the search takes long, and watch is nil.
func (a *app) watchSearch(do func(watch func(search.Progress)) error) error {
	if a.quiet || !a.terminal {
		return a.runSearches(func() error { return do(nil) })
	}
	line := newProgress()
	line.set(func() string { return "searching ..." })
	defer line.show(a.stderr)()
	return do(func(at search.Progress) { line.set(func() string { return progressText(&at) }) })
}

// runSearches runs several searches, whose progress is not shown.
func (a *app) runSearches(work func() error) error { return a.runWithNotice("searching", work) }

// show begins to show the line; what it returns ends that.
func (l *progress) show(w *screen) (end func()) {
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

// progressText says how far a search is.
func progressText(p *search.Progress) string {
	switch {
	case p.Done == 0:
		return fmt.Sprintf("searching: %s families of plans so far", grouped(p.Families))
	case p.Best == 0:
		return fmt.Sprintf("searching: %s of %s families of plans", grouped(p.Done), grouped(p.Families))
	}
	return fmt.Sprintf("searching: %s of %s families of plans, the best so far %v", grouped(p.Done),
		grouped(p.Families), p.Best)
}

// isTerminal tells whether what is written to w is read by a person at once.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// watchBuild says how many packages the go command has compiled: at once on a line of a terminal, elsewhere on a
// line of its own each second, so that no build is silent. What it returns ends that.
func (a *app) watchBuild(r *build.Request) (end func()) {
	if a.quiet {
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
	if a.terminal {
		line := &progress{after: patience, every: patience / 4}
		line.set(func() string { return *at.Load() })
		return line.show(a.stderr)
	}
	return repeatEvery(patience, func() { a.notef("%s", *at.Load()) })
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
