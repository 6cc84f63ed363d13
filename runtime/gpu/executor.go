//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/gpu/module"
)

// executor enqueues kernels and copies on the streams of a rank's device.
type executor struct {
	memoryPool
	watchdog
	modules   *module.Set
	kernels   map[string]*cuda.Kernel
	argBuffer cuda.Args

	earlyLaunch bool // kernels may begin before the previous one has ended

	compute    *workStream // kernels, and the collectives of a block
	bucketWork *workStream // jobs of buckets
	uploads    *workStream // uploads from the host during a step
	current    *workStream // stream of the next calls: compute, except while a job is launched
	streams    []*workStream
}

// earlyVariable is the environment variable that, if it is 0, makes each kernel begin only after the previous one of its
// stream has ended.
const earlyVariable = "PLANC_PDL"

// args returns the empty arguments of the next launch.
func (d *executor) args() *cuda.Args { return d.argBuffer.Reset() }

// launch enqueues a kernel on the current stream. The name includes the types' suffix.
func (d *executor) launch(name string, shape kernels.Launch, args *cuda.Args) {
	k := d.kernels[name]
	if k == nil {
		var err error
		k, err = d.modules.Find(name)
		rt.Check(err)
		d.kernels[name] = k
	}
	rt.Check(d.current.stream.Launch(k, cuda.Shape{Grid: shape.Grid, Block: shape.Block}, args))
}

// run launches a kernel of the table on the current stream, with the geometry that the table gives for
// these rows and columns.
func (d *executor) run(name, types string, rows, cols int, args *cuda.Args) {
	d.launch(name+"_"+types, module.Family(name).Launch(rows, cols), args)
}

// stream returns the current stream.
func (d *executor) stream() *cuda.Stream { return d.current.stream }

// scratch returns memory of this size for one call. The next caller on the same stream gets the same
// memory. It grows in the first step, so that it is large enough in a captured one.
func (d *executor) scratch(bytes int) cuda.Pointer { return d.scratchMemory(bytes).Pointer }

// scratchMemory returns scratch as the memory range that the copies of package cuda take.
func (d *executor) scratchMemory(bytes int) cuda.Memory {
	if l := d.current; int64(bytes) > l.scratch.Bytes {
		l.scratch = d.alloc(max(bytes, 1<<16)) // the old memory is kept for enqueued work and for graphs
	}
	return d.current.scratch.At(0, int64(bytes))
}

// scratchParts divides scratch memory for one call into parts of the given sizes, in bytes.
func (d *executor) scratchParts(bytes ...int) []cuda.Pointer {
	out, sum := make([]cuda.Pointer, len(bytes)), 0
	for i, n := range bytes {
		out[i] = cuda.Pointer(sum)
		sum += (n + partAlign - 1) &^ (partAlign - 1)
	}
	base := d.scratch(sum)
	for i := range out {
		out[i] += base
	}
	return out
}
