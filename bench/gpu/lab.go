//go:build cuda && linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
)

// jobs are the measurements that run on the GPU in another process.
var jobs = map[string]func(l *lab, r *Result) error{
	"machine": describeGPU, "nccl": tryNCCL, ceiling: measureCeilings, "gemm": gemms, "fp8": fp8GEMMs,
	"attention": attentions, "chain": chainTimes, "kernel": eachKernel,
}

// runKernels runs a job and prints its result as JSON.
func runKernels(w io.Writer, b *bench, args []string) error {
	if len(args) != 1 || jobs[args[0]] == nil {
		return fmt.Errorf("kernel: the job must be one of machine, nccl, ceiling, gemm, fp8, attention, chain, kernel")
	}
	l, err := newLab(b.dir, b.tiny)
	if err != nil {
		return err
	}
	l.rates = b.rates
	var r Result
	if err := jobs[args[0]](l, &r); err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(r)
}

// lab is the first GPU, with a stream and the kernels of cuda/kernels. It is never closed: the process ends with it.
type lab struct {
	tiny      bool
	rates     rates // for floors
	gpu       cuda.Device
	stream    *cuda.Stream
	blas      *cuda.GEMMs
	version   string // of cuBLASLt
	dnn       *cuda.DNN
	fused     *cuda.Attentions // nil if cuDNN is missing; cudnnErr says why
	cudnnErr  error
	root, dir string // folders of what build compiled, and of its kernels
	modules   map[string]*cuda.Module
	from, to  *cuda.Event
	allocated []cuda.Memory
	scratch   cuda.Memory
}

const workspace = cuda.GEMMWorkspace

func newLab(dir string, tiny bool) (l *lab, err error) {
	l = &lab{tiny: tiny, root: dir, dir: filepath.Join(dir, "kernels"), modules: map[string]*cuda.Module{}}
	driver, err := cuda.Open()
	if err != nil {
		return nil, err
	}
	gpus, err := driver.Devices()
	if err != nil || len(gpus) == 0 {
		return nil, fmt.Errorf("no GPU: %w", err)
	}
	l.gpu = gpus[0]
	ctx, err := l.gpu.Open()
	if err != nil {
		return nil, err
	}
	_, err = ctx.Bind()
	if err != nil { // kept until the process ends
		return nil, err
	}
	blas, err := cuda.OpenBLAS()
	if err != nil {
		return nil, err
	}
	l.version = blas.Version
	l.openCuDNN()
	l.blas, err = blas.NewGEMMs()
	if err == nil {
		l.stream, err = cuda.NewStream(0)
	}
	if err == nil {
		l.from, err = cuda.NewEvent(true)
	}
	if err == nil {
		l.to, err = cuda.NewEvent(true)
	}
	if err == nil {
		l.scratch, err = cuda.Alloc(workspace)
	}
	return l, err
}

// kernel finds a function of the kernel table, with the suffix of its types.
func (l *lab) kernel(name, types string) (*cuda.Kernel, *kernels.Kernel, error) {
	for i := range kernels.Table {
		k := &kernels.Table[i]
		if k.Name != name {
			continue
		}
		if l.modules[k.File] == nil {
			image, err := os.ReadFile(filepath.Join(l.dir, strings.TrimSuffix(k.File, ".cu")+".fatbin"))
			if err == nil {
				l.modules[k.File], err = cuda.Load(image)
			}
			if err != nil {
				return nil, nil, err
			}
		}
		f, err := l.modules[k.File].Kernel(name + "_" + types)
		return f, k, err
	}
	return nil, nil, fmt.Errorf("unknown kernel %s", name)
}

// put allocates memory with these bytes, until release.
func (l *lab) put(bytes []byte) (cuda.Memory, error) {
	m, err := cuda.Alloc(int64(max(len(bytes), 256)))
	if err != nil {
		return m, err
	}
	l.allocated = append(l.allocated, m)
	pinned, err := cuda.AllocPinned(int64(len(bytes)))
	if err != nil {
		return m, err
	}
	defer pinned.Free()
	copy(pinned.Slice(), bytes)
	if err := l.stream.Upload(m.At(0, int64(len(bytes))), pinned); err != nil {
		return m, err
	}
	return m, l.stream.Synchronize()
}

// get returns the first bytes of memory after all work is done.
func (l *lab) get(m cuda.Memory, bytes int) ([]byte, error) {
	pinned, err := cuda.AllocPinned(int64(bytes))
	if err != nil {
		return nil, err
	}
	defer pinned.Free()
	if err := l.stream.Download(pinned, m.At(0, int64(bytes))); err != nil {
		return nil, err
	}
	if err := l.stream.Synchronize(); err != nil {
		return nil, err
	}
	return append([]byte(nil), pinned.Slice()...), nil
}

// release frees what put allocated.
func (l *lab) release() {
	for _, m := range l.allocated {
		_ = m.Free() // earlier calls have reported errors
	}
	l.allocated = nil
}

// time returns the median seconds of what f launches on the stream; 0 on a machine without time.
func (l *lab) time(f func() error) (float64, error) {
	if l.tiny {
		return 0, nil
	}
	run := func(n int) (float64, error) {
		if err := l.stream.Record(l.from); err != nil {
			return 0, err
		}
		for range n {
			if err := f(); err != nil {
				return 0, err
			}
		}
		if err := l.stream.Record(l.to); err != nil {
			return 0, err
		}
		if err := l.to.Synchronize(); err != nil {
			return 0, err
		}
		s, err := l.to.Since(l.from)
		return s / float64(n), err
	}
	if _, err := run(3); err != nil {
		return 0, err
	}
	once, err := run(3)
	if err != nil {
		return 0, err
	}
	var took []float64
	n := max(1, int(0.01/max(once, 1e-6))) // ten milliseconds each, which hides the launch
	for start := time.Now(); len(took) < 3 || len(took) < 15 && time.Since(start) < patience; {
		s, err := run(n)
		if err != nil {
			return 0, err
		}
		took = append(took, s)
	}
	return median(took), nil
}
