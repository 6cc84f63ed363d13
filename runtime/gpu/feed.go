//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// inputFeeds uploads batches, and what the host computes from them.
type inputFeeds struct {
	exec  *executor
	feeds []*feed
	loads loads
	iotas map[int]iota32 // by offset in the arena: the numbers that Iota wrote there
}

// feed is device memory whose contents the host computes from the batch. During a step, the contents for
// the next step are uploaded to the stage; when the step has ended, they are copied from there to their
// place. The host's side is double-buffered.
type feed struct {
	host      [2]cuda.Pinned
	stage, to cuda.Memory
	fill      func(to []byte)
}

// loads tracks the batches that were uploaded.
type loads struct {
	n      int
	loaded [2]*cuda.Event // of the last two uploads: they have been read from the host
	taken  *cuda.Event    // the last upload has been copied from the stage
}

func (l *loads) open() (err error) {
	for _, e := range []**cuda.Event{&l.loaded[0], &l.loaded[1], &l.taken} {
		*e, err = cuda.NewEvent(false)
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *loads) close() { closeEvents([]*cuda.Event{l.loaded[0], l.loaded[1], l.taken}) }

// turn returns the index of the host buffer of the last load.
func (l *loads) turn() int { return (l.n + 1) % 2 }

// feed returns memory that fill fills from the batch in the host's arena, now and before each later batch
// is used.
func (d *inputFeeds) feed(bytes int, fill func(to []byte)) cuda.Pointer {
	f := d.newFeed(d.exec.table(bytes), fill)
	host := f.host[d.loads.turn()]
	fill(host.Slice())
	rt.Check(d.exec.compute.stream.Upload(f.to, host))
	return f.to.Pointer
}

func (d *inputFeeds) newFeed(to cuda.Memory, fill func(to []byte)) *feed {
	f := &feed{[2]cuda.Pinned{d.exec.host(to.Bytes), d.exec.host(to.Bytes)}, d.exec.table(int(to.Bytes)), to, fill}
	d.feeds = append(d.feeds, f)
	return f
}

// Load uploads the batch in the host's arena, and the feeds computed from it, to the stage. The upload
// overlaps the running step.
func (d *inputFeeds) Load() {
	l := &d.loads
	if len(d.feeds) == 0 {
		g := d.exec.rank.Stage.Arena.Batch
		d.newFeed(d.exec.memory(g.Offset, g.Size), func(to []byte) { copy(to, d.exec.rank.Arena[g.Offset:]) })
	}
	l.n++
	if l.n > 2 {
		// returns at once: the results of that batch's step have been received
		rt.Check(l.loaded[l.turn()].Synchronize())
	}
	if l.n > 1 {
		rt.Check(d.exec.uploads.stream.Wait(l.taken))
	}
	for _, f := range d.feeds {
		host := f.host[l.turn()]
		f.fill(host.Slice())
		rt.Check(d.exec.uploads.stream.Upload(f.stage, host))
	}
}

// arrive copies what was loaded from the stage to its place, and then calls also, before the next load may
// begin.
func (d *inputFeeds) arrive(also func()) {
	l := &d.loads
	loaded := l.loaded[l.turn()]
	rt.Check(d.exec.uploads.stream.Record(loaded))
	rt.Check(d.exec.compute.stream.Wait(loaded))
	for _, f := range d.feeds {
		rt.Check(d.exec.compute.stream.Copy(f.to, f.stage))
	}
	also()
	rt.Check(d.exec.compute.stream.Record(l.taken))
}
