package runtime

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
)

// prefetcher reads the training batches that come next while the ranks work on others.
type prefetcher struct {
	from   reader
	end    int64 // first sample that training does not read
	size   int64
	next   int64                 // sample of the batch that is read next
	err    error                 // with which reading ended
	spares []*batch              // to be freed at the next take
	free   chan *batch           // to be filled
	ready  chan *batch           // closed when none is filled any more
	fault  atomic.Pointer[error] // of the batch that could not be read
}

// newPrefetcher begins to read the batch at sample first. As many batches as used may have been taken and not given back.
func newPrefetcher(from reader, first, end int64, l *BatchLayout, used int) *prefetcher {
	samples := l.GlobalBatch
	f := &prefetcher{from: from, end: end, size: int64(samples), next: first, free: make(chan *batch, used+1), ready: make(chan *batch, used+1)}
	for range used {
		f.give(newBatch(samples, l))
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

// fill reads a batch, or leaves in it why it could not.
func (f *prefetcher) fill(b *batch) {
	defer func() {
		if x := recover(); x != nil { // a Source is the caller's code
			b.err = fmt.Errorf("reading samples from %d on: %v\n%s", f.next, x, debug.Stack())
		}
	}()
	if b.read(f.from, f.next, f.end); b.err == nil && b.counted() == 0 {
		b.err = exitf(ExitInput, "samples %d to %d, which are one step: not a single position counts, so there is nothing to learn from; "+
			"each is past its sample's unmasked, or has a negative label", f.next, min(f.next+f.size, f.end)-1)
	}
}

// take is the next batch, good until it is given back.
func (f *prefetcher) take() (*batch, error) {
	if f.err != nil {
		return nil, f.err
	}
	b := <-f.ready
	if f.err = b.err; f.err != nil {
		return nil, f.err
	}
	for _, s := range f.spares {
		f.free <- s
	}
	f.spares = f.spares[:0]
	return b, nil
}

// failed is the error of a batch that was read and not taken yet, nil if there is none.
func (f *prefetcher) failed() error {
	if err := f.fault.Load(); err != nil {
		return *err
	}
	return nil
}

// give gives back a batch that was taken.
func (f *prefetcher) give(b *batch) { f.spares = append(f.spares, b) }

// stop waits for the read under way.
func (f *prefetcher) stop() {
	close(f.free)
	for range f.ready {
	}
}
