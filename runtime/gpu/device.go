//go:build cuda && linux

package gpu

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/gpu/module"
)

// device is the GPU of a rank: it implements [rt.Device]. Its parts are embedded, each in a file of its own:
// communication (lines, buckets, pipes) on top of executor (streams and launches), which is on top of
// memoryPool and watchdog; gemmRunner (GEMMs) and inputFeeds (batches and what follows from them). What is
// here orders them into steps.
type device struct {
	images  fs.FS
	context *cuda.Context
	unbind  func()

	communication
	gemmRunner
	inputFeeds

	dnnAttention dnnAttention
	fence        fence
	step         step
	drops        drops
	routers      routers
}

// newDevice returns the device of a rank. It must be opened.
func newDevice(r *rt.Rank, images fs.FS) *device {
	d := &device{images: images}
	d.rank = r
	d.gemmRunner.exec, d.inputFeeds.exec = &d.executor, &d.executor
	return d
}

// deviceOf returns the rank's device.
func deviceOf(r *rt.Rank) *device { return r.Device.(*device) }

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
	d.modules, err = module.New(d.images, fmt.Sprintf("%d%d", gpu.Major, gpu.Minor))
	if err != nil {
		return err
	}
	d.kernels = map[string]*cuda.Kernel{}
	d.constants, d.iotas, d.gemmPlans = map[any]cuda.Pointer{}, map[int]iota32{}, map[cuda.GEMM]*cuda.GEMMPlan{}
	d.timed, d.refused, d.separate = map[cuda.GEMM]float64{}, map[cuda.GEMM]bool{}, map[cuda.GEMM]bool{}
	d.choices = m.choices
	err = d.modules.Load()
	if err != nil {
		return err
	}
	d.earlyLaunch = gpu.CanLaunchEarly() && os.Getenv(earlyVariable) != "0"
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
	err = d.runLibraryKernels(m)
	if err != nil {
		return err
	}
	d.firstStep = true
	err = d.fence.fill(&d.executor)
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
	d.fence.close(&d.executor)
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
		_ = d.modules.Close()
	}
	if d.blas != nil {
		_ = d.blas.Close()
	}
	d.unbind()
	_ = d.context.Close()
}
