package runtime

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// stopWithin is how long the end of a run waits for a read that is under way. A read of a disk that hangs may never
// end.
const stopWithin = 2 * time.Second

// errStopRequested says that the run was asked to stop while it waited for samples.
var errStopRequested = errors.New("asked to stop while samples were read")

// prefetcher reads the batches that come next while the ranks work on others.
type prefetcher struct {
	from   reader
	end    int64 // first sample that is not read
	size   int64
	atOnce int                   // samples of a batch that are read at the same time
	next   int64                 // sample of the batch that is read next
	err    error                 // with which reading ended
	held   *batch                // came while wait waited
	spares []*batch              // to be freed at the next take
	free   chan *batch           // to be filled
	ready  chan *batch           // closed when none is filled any more
	fault  atomic.Pointer[error] // of the batch that could not be read
}

// newPrefetcher begins to read batches of so many samples from sample first on. As many of them as used may have been
// taken and not given back.
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

// serve fills batches until no more come, or one cannot be.
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

// slowSample is the time that tells samples which come from a disk or a network from those which are in memory already:
// these are read one after the other, since more readers would only take processors from the ranks.
const slowSample = 50 * time.Microsecond

// fill reads a batch, or leaves in it why it could not.
func (f *prefetcher) fill(b *batch) {
	begun := time.Now()
	b.read(f.from, f.next, f.end, f.atOnce)
	if time.Since(begun)*time.Duration(f.atOnce) < time.Duration(f.size)*slowSample {
		f.atOnce = 1
	} else {
		f.atOnce = max(1, f.from.atOnce)
	}
	if b.err == nil && f.from.label == "" && b.counted() == 0 {
		b.err = exitf(ExitInput, "samples %d to %d, which are one step: not a single position counts, so there is "+
			"nothing to learn from; "+
			"each is past its sample's unmasked, or has a negative label", f.next, min(f.next+f.size, f.end)-1)
	}
}

// openDevices is the next batch, good until it is given back. Its error is errAsked if no batch was there and stop is
// closed.
func (f *prefetcher) take(stop <-chan struct{}) (*batch, error) {
	if f.err != nil {
		return nil, f.err
	}
	b := f.held
	f.held = nil
	if b == nil {
		select {
		case b = <-f.ready: // even if stop is closed, too
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

// readError is the error of a batch that was read and not taken yet, nil if there is none.
func (f *prefetcher) readError() error {
	if err := f.fault.Load(); err != nil {
		return *err
	}
	return nil
}

// wait waits until a batch is ready, stop is closed or the time is over.
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

// isLate tells whether take would have to wait.
func (f *prefetcher) isLate() bool { return f.err == nil && f.held == nil && len(f.ready) == 0 }

// storeBack gives back a batch that was taken.
func (f *prefetcher) putBack(b *batch) { f.spares = append(f.spares, b) }

// stop waits for the read under way, but not for ever.
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

// recovered has a panic of a Source, which is the caller's code, be an error.
func recovered(g int64, err *error) {
	if x := recover(); x != nil {
		*err = fmt.Errorf("reading samples from %d on: %v\n%s", g, x, debug.Stack())
	}
}
