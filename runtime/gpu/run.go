//go:build cuda && linux

package gpu

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/gpu/comm"
	"github.com/planc-dev/planc/runtime/gpu/gemmchoice"
)

// Main is [rt.Main] for a program that is compiled for GPUs. images holds its kernels, a NAME.fatbin for
// each source.
func Main(p *rt.Program, images fs.FS) { rt.Main(onGPUs(p, images)) }

// Run is [rt.Run] for such a program.
func Run(ctx context.Context, p *rt.Program, images fs.FS, opts ...rt.Option) (rt.Result, error) {
	return rt.Run(ctx, onGPUs(p, images), opts...)
}

// onGPUs returns the program with this machine's GPUs as its devices.
func onGPUs(p *rt.Program, images fs.FS) *rt.Program {
	q := *p
	q.Devices = &machine{images: images}
	return &q
}

// machine holds the GPUs of this machine, and the libraries that use them.
type machine struct {
	images        fs.FS
	gpus          []cuda.Device // of this process's ranks
	first         int           // first rank of this process
	multiProcess  bool          // other processes have ranks, too
	blas          *cuda.BLAS
	dnn           *cuda.DNN     // nil without cuDNN
	dnnError      error         // why there is no cuDNN
	attentionText string        // what computes attention, for the run's first lines
	nccl          *cuda.NCCL    // nil with one rank
	ctas          int           // blocks of each communicator of tensors on a GPU; 0: NCCL decides
	id            cuda.UniqueID // by which ranks find each other
	ranks         int
	ncclReport    ncclReport // for the run's first lines
	epilogues     epilogueReport
	choices       *gemmchoice.Choices
	gauges        *gauges // nil without NVML

	oneGPU bool       // all ranks use the first GPU
	shared bool       // the ranks also meet on the host at each collective
	hubs   *comm.Hubs // used if shared
}

// shareGPU is the environment variable that, if it is 1, lets all ranks share one GPU. This is slow, and
// serves to test a plan. With "nccl", NCCL connects the ranks; since 2.30 it allows two ranks per GPU if
// NCCL_MULTI_RANK_GPU_ENABLE=1.
const shareGPU = "PLANC_SHARE_GPU"

// gpu returns the GPU of a rank.
func (m *machine) gpu(rank int) cuda.Device {
	if m.oneGPU {
		return m.gpus[0]
	}
	return m.gpus[rank-m.first]
}

// Open assigns a GPU to each of this process's ranks, and opens the libraries that connect them to the
// others.
func (m *machine) Open(t *rt.Team) (name string, err error) {
	if err := setMaxConnections(); err != nil {
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
	m.ranks, m.first, m.multiProcess, m.hubs = t.Ranks, t.First, t.Processes > 1, &comm.Hubs{}
	err = m.choose(t)
	if err != nil {
		return "", err
	}
	m.gauges = openGauges(m.gpus)
	m.blas, err = cuda.OpenBLAS()
	if err != nil {
		return "", err
	}
	m.choices, err = gemmchoice.Open(m.gpus[0].Name, m.blas.Version)
	if err != nil {
		return "", err
	}
	m.dnn, err = cuda.OpenDNN()
	if err != nil {
		m.dnn, m.dnnError = nil, err // planc's own kernels compute attention
	}
	name, err = m.introduce(t)
	if err != nil {
		return "", err
	}
	return name, m.openNCCL(t)
}

// setMaxConnections gives each of a rank's streams a hardware queue of its own, unless the environment sets
// the number. With the driver's default of 8, a kernel that waits for a peer can block work that the peer
// waits for.
func setMaxConnections() error {
	const name = "CUDA_DEVICE_MAX_CONNECTIONS"
	if os.Getenv(name) != "" {
		return nil
	}
	return os.Setenv(name, "32") // the maximum; the driver reads it when it is opened
}

// name lists the GPUs, with equal ones counted together.
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

// Take opens the GPU of a rank. What it has allocated is freed if that fails, also if it panics in [rt.Check].
func (m *machine) Take(r *rt.Rank) (rt.Device, error) {
	d := newDevice(r, m.images)
	isOpen := false
	defer func() {
		if !isOpen {
			d.Close()
		}
	}()
	if err := d.open(m); err != nil {
		return nil, fmt.Errorf("rank %d: %w", r.ID, err)
	}
	isOpen = true
	return d, nil
}
