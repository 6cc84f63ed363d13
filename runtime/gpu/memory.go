//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// Memory is allocated when the device is opened, as far as its size is known. Later, allocating and freeing
// may wait for kernels of all devices, and a peer's kernels may wait for work that this rank has not
// launched yet.
const (
	tableBytes = 8 << 20 // for constants and feeds; more is allocated in the first step
	sumBytes   = 1 << 20 // for sums, in addition to the workspace of a GEMM
	feedBatch  = 8       // host memory for feeds, in batches
)

// slab is memory that is handed out in parts and never returned.
type slab struct {
	memory cuda.Memory
	used   int64
}

// pinnedSlab is a slab of pinned memory.
type pinnedSlab struct {
	memory cuda.Pinned
	bytes  int64
	used   int64
}

// openMemory allocates the memory of a step.
func (d *device) openMemory(m *machine) (err error) {
	err = d.allocArena(m, d.rank.Stage.Arena.Size)
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
	d.staging, err = d.pin(stagingBytes)
	if err != nil {
		return err
	}
	d.feeding.bytes = int64(feedBatch*d.rank.Stage.Arena.Batch.Size + 1<<16)
	d.feeding.memory, err = d.pin(int(d.feeding.bytes))
	return err
}

// take allocates memory until the device is closed. pin does so with pinned memory.
func (d *device) take(bytes int) (cuda.Memory, error) {
	m, err := cuda.Alloc(int64(bytes))
	if err == nil {
		d.allocated = append(d.allocated, m)
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

// alloc is take for calls within a step: it panics on an error.
func (d *device) alloc(bytes int) cuda.Memory {
	m, err := d.take(bytes)
	rt.Check(err)
	return m
}

// table allocates memory for a constant or a feed.
func (d *device) table(bytes int) cuda.Memory {
	r := &d.tables
	if n := int64(bytes); r.used+n <= r.memory.Bytes {
		m := r.memory.At(r.used, n)
		r.used = (r.used + n + partAlign - 1) &^ (partAlign - 1)
		return m
	}
	return d.alloc(bytes)
}

// own returns memory that belongs to a key. Unlike scratch, no other call uses it.
func (d *device) own(key any, bytes int) cuda.Pointer {
	p, ok := d.constants[key]
	if !ok {
		p = d.alloc(bytes).Pointer
		d.constants[key] = p
	}
	return p
}

// host allocates the host's side of a feed.
func (d *device) host(bytes int64) cuda.Pinned {
	r := &d.feeding
	if r.used+bytes <= r.bytes {
		p := r.memory.At(r.used, bytes)
		r.used = (r.used + bytes + partAlign - 1) &^ (partAlign - 1)
		return p
	}
	p, err := d.pin(int(bytes))
	rt.Check(err)
	return p
}

// Memory returns the bytes that the rank has allocated, without what libraries allocate for themselves.
func (d *device) Memory() (n int64) {
	for _, m := range d.allocated {
		n += m.Bytes
	}
	return n + d.ncclArena
}
