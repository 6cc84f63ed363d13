package runtime

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/planc-dev/planc/runtime/exit"
)

// stopWithin is how long the end of a run waits for a read in progress, because a read from a hanging disk may never
// end.
const stopWithin = 2 * time.Second

// errStopRequested is returned if the run is asked to stop while it waits for samples.
var errStopRequested = errors.New("asked to stop while samples were read")

// prefetcher reads the next batches while the ranks work on the current one.
type prefetcher struct {
	from   reader
	end    int64 // number of the first sample that is not read
	size   int64
	atOnce int                   // samples of a batch that are read concurrently
	next   int64                 // first sample of the batch that is read next
	err    error                 // error that ended reading
	held   *batch                // arrived during wait
	spares []*batch              // put back; reused from the next take on
	free   chan *batch           // batches to fill
	ready  chan *batch           // filled batches; closed at the end
	fault  atomic.Pointer[error] // error of the batch that could not be read
}

// newPrefetcher starts to read batches of some samples each, from sample first. The caller may hold used batches that
// it has taken and not put back.
func newPrefetcher(from reader, first, end int64, l *BatchLayout, samples, used int) *prefetcher {
	f := &prefetcher{from: from, end: end, size: int64(samples), atOnce: max(1, from.atOnce), next: first,
		free: make(chan *batch, used+1), ready: make(chan *batch, used+1)}
	for range used {
		f.putBack(newBatch(samples, l))
	}
	go f.serve()
	f.free <- newBatch(samples, l)
	return f
}

// serve fills batches until the prefetcher stops or a read fails.
func (f *prefetcher) serve() {
	defer close(f.ready)
	for b := range f.free {
		f.fill(b)
		f.next += f.size
		if b.err != nil {
			f.fault.Store(&b.err)
		}
		f.ready <- b
		if b.err != nil {
			return
		}
	}
}

// slowSample is the time per sample above which samples are read concurrently, because they come from a disk or a
// network. Samples in memory are read one by one: more readers would only take processors from the ranks.
const slowSample = 50 * time.Microsecond

// fill reads a batch and stores the error in it, if any.
func (f *prefetcher) fill(b *batch) {
	begun := time.Now()
	b.read(f.from, f.next, f.end, f.atOnce)
	if time.Since(begun)*time.Duration(f.atOnce) < time.Duration(f.size)*slowSample {
		f.atOnce = 1
	} else {
		f.atOnce = max(1, f.from.atOnce)
	}
	if b.err == nil && f.from.label == "" && b.counted() == 0 {
		b.err = exit.Errorf(exit.Input, "samples %d to %d, which are one step, have no position that counts, so there "+
			"is nothing to learn from; "+
			"each position is after its sample's unmasked, or has a negative label", f.next,
			min(f.next+f.size, f.end)-1)
	}
}

// take returns the next batch, which is valid until it is put back. It returns errStopRequested if no batch is ready
// and stop is closed.
func (f *prefetcher) take(stop <-chan struct{}) (*batch, error) {
	if f.err != nil {
		return nil, f.err
	}
	b := f.held
	f.held = nil
	if b == nil {
		select {
		case b = <-f.ready: // has priority over stop
		default:
			select {
			case b = <-f.ready:
			case <-stop:
				return nil, errStopRequested
			}
		}
	}
	f.err = b.err
	if f.err != nil {
		return nil, f.err
	}
	for _, s := range f.spares {
		f.free <- s
	}
	f.spares = f.spares[:0]
	return b, nil
}

// readError returns the error of a batch that was read but not yet taken; nil if there is none.
func (f *prefetcher) readError() error {
	if err := f.fault.Load(); err != nil {
		return *err
	}
	return nil
}

// wait waits until a batch is ready, stop is closed, or the time most has passed.
func (f *prefetcher) wait(stop <-chan struct{}, most time.Duration) {
	if f.isLate() {
		timer := time.NewTimer(most)
		defer timer.Stop()
		select {
		case f.held = <-f.ready:
		case <-stop:
		case <-timer.C:
		}
	}
}

// isLate reports whether take would have to wait.
func (f *prefetcher) isLate() bool { return f.err == nil && f.held == nil && len(f.ready) == 0 }

// putBack returns a batch that was taken.
func (f *prefetcher) putBack(b *batch) { f.spares = append(f.spares, b) }

// stop stops reading. It waits for the read in progress, but not longer than stopWithin.
func (f *prefetcher) stop() {
	close(f.free)
	timer := time.NewTimer(stopWithin)
	defer timer.Stop()
	for {
		select {
		case _, more := <-f.ready:
			if !more {
				return
			}
		case <-timer.C:
			return
		}
	}
}

// recovered turns a panic in a Source, which is the caller's code, into an error.
func recovered(g int64, err *error) {
	if x := recover(); x != nil {
		*err = fmt.Errorf("reading samples from %d on: %v\n%s", g, x, debug.Stack())
	}
}
