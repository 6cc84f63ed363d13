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
	rank    *rt.Rank
	images  fs.FS
	context *cuda.Context
	unbind  func()
	blas    *cuda.GEMMs
	fused   fused

	arena     cuda.Memory // laid out as the host's
	fence     fence
	ncclArena int64 // its bytes where NCCL took it, else 0
	taken     []cuda.Memory
	pinned    []cuda.Pinned
	staging   cuda.Pinned // what travels goes by it
	tables    room        // constants and feeds
	feeding   desk        // the host's side of feeds
	modules   *modules
	kernels   map[string]*cuda.Kernel
	packed    cuda.Args

	compute *line // kernels and a block's own collectives
	side    *line // buckets' jobs
	copies  *line // what comes from the host while a step runs
	on      *line // what calls are put on: compute, but while a job is begun
	lines   []*line
	pipes   map[string]*pipe
	jobs    [][jobKinds]*cuda.Event // of each bucket, what its waiters wait for

	comms     []*cuda.Comm
	byLine    map[string]*comm         // by the name of the rank's lines; nil for a rank alone
	under     atomic.Pointer[underway] // what the rank's goroutine does now
	longest   atomic.Uint64            // seconds of the longest step so far, a float64's bits
	watched   chan struct{}            // closed when nobody needs to abort the communicators any more
	unwatched chan struct{}            // closed when nobody will

	constants map[any]cuda.Pointer // what device memory holds, by what it stands for
	iotas     map[int]iota32       // what numbers lie at an offset of the arena
	products  map[cuda.GEMM]*cuda.GEMMPlan
	timed     map[cuda.GEMM]bool // wherever Bias and Aux lie: the fastest way is known
	refused   map[cuda.GEMM]bool // likewise: cuBLASLt does not take it

	apart   bool // there are ranks of other processes, which it does not meet on the host
	step    step
	feeds   []*feed
	loads   loads
	drops   drops
	routers routers
	ending  []func() error // what generated code's functions have made
}

// of is the rank's device.
func of(r *rt.Rank) *device { return r.Device.(*device) }

// args are the arguments of the next launch, empty.
func (d *device) args() *cuda.Args { return d.packed.Reset() }

// ptr is where a byte of the arena lies in the device's memory.
func (d *device) ptr(at int) cuda.Pointer { return d.arena.Pointer + cuda.Pointer(at) }

// launch puts a kernel on the current stream, by its name with the types' suffix.
func (d *device) launch(name string, shape kernels.Launch, args *cuda.Args) {
	k := d.kernels[name]
	if k == nil {
		var err error
		k, err = d.modules.find(name)
		rt.Check(err)
		d.kernels[name] = k
	}
	rt.Check(d.on.stream.Launch(k, cuda.Shape{Grid: shape.Grid, Block: shape.Block}, args))
}

// run launches a kernel of the table on the current stream, in the geometry that the table has for its rows and
// columns.
func (d *device) run(name, types string, rows, cols int, args *cuda.Args) {
	d.launch(name+"_"+types, family(name).Launch(rows, cols), args)
}

// family is a kernel's row of the table.
func family(name string) *kernels.Kernel {
	k := families()[name]
	if k == nil {
		panic("gpu: there is no kernel " + name)
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

// stream is the current one.
func (d *device) stream() *cuda.Stream { return d.on.stream }

// scratch is memory of so many bytes for one call: whoever asks next, for work on the same stream, gets the same. It
// grows in the first step; a captured one finds it large enough.
func (d *device) scratch(bytes int) cuda.Pointer { return d.scratchMemory(bytes).Pointer }

// scratchMemory is scratch as the copies of package cuda want it.
func (d *device) scratchMemory(bytes int) cuda.Memory {
	if l := d.on; int64(bytes) > l.scratch.Bytes {
		l.scratch = d.alloc(max(bytes, 1<<16)) // what it had stays, for what is on the stream and for graphs
	}
	return d.on.scratch.At(0, int64(bytes))
}

// group is the communicator of one of the program's groups, for the compute stream; nil where the rank is its only
// member.
func (d *device) group(group int) *comm {
	if group < 0 {
		return nil
	}
	return d.byLine[rt.MainLine(group)]
}

// atClose has f called when the device is closed.
func (d *device) atClose(f func() error) { d.ending = append(d.ending, f) }

// open takes the rank's GPU into use.
func (d *device) open(m *machine) (err error) {
	d.apart = m.apart
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
	d.constants, d.iotas, d.products = map[any]cuda.Pointer{}, map[int]iota32{}, map[cuda.GEMM]*cuda.GEMMPlan{}
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
	err = d.openFused(m)
	if err != nil {
		return err
	}
	err = errors.Join(d.step.open(d, m), d.loads.open())
	if err != nil {
		return err
	}
	return d.openLines(m)
}

// Close gives back what the device has. Of a run that has failed the libraries may refuse to: the first error is told
// already.
func (d *device) Close() {
	if d.unbind == nil {
		return
	}
	if !d.failed() && d.compute != nil { // a step may have been begun that nobody wanted to hear of
		_ = d.compute.stream.Synchronize()
	}
	d.closeArena()
	d.step.forget() // before communicators, which end when no graph has work of theirs
	d.closeLines()
	for _, f := range d.ending {
		_ = f()
	}
	d.step.close()
	d.loads.close()
	for _, p := range d.pinned {
		_ = p.Free()
	}
	for _, m := range d.taken {
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

// failed tells whether the run has.
func (d *device) failed() bool {
	select {
	case <-d.rank.Done():
		return true
	default:
		return false
	}
}

// until is a context that is done when the run fails.
func (d *device) until() (ctx context.Context, stop func()) {
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
