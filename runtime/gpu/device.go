//go:build cuda && linux

package gpu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
	rt "github.com/planc-dev/planc/runtime"
)

// device is the GPU of a rank.
type device struct {
	rank         *rt.Rank
	images       fs.FS
	context      *cuda.Context
	unbind       func()
	blas         *cuda.GEMMs
	dnnAttention dnnAttention

	arena     cuda.Memory // same layout as the host's arena
	fence     fence
	ncclArena int64 // bytes of the arena if NCCL allocated it, else 0
	allocated []cuda.Memory
	pinned    []cuda.Pinned
	staging   cuda.Pinned // buffer for copies between host and device
	tables    slab        // constants and feeds
	feeding   pinnedSlab  // the host's side of feeds
	modules   *modules
	kernels   map[string]*cuda.Kernel
	argBuffer cuda.Args

	compute    *workStream // kernels, and the collectives of a block
	bucketWork *workStream // jobs of buckets
	uploads    *workStream // uploads from the host during a step
	current    *workStream // stream of the next calls: compute, except while a job is launched
	streams    []*workStream
	pipes      map[string]*pipe
	jobs       [][jobKinds]*cuda.Event // by bucket: the event that its waiters wait for

	comms        []*cuda.Comm
	commByLine   map[string]*comm         // by line name; nil for a rank without peers
	activity     atomic.Pointer[activity] // what the rank's goroutine does now
	longestStep  atomic.Uint64            // duration of the longest step so far, in seconds, as the bits of a float64
	stopWatch    chan struct{}            // closed to stop watch: the communicators need not be aborted any more
	watchStopped chan struct{}            // closed when watch has returned

	constants map[any]cuda.Pointer // device memory by its key
	iotas     map[int]iota32       // by offset in the arena: the numbers that Iota wrote there
	gemmPlans map[cuda.GEMM]*cuda.GEMMPlan
	timed     map[cuda.GEMM]bool // GEMMs, without addresses, whose fastest algorithm is known
	refused   map[cuda.GEMM]bool // GEMMs, without addresses, that cuBLASLt does not support

	multiProcess bool // other processes have ranks too, which do not meet on this host
	step         step
	feeds        []*feed
	loads        loads
	drops        drops
	routers      routers
	closers      []func() error // close what the functions called by generated code have created
}

// deviceOf returns the rank's device.
func deviceOf(r *rt.Rank) *device { return r.Device.(*device) }

// args returns the empty arguments of the next launch.
func (d *device) args() *cuda.Args { return d.argBuffer.Reset() }

// ptr returns the device address of a byte of the arena.
func (d *device) ptr(at int) cuda.Pointer { return d.arena.Pointer + cuda.Pointer(at) }

// launch enqueues a kernel on the current stream. The name includes the types' suffix.
func (d *device) launch(name string, shape kernels.Launch, args *cuda.Args) {
	k := d.kernels[name]
	if k == nil {
		var err error
		k, err = d.modules.find(name)
		rt.Check(err)
		d.kernels[name] = k
	}
	rt.Check(d.current.stream.Launch(k, cuda.Shape{Grid: shape.Grid, Block: shape.Block}, args))
}

// run launches a kernel of the table on the current stream, with the geometry that the table gives for
// these rows and columns.
func (d *device) run(name, types string, rows, cols int, args *cuda.Args) {
	d.launch(name+"_"+types, family(name).Launch(rows, cols), args)
}

// family returns a kernel's row of the table.
func family(name string) *kernels.Kernel {
	k := families()[name]
	if k == nil {
		panic("gpu: unknown kernel " + name)
	}
	return k
}

var families = sync.OnceValue(func() map[string]*kernels.Kernel {
	all := map[string]*kernels.Kernel{}
	for i := range kernels.Table {
		all[kernels.Table[i].Name] = &kernels.Table[i]
	}
	return all
})

// stream returns the current stream.
func (d *device) stream() *cuda.Stream { return d.current.stream }

// scratch returns memory of this size for one call. The next caller on the same stream gets the same
// memory. It grows in the first step, so that it is large enough in a captured one.
func (d *device) scratch(bytes int) cuda.Pointer { return d.scratchMemory(bytes).Pointer }

// scratchMemory returns scratch as the memory range that the copies of package cuda take.
func (d *device) scratchMemory(bytes int) cuda.Memory {
	if l := d.current; int64(bytes) > l.scratch.Bytes {
		l.scratch = d.alloc(max(bytes, 1<<16)) // the old memory is kept for enqueued work and for graphs
	}
	return d.current.scratch.At(0, int64(bytes))
}

// group returns the communicator of one of the program's groups, for the compute stream. It returns nil if
// the rank is the only member.
func (d *device) group(group int) *comm {
	if group < 0 {
		return nil
	}
	return d.commByLine[rt.MainLine(group)]
}

// atClose registers f to be called when the device is closed.
func (d *device) atClose(f func() error) { d.closers = append(d.closers, f) }

// open initializes the rank's GPU.
func (d *device) open(m *machine) (err error) {
	d.multiProcess = m.multiProcess
	d.context, err = m.gpu(d.rank.ID).Open()
	if err != nil {
		return err
	}
	d.unbind, err = d.context.Bind()
	if err != nil {
		return err
	}
	d.blas, err = m.blas.NewGEMMs()
	if err != nil {
		return err
	}
	gpu := d.context.Device
	d.modules, err = newModules(d.images, fmt.Sprintf("%d%d", gpu.Major, gpu.Minor))
	if err != nil {
		return err
	}
	d.kernels = map[string]*cuda.Kernel{}
	d.constants, d.iotas, d.gemmPlans = map[any]cuda.Pointer{}, map[int]iota32{}, map[cuda.GEMM]*cuda.GEMMPlan{}
	d.timed, d.refused = map[cuda.GEMM]bool{}, map[cuda.GEMM]bool{}
	err = d.modules.load()
	if err != nil {
		return err
	}
	err = d.openStreams()
	if err != nil {
		return err
	}
	err = d.openMemory(m)
	if err != nil {
		return err
	}
	err = d.openDNNAttention(m)
	if err != nil {
		return err
	}
	err = errors.Join(d.step.open(d, m), d.loads.open())
	if err != nil {
		return err
	}
	return d.openLines(m)
}

// Close frees what the device has allocated. Errors are ignored: after a failed run the libraries may
// refuse to free, and the first error has been reported.
func (d *device) Close() {
	if d.unbind == nil {
		return
	}
	if !d.failed() && d.compute != nil { // a step may be running whose result nobody waited for
		_ = d.compute.stream.Synchronize()
	}
	d.closeArena()
	d.step.forget() // before communicators, which NCCL only ends after all graphs with their work
	d.closeLines()
	for _, f := range d.closers {
		_ = f()
	}
	d.step.close()
	d.loads.close()
	for _, p := range d.pinned {
		_ = p.Free()
	}
	for _, m := range d.allocated {
		_ = m.Free()
	}
	if d.modules != nil {
		_ = d.modules.close()
	}
	if d.blas != nil {
		_ = d.blas.Close()
	}
	d.unbind()
	_ = d.context.Close()
}

// failed reports whether the run has failed.
func (d *device) failed() bool {
	select {
	case <-d.rank.Done():
		return true
	default:
		return false
	}
}

// runContext returns a context that is canceled when the run fails.
func (d *device) runContext() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		select {
		case <-d.rank.Done():
			cancel(errors.New("another rank has failed"))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
