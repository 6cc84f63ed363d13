//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// most is how many bytes travel at a time.
const most = 16 << 20

// Push brings a part of the host's arena to the device.
func (d *device) Push(at, bytes int) {
	d.travel(at, bytes, func(host []byte, pinned cuda.Pinned, memory cuda.Memory) {
		copy(pinned.Slice(), host)
		rt.Check(d.compute.stream.Upload(memory, pinned))
		rt.Check(d.compute.stream.Synchronize())
	})
}

// Pull brings a part of the device's arena to the host.
func (d *device) Pull(at, bytes int) {
	d.travel(at, bytes, func(host []byte, pinned cuda.Pinned, memory cuda.Memory) {
		rt.Check(d.compute.stream.Download(pinned, memory))
		rt.Check(d.compute.stream.Synchronize())
		copy(host, pinned.Slice())
	})
}

// travel cuts a part of the arena into pieces that the staging memory takes.
func (d *device) travel(at, bytes int, move func(host []byte, pinned cuda.Pinned, memory cuda.Memory)) {
	for end := at + bytes; at < end; at += most {
		n := min(end-at, most)
		move(d.rank.Arena[at:at+n], d.staging.At(0, int64(n)), d.memory(at, n))
	}
}

// feed is memory of the device that follows from the batch, as the host makes it.
type feed struct {
	host cuda.Pinned
	to   cuda.Memory
	fill func(to []byte)
}

// feed returns memory of so many bytes that fill fills, of the batch in the host's arena, now and for each batch that
// follows, before anything is done with that.
func (d *device) feed(bytes int, fill func(to []byte)) cuda.Pointer {
	f := d.newFeed(d.table(bytes), fill)
	rt.Check(f.upload(d.compute))
	return f.to.Pointer
}

func (d *device) newFeed(to cuda.Memory, fill func(to []byte)) *feed {
	f := &feed{d.host(to.Bytes), to, fill}
	d.feeds = append(d.feeds, f)
	return f
}

func (f *feed) upload(l *line) error {
	f.fill(f.host.Slice())
	return l.stream.Upload(f.to, f.host)
}

// Load brings the batch in the host's arena to the device, and what follows from it. What was loaded before is not under way
// any more: each step and each evaluation ends with waiting for it.
func (d *device) Load() {
	if len(d.feeds) == 0 {
		g := d.rank.Stage.Arena.Batch
		d.newFeed(d.memory(g.Offset, g.Size), func(to []byte) { copy(to, d.rank.Arena[g.Offset:]) })
	}
	for _, f := range d.feeds {
		rt.Check(f.upload(d.compute))
	}
}
