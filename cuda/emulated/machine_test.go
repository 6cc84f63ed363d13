//go:build cuda && linux

package emulated

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/planc-dev/planc/cuda"
	"github.com/planc-dev/planc/cuda/kernels/emulate"
)

// kernelText is the source of the tests' kernels.
const kernelText = `
extern "C" __global__ void add(float* y, const float* x, float v, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) y[i] = x[i] + v;
}
extern "C" __global__ void twice(float* y, int n) {
	awaitPrevious();
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n) y[i] *= 2;
}
extern "C" __global__ void hasty(float* y, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float v = i < n ? y[i] : 0;
	awaitPrevious();
	if (i < n) y[i] = v * 2;
}
`

const inside = "PLANC_EMULATED_INSIDE" // names the machine's folder to the processes that run the tests

// TestMain runs the tests in a process that finds the libraries, under each policy.
func TestMain(m *testing.M) {
	if os.Getenv(inside) != "" || emulate.Skipped() != "" {
		os.Exit(m.Run())
	}
	os.Exit(outside())
}

func outside() int {
	code, log := RunInside(func(m Machine, dir string) ([]string, error) {
		source := filepath.Join(dir, "add.cu")
		if err := os.WriteFile(source, []byte(kernelText), 0o666); err != nil {
			return nil, err
		}
		cmd := exec.Command(filepath.Join(m.Bin(), "nvcc"), "-o", filepath.Join(dir, "add.fatbin"), source)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, out)
		}
		return []string{inside + "=" + dir, "PLANC_EMULATED_PATIENCE=10"}, nil
	})
	if !strings.Contains(log, "released: device 0") {
		fmt.Fprintln(os.Stderr, "the log is not of runs that gave devices back")
		return 1
	}
	return code
}

// gpu is one device, bound to the test's goroutine.
type gpu struct {
	t      testing.TB
	module *cuda.Module
	add    *cuda.Kernel
	pinned cuda.Pinned
}

func need[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func try(errs ...error) {
	for _, err := range errs {
		if err != nil {
			panic(err)
		}
	}
}

// machine binds device n.
func machine(t testing.TB, n int) *gpu {
	t.Helper()
	if why := emulate.Skipped(); why != "" {
		t.Skip(why)
	}
	context := need(need(need(cuda.Open()).Devices())[n].Open())
	unbind := need(context.Bind())
	module := need(cuda.Load(need(os.ReadFile(filepath.Join(os.Getenv(inside), "add.fatbin")))))
	g := &gpu{t: t, module: module, add: need(module.Kernel("add")), pinned: need(cuda.AllocPinned(4096))}
	t.Cleanup(func() {
		try(g.pinned.Free(), module.Unload())
		unbind()
		try(context.Close())
	})
	return g
}

func (g *gpu) stream() *cuda.Stream {
	s := need(cuda.NewStream(0))
	g.t.Cleanup(func() { try(s.Close()) })
	return s
}

func (g *gpu) event() *cuda.Event {
	e := need(cuda.NewEvent(false))
	g.t.Cleanup(func() { try(e.Close()) })
	return e
}

func (g *gpu) memory(bytes int64) cuda.Memory {
	m := need(cuda.Alloc(bytes))
	g.t.Cleanup(func() { try(m.Free()) })
	return m
}

// plus enqueues y = x + v on 64 floats.
func (g *gpu) plus(s *cuda.Stream, y, x cuda.Memory, v float32) error {
	return s.Launch(g.add, cuda.Shape{Grid: [3]int{2}, Block: [3]int{32}},
		new(cuda.Args).Pointer(y.Pointer).Pointer(x.Pointer).Float32(v).Int32(64))
}

// first returns the first float of memory after all work that the stream waits for.
func (g *gpu) first(s *cuda.Stream, m cuda.Memory) float32 {
	try(s.Download(g.pinned.At(0, 4), m.At(0, 4)), s.Synchronize())
	return float(g.pinned.Slice())
}

// An event makes one stream wait for another. Without it, the result is wrong under at least one policy.
func TestEvents(t *testing.T) {
	for _, joined := range []bool{true, false} {
		g := machine(t, 0)
		a, b, e := g.stream(), g.stream(), g.event()
		x, y := g.memory(256), g.memory(256)
		try(a.Fill(x, 0), a.Fill(y, 0), a.Synchronize())
		try(g.plus(a, x, x, 1), g.plus(a, x, x, 1), a.Record(e))
		if joined {
			try(b.Wait(e))
		}
		try(g.plus(b, y, x, 3))
		got := g.first(b, y)
		if joined && got != 5 {
			t.Errorf("joined streams give %v", got)
		}
		if !joined && os.Getenv("PLANC_EMULATED_ORDER") == "late" && got == 5 {
			t.Errorf("the late policy does not see that an event is missing")
		}
		try(a.Synchronize())
	}
}

// A graph of two streams runs each time that it is launched. One whose streams are not joined is refused.
func TestGraphs(t *testing.T) {
	g := machine(t, 0)
	a, b, fork, join := g.stream(), g.stream(), g.event(), g.event()
	x := g.memory(256)
	try(a.Fill(x, 0), a.Synchronize())
	body := func(joined bool) func() error {
		return func() error {
			try(g.plus(a, x, x, 1), a.Record(fork), b.Wait(fork), g.plus(b, x, x, 10), b.Record(join))
			if joined {
				try(a.Wait(join), g.plus(a, x, x, 100))
			}
			return nil
		}
	}
	graph := need(a.Capture(body(true)))
	for range 3 {
		try(a.Replay(graph))
	}
	if got := g.first(a, x); got != 333 {
		t.Errorf("three launches give %v", got)
	}
	try(graph.Close())
	if _, err := a.Capture(body(false)); err == nil || !strings.Contains(err.Error(), "unjoined") {
		t.Errorf("a stream that is not joined: %v", err)
	}
	_, err := a.Capture(func() error { _, err := cuda.Alloc(16); return err })
	if err == nil || !strings.Contains(err.Error(), "not permitted when stream is capturing") {
		t.Errorf("memory is allocated during a capture: %v", err)
	}
}

// A kernel that is launched early waits for the previous kernel, also in a graph. Work that is enqueued between two
// kernels, and the beginning of a graph, make the second wait as usual.
func TestEarlyLaunch(t *testing.T) {
	g := machine(t, 0)
	s, e, x := g.stream(), g.event(), g.memory(256)
	s.EarlyLaunch = true
	twice := need(g.module.Kernel("twice"))
	double := func() error { return launch(s, twice, x) }
	try(s.Fill(x, 0), g.plus(s, x, x, 1), double(), double(), s.Record(e), double(), s.Wait(e), double())
	if got := g.first(s, x); got != 16 {
		t.Errorf("four kernels give %v, want 16", got)
	}
	try(double())
	graph := need(s.Capture(func() error { return errors.Join(double(), double()) }))
	try(s.Replay(graph), double(), s.Replay(graph))
	if got := g.first(s, x); got != 16*2*4*2*4 {
		t.Errorf("two replays give %v, want %v", got, 16*2*4*2*4)
	}
	try(graph.Close())
}

// launch launches a kernel of 64 floats in place.
func launch(s *cuda.Stream, k *cuda.Kernel, x cuda.Memory) error {
	var args cuda.Args
	args.Pointer(x.Pointer).Int32(64)
	return s.Launch(k, cuda.Shape{Grid: [3]int{1}, Block: [3]int{64}}, &args)
}

// ranks runs f for each of n ranks, each on its own device.
func ranks(t *testing.T, n int, f func(g *gpu, c *cuda.Comm)) {
	if why := emulate.Skipped(); why != "" {
		t.Skip(why)
	}
	nccl := need(cuda.OpenNCCL())
	id := need(nccl.NewID())
	var group sync.WaitGroup
	for rank := range n {
		group.Go(func() {
			t.Run(fmt.Sprint("rank", rank), func(t *testing.T) {
				g := machine(t, rank)
				c := need(nccl.Join(context.Background(), id, rank, n, 0))
				f(g, c)
				try(c.Close(context.Background()))
			})
		})
	}
	group.Wait()
}

// Collectives compute the right result, also in groups and in graphs, on a split communicator as on the
// whole.
func TestCollectives(t *testing.T) {
	ranks(t, 4, func(g *gpu, c *cuda.Comm) {
		s := g.stream()
		x, y := g.memory(256), g.memory(1024)
		try(s.Fill(x, 0), g.plus(s, x, x, float32(c.Rank+1)))
		try(c.AllGather(s, y.Pointer, x.Pointer, 64, cuda.Float32))
		for i := range 4 {
			if got := g.first(s, y.At(int64(256*i), 256)); got != float32(i+1) {
				t.Errorf("gathered %v of rank %d", got, i)
			}
		}
		half := need(c.Split(context.Background(), c.Rank%2, 0, 0))
		try(half.AllReduce(s, x.Pointer, x.Pointer, 64, cuda.Float32, cuda.Sum))
		if got, want := g.first(s, x), float32(4+2*(c.Rank%2)); got != want {
			t.Errorf("rank %d has the sum %v of its half, not %v", c.Rank, got, want)
		}
		try(half.ReduceScatter(s, x.Pointer, y.Pointer, 64, cuda.Float32, cuda.Max))
		if got, want := g.first(s, x), float32(half.Rank+1); got != want {
			t.Errorf("rank %d has the part %v, not %v", c.Rank, got, want)
		}
		turn := func() error {
			return c.Group(func() error {
				try(c.Send(s, x.Pointer, 64, cuda.Float32, (c.Rank+1)%4))
				return c.Receive(s, y.Pointer, 64, cuda.Float32, (c.Rank+3)%4)
			})
		}
		try(turn()) // connects the ranks, which a capture may not
		ring := need(s.Capture(turn))
		for range 2 {
			try(s.Replay(ring), s.Copy(x, y.At(0, 256)))
		}
		if got, want := g.first(s, x), float32((c.Rank+2)%4/2+1); got != want {
			t.Errorf("rank %d has %v after two turns of the ring, not %v", c.Rank, got, want)
		}
		try(ring.Close(), half.Close(context.Background()))
	})
}
