//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// Memory is taken when the device is opened, as far as it is known how much: later, taking and giving back can wait for
// kernels of all devices, and those of a peer may wait for what this rank has not begun.
const (
	tableBytes = 8 << 20 // for constants and feeds; what does not fit is taken in the first step
	sumBytes   = 1 << 20 // for sums beside a product's workspace
	feedBatch  = 8       // for feeds there is room, on the host, of so many batches
)

// room is memory that is given out in parts, for good.
type room struct {
	memory cuda.Memory
	used   int64
}

// desk is pinned memory that is.
type desk struct {
	memory cuda.Pinned
	bytes  int64
	used   int64
}

// openMemory takes what a step needs.
func (d *device) openMemory(m *machine) (err error) {
	err = d.takeArena(m, d.rank.Stage.Arena.Size)
	if err != nil {
		return err
	}
	d.tables.memory, err = d.take(tableBytes)
	if err != nil {
		return err
	}
	d.compute.scratch, err = d.take(workspace + sumBytes)
	if err != nil {
		return err
	}
	d.staging, err = d.pin(most)
	if err != nil {
		return err
	}
	d.feeding.bytes = int64(feedBatch*d.rank.Stage.Arena.Batch.Size + 1<<16)
	d.feeding.memory, err = d.pin(int(d.feeding.bytes))
	return err
}

// take is memory until the device is closed, and pin pinned memory.
func (d *device) take(bytes int) (cuda.Memory, error) {
	m, err := cuda.Alloc(int64(bytes))
	if err == nil {
		d.taken = append(d.taken, m)
	}
	return m, err
}

func (d *device) pin(bytes int) (cuda.Pinned, error) {
	p, err := cuda.AllocPinned(int64(bytes))
	if err == nil {
		d.pinned = append(d.pinned, p)
	}
	return p, err
}

// alloc is take of what a step wants.
func (d *device) alloc(bytes int) cuda.Memory {
	m, err := d.take(bytes)
	rt.Check(err)
	return m
}

// table is memory for a constant or a feed.
func (d *device) table(bytes int) cuda.Memory {
	r := &d.tables
	if n := int64(bytes); r.used+n <= r.memory.Bytes {
		m := r.memory.At(r.used, n)
		r.used = (r.used + n + roomAlign - 1) &^ (roomAlign - 1)
		return m
	}
	return d.alloc(bytes)
}

// own is memory that nothing else has but what is called with the key: as scratch, but where it stays.
func (d *device) own(key any, bytes int) cuda.Pointer {
	p, ok := d.constants[key]
	if !ok {
		p = d.alloc(bytes).Pointer
		d.constants[key] = p
	}
	return p
}

// host is the host's side of a feed.
func (d *device) host(bytes int64) cuda.Pinned {
	r := &d.feeding
	if r.used+bytes <= r.bytes {
		p := r.memory.At(r.used, bytes)
		r.used = (r.used + bytes + roomAlign - 1) &^ (roomAlign - 1)
		return p
	}
	p, err := d.pin(int(bytes))
	rt.Check(err)
	return p
}

// Memory is how many bytes the rank has taken, besides what libraries take for themselves.
func (d *device) Memory() (n int64) {
	for _, m := range d.taken {
		n += m.Bytes
	}
	return n + d.ncclArena
}
