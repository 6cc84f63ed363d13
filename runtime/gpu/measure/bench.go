//go:build cuda && linux

package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels"
	"github.com/planc-dev/planc/runtime/gpu/module"
)

// Main is the main function of a program that measures this machine's GPUs and prints the
// [Measurement]. images holds the kernels, [kernels.Files] of the measured shapes, as NAME.fatbin. Kernels
// without an image are compiled with NVRTC.
func Main(images fs.FS) {
	m, err := Run(images)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Run measures all of this machine's GPUs at once. After an error the process must end, because other
// goroutines may wait on their devices.
func Run(images fs.FS) (*Measurement, error) {
	start := time.Now()
	driver, err := cuda.Open()
	if err != nil {
		return nil, err
	}
	gpus, err := driver.Devices()
	if err != nil {
		return nil, err
	}
	blas, err := cuda.OpenBLAS()
	if err != nil {
		return nil, err
	}
	m := &Measurement{CUDA: driver.Version, BLAS: blas.Version, Left: []string{}}
	for _, g := range gpus {
		m.GPUs = append(m.GPUs, g.Name)
	}
	meet, id := newBarrier(len(gpus)), cuda.UniqueID{}
	nccl := m.openNCCL(len(gpus))
	if nccl != nil {
		id, err = nccl.NewID()
		if err != nil {
			return nil, err
		}
	}
	errs := make(chan error, len(gpus))
	for rank, g := range gpus {
		b := &bench{rank: rank, ranks: len(gpus), gpu: g, barrier: meet, out: m, images: images, blas: blas,
			nccl: nccl, id: id}
		go func() { errs <- b.run() }()
	}
	for range gpus {
		if err := <-errs; err != nil {
			return nil, err
		}
	}
	m.Duration = time.Since(start).Seconds()
	return m, nil
}

// openNCCL opens NCCL if there are several GPUs. It returns nil if NCCL is missing.
func (m *Measurement) openNCCL(gpus int) *cuda.NCCL {
	if gpus < 2 {
		return nil
	}
	nccl, err := cuda.OpenNCCL()
	if err != nil {
		m.Left = append(m.Left, "collectives: "+err.Error())
		return nil
	}
	m.NCCL = nccl.Version
	return nccl
}

// barrier synchronizes the goroutines of all GPUs.
type barrier struct {
	mutex      sync.Mutex
	all        *sync.Cond
	n, arrived int
	round      int
	best       float64 // maximum of those that have arrived
	last       float64 // maximum of the previous round
}

func newBarrier(n int) *barrier {
	m := &barrier{n: n, best: math.Inf(-1)}
	m.all = sync.NewCond(&m.mutex)
	return m
}

// max waits for all goroutines and returns the largest value that any passed.
func (m *barrier) max(x float64) float64 {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.best = max(m.best, x)
	m.arrived++
	if m.arrived == m.n {
		m.last, m.best, m.arrived = m.best, math.Inf(-1), 0
		m.round++
		m.all.Broadcast()
		return m.last
	}
	for turn := m.round; turn == m.round; {
		m.all.Wait()
	}
	return m.last
}

// bench measures one GPU, in a goroutine of its own.
type bench struct {
	rank, ranks int
	gpu         cuda.Device
	barrier     *barrier
	out         *Measurement // written by rank 0
	images      fs.FS
	blas        *cuda.BLAS
	nccl        *cuda.NCCL
	id          cuda.UniqueID

	stream  *cuda.Stream
	gemms   *cuda.GEMMs
	modules *module.Set
	work    cuda.Memory // workspace of GEMMs
	random  cuda.Memory // contents for operands
	args    cuda.Args
	comm    *cuda.Comm
}

// run measures everything.
func (b *bench) run() error {
	c, err := b.gpu.Open()
	if err != nil {
		return err
	}
	defer c.Close()
	unbind, err := c.Bind()
	if err != nil {
		return err
	}
	defer unbind()
	if err := b.open(); err != nil {
		return fmt.Errorf("GPU %d: %w", b.rank, err)
	}
	for _, f := range []func() error{b.warm, b.copies, b.host, b.launches, b.matmuls, b.fp8Matmuls,
		attentionBench{b}.attend,
		b.collectives} {
		if err := f(); err != nil {
			return fmt.Errorf("GPU %d: %w", b.rank, err)
		}
	}
	return b.close()
}

// open creates what all measurements use.
func (b *bench) open() (err error) {
	b.stream, err = cuda.NewStream(0)
	if err != nil {
		return err
	}
	b.gemms, err = b.blas.NewGEMMs()
	if err != nil {
		return err
	}
	b.modules = module.NewForSources(b.images, fmt.Sprintf("%d%d", b.gpu.Major, b.gpu.Minor),
		kernels.Files(AttentionShapes(), "bf16", FillKernel))
	err = b.modules.Load()
	if err != nil {
		return err
	}
	b.work, err = cuda.Alloc(cuda.GEMMWorkspace)
	if err != nil {
		return err
	}
	err = b.fillRandom()
	if err != nil || b.nccl == nil {
		return err
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	b.comm, err = b.nccl.Join(ctx, b.id, b.rank, b.ranks, 0)
	return err
}

// close frees it.
func (b *bench) close() error {
	if b.comm != nil {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		if err := b.comm.Close(ctx); err != nil {
			return err
		}
	}
	for _, f := range []func() error{b.modules.Close, b.work.Free, b.random.Free, b.gemms.Close, b.stream.Close} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// Sampling: at least minSamples samples of at least sampleSeconds each. A call that takes longer than
// slowCall seconds is measured once, and larger ones of its kind are left out. One call before each
// measurement is not counted unless it takes longer than hopelessCall seconds: it loads kernels and
// connects ranks, which takes up to some seconds.
const (
	sampleSeconds   = 2e-3
	minSamples      = 7
	samplingSeconds = 0.1 // seconds of samples, if they are short
	slowCall        = 0.1
	hopelessCall    = 10
)

// timing is the duration of a call on the slowest GPU.
type timing struct{ seconds, spread float64 }

// time runs f many times on all GPUs at once, and returns the duration of a call on the slowest. f is nil
// on a GPU that takes no part.
func (b *bench) time(f func() error) (t timing, err error) {
	if f == nil {
		f = func() error { return nil }
	}
	once := 0.0
	for _, longest := range []float64{hopelessCall, slowCall} {
		took, err := b.sample(1, f)
		if err != nil {
			return t, err
		}
		once = b.barrier.max(took)
		if once > longest {
			return timing{once, 0}, nil
		}
	}
	calls := int(min(max(sampleSeconds/once, 1), 2000))
	samples := make([]float64, int(min(max(samplingSeconds/(once*float64(calls)), minSamples), 40)))
	for i := range samples {
		took, err := b.sample(calls, f)
		if err != nil {
			return t, err
		}
		samples[i] = b.barrier.max(took) / float64(calls)
	}
	slices.Sort(samples)
	n := len(samples)
	t.seconds = samples[n/2]
	t.spread = (samples[n-1-n/10] - samples[n/10]) / t.seconds
	return t, nil
}

// sample returns the duration of a number of calls, which begin when all GPUs are ready.
func (b *bench) sample(calls int, f func() error) (float64, error) {
	if err := b.stream.Synchronize(); err != nil {
		return 0, err
	}
	b.barrier.max(0)
	start := time.Now()
	for range calls {
		if err := f(); err != nil {
			return 0, err
		}
	}
	err := b.stream.Synchronize()
	return time.Since(start).Seconds(), err
}

// pace is the last measurement of a kind of work: its amount and its duration. It decides whether a larger
// amount is measured.
type pace struct{ work, seconds float64 }

// affords reports whether an amount of work is expected to be fast enough. All GPUs return the same,
// because they agree on the duration.
func (p *pace) affords(work float64) bool {
	return p.work == 0 || p.seconds*max(1, work/p.work/2) < slowCall
}

// point measures f and records the result.
func (b *bench) point(p Point, pace *pace, work float64, f func() error) error {
	t, err := b.time(f)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Text(), err)
	}
	pace.work, pace.seconds = work, t.seconds
	p.Seconds, p.Spread = t.seconds, t.spread
	if b.rank == 0 {
		b.out.Points = append(b.out.Points, p)
	}
	return nil
}

// skip records that a measurement is left out.
func (b *bench) skip(p Point) {
	if b.rank == 0 {
		b.out.Left = append(b.out.Left, p.Text()+": would take too long")
	}
}
