//go:build cuda && linux

package gpu

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// Main is [rt.Main] of a program that is compiled for GPUs. images has its kernels, a file NAME.fatbin for each source.
func Main(p *rt.Program, images fs.FS) { rt.Main(on(p, images)) }

// Run is likewise [rt.Run].
func Run(ctx context.Context, p *rt.Program, images fs.FS, opts ...rt.Option) (rt.Result, error) {
	return rt.Run(ctx, on(p, images), opts...)
}

// on is the program, to be run on GPUs.
func on(p *rt.Program, images fs.FS) *rt.Program {
	q := *p
	q.Devices = &machine{images: images}
	return &q
}

// machine is the GPUs of this machine, and the libraries that use them.
type machine struct {
	images fs.FS
	gpus   []cuda.Device // of this process's ranks
	first  int           // of them
	apart  bool          // there are ranks of other processes
	blas   *cuda.BLAS
	dnn    *cuda.DNN     // nil where cuDNN is not there
	noDNN  error         // why
	attend string        // what is said of attention
	nccl   *cuda.NCCL    // nil where there is one rank
	id     cuda.UniqueID // with which ranks find each other
	ranks  int
	told   told    // what is said of NCCL
	gauges *gauges // nil where NVML is not there

	one    bool // all ranks use the first GPU
	shared bool // and meet on the host at each collective
	mutex  sync.Mutex
	hubs   map[string]*hub // where they do
}

// shareGPU is the variable of the environment that lets all ranks use one GPU: slowly, to see that a plan is right.
// With "nccl" in place of 1 NCCL is between them, which since 2.30 takes two ranks of one GPU where
// NCCL_MULTI_RANK_GPU_ENABLE=1.
const shareGPU = "PLANC_SHARE_GPU"

// gpu is that of a rank.
func (m *machine) gpu(rank int) cuda.Device {
	if m.one {
		return m.gpus[0]
	}
	return m.gpus[rank-m.first]
}

// Open finds a GPU for each of this process's ranks, and what joins them to the others.
func (m *machine) Open(t *rt.Team) (name string, err error) {
	if err := connections(); err != nil {
		return "", err
	}
	driver, err := cuda.Open()
	if err != nil {
		return "", err
	}
	m.gpus, err = driver.Devices()
	if err != nil {
		return "", err
	}
	m.ranks, m.first, m.apart, m.hubs = t.Ranks, t.First, t.Processes > 1, map[string]*hub{}
	err = m.choose(t)
	if err != nil {
		return "", err
	}
	m.gauges = openGauges(m.gpus)
	m.blas, err = cuda.OpenBLAS()
	if err != nil {
		return "", err
	}
	m.dnn, err = cuda.OpenDNN()
	if err != nil {
		m.dnn, m.noDNN = nil, err // kernels of our own attend
	}
	name, err = m.introduce(t)
	if err != nil {
		return "", err
	}
	return name, m.openNCCL(t)
}

// connections gives each of a rank's streams a queue of its own on the device, unless the environment says how many
// there are: with the driver's 8, a kernel that waits for a peer can stand before work that the peer waits for.
func connections() error {
	const name = "CUDA_DEVICE_MAX_CONNECTIONS"
	if os.Getenv(name) != "" {
		return nil
	}
	return os.Setenv(name, "32") // the most that there are; the driver reads it when it is opened
}

// name says which GPUs there are, those of a kind together.
func (m *machine) name() string {
	text := ""
	for i := 0; i < len(m.gpus); {
		kind := m.gpus[i].Name
		n := slices.IndexFunc(m.gpus[i:], func(d cuda.Device) bool { return d.Name != kind })
		if n < 0 {
			n = len(m.gpus) - i
		}
		if i > 0 {
			text += " and "
		}
		text += fmt.Sprintf("%d × %s", n, kind)
		i += n
	}
	return text
}

// Take gives a rank the GPU of its number.
func (m *machine) Take(r *rt.Rank) (rt.Device, error) {
	d := &device{rank: r, images: m.images}
	if err := d.open(m); err != nil {
		d.Close()
		return nil, fmt.Errorf("rank %d: %w", r.ID, err)
	}
	return d, nil
}
