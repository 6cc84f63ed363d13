//go:build cuda && linux

package gpu

import (
	"context"
	"fmt"
	"io/fs"
	"slices"

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
	gpus   []cuda.Device
	blas   *cuda.BLAS
	nccl   *cuda.NCCL    // nil where there is one rank
	id     cuda.UniqueID // with which ranks find each other
	ranks  int
}

// Open finds a GPU for each rank: that of its number.
func (m *machine) Open(ranks int) (name string, err error) {
	driver, err := cuda.Open()
	if err != nil {
		return "", err
	}
	if m.gpus, err = driver.Devices(); err != nil {
		return "", err
	}
	m.ranks = ranks
	if n := len(m.gpus); n < ranks {
		return "", fmt.Errorf("the plan has %d ranks, each of which needs a GPU, and the driver shows %d: "+
			"compile for as many, or look at CUDA_VISIBLE_DEVICES", ranks, n)
	}
	m.gpus = m.gpus[:ranks]
	if m.blas, err = cuda.OpenBLAS(); err != nil {
		return "", err
	}
	if ranks > 1 {
		if m.nccl, err = cuda.OpenNCCL(); err != nil {
			return "", err
		}
		if m.id, err = m.nccl.NewID(); err != nil {
			return "", err
		}
	}
	return m.name(), nil
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
