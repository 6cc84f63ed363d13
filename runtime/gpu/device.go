//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
	rt "github.com/planc-dev/planc/runtime"
)

// device is the GPU of a rank.
type device struct {
	rank    *rt.Rank
	context *cuda.Context
	arena   cuda.Memory // laid out as the host's
	kernels map[string]*cuda.Kernel
	modules *modules
	compute *line // kernels and a block's own collectives
	on      *line // what calls are put on: compute, but while a bucket's job is begun
	packed  cuda.Args
	comms   map[string]*cuda.Comm // by the name of the rank's lines
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

// stream is the current one.
func (d *device) stream() *cuda.Stream { return d.on.stream }

// scratch is memory of so many bytes for one call: whoever asks next, for work on the same stream, gets the same. It grows
// in the first step; a captured one finds it large enough.
func (d *device) scratch(bytes int) cuda.Pointer { return d.on.room(bytes).Pointer }

// scratchMemory is scratch as the copies of package cuda want it.
func (d *device) scratchMemory(bytes int) cuda.Memory { return d.on.room(bytes) }

// group is the communicator of one of the program's groups, for the compute stream.
func (d *device) group(group int) *cuda.Comm { return d.comms[rt.MainLine(group)] }

// Close gives back what the device has.
func (d *device) Close() {
	_ = d.modules.close() // the process ends with it, or an error is on its way
	_ = d.context.Close()
}
