package feed

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/program"
)

// stopWithin is how long the end of a run waits for a read in progress, because a read from a hanging disk may never
// end.
const stopWithin = 2 * time.Second

// ErrStopRequested is returned if the run is asked to stop while it waits for samples.
var ErrStopRequested = errors.New("asked to stop while samples were read")

// Prefetcher reads the next batches while the ranks work on the current one.
type Prefetcher struct {
	from   Reader
	end    int64 // number of the first sample that is not read
	size   int64
	atOnce int                   // samples of a batch that are read concurrently
	next   int64                 // first sample of the batch that is read next
	err    error                 // error that ended reading
	held   *Batch                // arrived during wait
	spares []*Batch              // put back; reused from the next take on
	free   chan *Batch           // batches to fill
	ready  chan *Batch           // filled batches; closed at the end
	fault  atomic.Pointer[error] // error of the batch that could not be read
}

// New starts to read batches of some samples each, from sample first. The caller may hold used batches that
// it has taken and not put back.
func New(from Reader, first, end int64, l *program.BatchLayout, samples, used int) *Prefetcher {
	f := &Prefetcher{from: from, end: end, size: int64(samples), atOnce: max(1, from.atOnce), next: first,
		free: make(chan *Batch, used+1), ready: make(chan *Batch, used+1)}
	for range used {
		f.PutBack(NewBatch(samples, l))
	}
	go f.serve()
	f.free <- NewBatch(samples, l)
	return f
}

// serve fills batches until the prefetcher stops or a read fails.
func (f *Prefetcher) serve() {
	defer close(f.ready)
	for b := range f.free {
		f.fill(b)
		f.next += f.size
		if b.Err != nil {
			f.fault.Store(&b.Err)
		}
		f.ready <- b
		if b.Err != nil {
			return
		}
	}
}

// slowSample is the time per sample above which samples are read concurrently, because they come from a disk or a
// network. Samples in memory are read one by one: more readers would only take processors from the ranks.
const slowSample = 50 * time.Microsecond

// fill reads a batch and stores the error in it, if any.
func (f *Prefetcher) fill(b *Batch) {
	begun := time.Now()
	b.Read(f.from, f.next, f.end, f.atOnce)
	if time.Since(begun)*time.Duration(f.atOnce) < time.Duration(f.size)*slowSample {
		f.atOnce = 1
	} else {
		f.atOnce = max(1, f.from.atOnce)
	}
	if b.Err == nil && f.from.label == "" && b.Counted() == 0 {
		b.Err = exit.Errorf(exit.Input, "samples %d to %d, which are one step, have no position that counts, so there "+
			"is nothing to learn from; "+
			"each position is after its sample's unmasked, or has a negative label", f.next,
			min(f.next+f.size, f.end)-1)
	}
}

// Take returns the next batch, which is valid until it is put back. It returns errStopRequested if no batch is ready
// and stop is closed.
func (f *Prefetcher) Take(stop <-chan struct{}) (*Batch, error) {
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
				return nil, ErrStopRequested
			}
		}
	}
	f.err = b.Err
	if f.err != nil {
		return nil, f.err
	}
	for _, s := range f.spares {
		f.free <- s
	}
	f.spares = f.spares[:0]
	return b, nil
}

// ReadError returns the error of a batch that was read but not yet taken; nil if there is none.
func (f *Prefetcher) ReadError() error {
	if err := f.fault.Load(); err != nil {
		return *err
	}
	return nil
}

// Wait waits until a batch is ready, stop is closed, or the time most has passed.
func (f *Prefetcher) Wait(stop <-chan struct{}, limit time.Duration) {
	if f.IsLate() {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		select {
		case f.held = <-f.ready:
		case <-stop:
		case <-timer.C:
		}
	}
}

// IsLate reports whether take would have to wait.
func (f *Prefetcher) IsLate() bool { return f.err == nil && f.held == nil && len(f.ready) == 0 }

// PutBack returns a batch that was taken.
func (f *Prefetcher) PutBack(b *Batch) { f.spares = append(f.spares, b) }

// Stop stops reading. It waits for the read in progress, but not longer than stopWithin.
func (f *Prefetcher) Stop() {
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
