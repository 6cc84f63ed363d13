//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// feed is memory of the device that follows from the batch, as the host makes it. What the host makes for a step comes
// to the stage while the step before runs, and from there to its place when that has ended. On the host two batches
// take turns.
type feed struct {
	host      [2]cuda.Pinned
	stage, to cuda.Memory
	fill      func(to []byte)
}

// loads are batches that were brought.
type loads struct {
	n      int
	loaded [2]*cuda.Event // of the last two: they have left the host
	taken  *cuda.Event    // the last has left the stage
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

// turn is whose turn the last load was.
func (l *loads) turn() int { return (l.n + 1) % 2 }

// feed returns memory of so many bytes that fill fills, of the batch in the host's arena, now and for each batch that
// follows, before anything is done with that.
func (d *device) feed(bytes int, fill func(to []byte)) cuda.Pointer {
	f := d.newFeed(d.table(bytes), fill)
	host := f.host[d.loads.turn()]
	fill(host.Slice())
	rt.Check(d.compute.stream.Upload(f.to, host))
	return f.to.Pointer
}

func (d *device) newFeed(to cuda.Memory, fill func(to []byte)) *feed {
	f := &feed{[2]cuda.Pinned{d.host(to.Bytes), d.host(to.Bytes)}, d.table(int(to.Bytes)), to, fill}
	d.feeds = append(d.feeds, f)
	return f
}

// Load brings the batch in the host's arena to the device, and what follows from it, beside the step that runs: as far
// as the stage.
func (d *device) Load() {
	l := &d.loads
	if len(d.feeds) == 0 {
		g := d.rank.Stage.Arena.Batch
		d.newFeed(d.memory(g.Offset, g.Size), func(to []byte) { copy(to, d.rank.Arena[g.Offset:]) })
	}
	l.n++
	if l.n > 2 {
		rt.Check(l.loaded[l.turn()].Synchronize()) // long ago: the step of that batch has been heard of
	}
	if l.n > 1 {
		rt.Check(d.copies.stream.Wait(l.taken))
	}
	for _, f := range d.feeds {
		host := f.host[l.turn()]
		f.fill(host.Slice())
		rt.Check(d.copies.stream.Upload(f.stage, host))
	}
}

// arrive brings what was loaded from the stage to where work looks for it, and does what else is to be done before the
// next load.
func (d *device) arrive(also func()) {
	l := &d.loads
	loaded := l.loaded[l.turn()]
	rt.Check(d.copies.stream.Record(loaded))
	rt.Check(d.compute.stream.Wait(loaded))
	for _, f := range d.feeds {
		rt.Check(d.compute.stream.Copy(f.to, f.stage))
	}
	also()
	rt.Check(d.compute.stream.Record(l.taken))
}
