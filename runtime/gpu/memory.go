//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// memoryPool holds the memory of a rank: the arena, memory for single uses, and pinned memory of the host.
type memoryPool struct {
	arena     cuda.Memory // same layout as the host's arena
	ncclArena int64       // bytes of the arena if NCCL allocated it, else 0
	allocated []cuda.Memory
	pinned    []cuda.Pinned
	staging   cuda.Pinned          // buffer for copies between host and device
	tables    slab                 // constants and feeds
	feeding   pinnedSlab           // the host's side of feeds
	constants map[any]cuda.Pointer // device memory by its key
	closers   []func() error       // close what the functions called by generated code have created
}

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
func (d *memoryPool) take(bytes int) (cuda.Memory, error) {
	m, err := cuda.Alloc(int64(bytes))
	if err == nil {
		d.allocated = append(d.allocated, m)
	}
	return m, err
}

func (d *memoryPool) pin(bytes int) (cuda.Pinned, error) {
	p, err := cuda.AllocPinned(int64(bytes))
	if err == nil {
		d.pinned = append(d.pinned, p)
	}
	return p, err
}

// alloc is take for calls within a step: it panics on an error.
func (d *memoryPool) alloc(bytes int) cuda.Memory {
	m, err := d.take(bytes)
	rt.Check(err)
	return m
}

// table allocates memory for a constant or a feed.
func (d *memoryPool) table(bytes int) cuda.Memory {
	r := &d.tables
	if n := int64(bytes); r.used+n <= r.memory.Bytes {
		m := r.memory.At(r.used, n)
		r.used = (r.used + n + partAlign - 1) &^ (partAlign - 1)
		return m
	}
	return d.alloc(bytes)
}

// own returns memory that belongs to a key. Unlike scratch, no other call uses it.
func (d *memoryPool) own(key any, bytes int) cuda.Pointer {
	p, ok := d.constants[key]
	if !ok {
		p = d.alloc(bytes).Pointer
		d.constants[key] = p
	}
	return p
}

// host allocates the host's side of a feed.
func (d *memoryPool) host(bytes int64) cuda.Pinned {
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
func (d *memoryPool) Memory() (n int64) {
	for _, m := range d.allocated {
		n += m.Bytes
	}
	return n + d.ncclArena
}

// ptr returns the device address of a byte of the arena.
func (d *memoryPool) ptr(at int) cuda.Pointer { return d.arena.Pointer + cuda.Pointer(at) }

// atClose registers f to be called when the device is closed.
func (d *memoryPool) atClose(f func() error) { d.closers = append(d.closers, f) }

// optionalPtr returns the device address of a byte of the arena, and null for a negative offset.
func (d *memoryPool) optionalPtr(at int) cuda.Pointer {
	if at < 0 {
		return 0
	}
	return d.ptr(at)
}

// memory returns a part of the device's arena.
func (d *memoryPool) memory(at, bytes int) cuda.Memory { return d.arena.At(int64(at), int64(bytes)) }

// arenaMemory allocates the arena. NCCL allocates it if it can then use it in place; otherwise, or if NCCL
// fails, the driver does.
func (d *memoryPool) arenaMemory(m *machine, bytes int) (cuda.Memory, error) {
	if !m.registers() {
		return d.take(bytes)
	}
	a, err := m.nccl.Alloc(int64(bytes))
	if err != nil {
		m.ncclReport.because(err.Error())
		return d.take(bytes)
	}
	d.ncclArena = a.Bytes
	d.atClose(func() error { return m.nccl.Free(a) })
	return a, nil
}
