//go:build cuda && linux

package cuda

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// floats returns device memory of the fake, which is host memory.
func floats(m Memory) []float32 {
	return unsafe.Slice((*float32)(addressOf(m.Pointer)), m.Bytes/4)
}

// together runs f as each rank of a new communicator, in separate goroutines with device 0 bound.
func together(t *testing.T, ranks int, f func(c *Comm, s *Stream) error) {
	t.Helper()
	d, _ := fake(t, "new")
	n := must(loadNCCL([]string{filepath.Join(fakeRoot, "new")}))(t)
	if n.Version != "2.23.4" {
		t.Errorf("version %s", n.Version)
	}
	id := must(n.NewID())(t)
	device := must(d.Devices())(t)[0]
	var wg sync.WaitGroup
	for rank := range ranks {
		wg.Go(func() {
			err := as(device, func(s *Stream) error {
				c, err := n.Join(t.Context(), id, rank, ranks, 0)
				if err != nil {
					return err
				}
				return errors.Join(f(c, s), c.Failed(), c.Close(t.Context()))
			})
			if err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	wg.Wait()
}

// as runs f with the device bound.
func as(d Device, f func(s *Stream) error) error {
	c, err := d.Open()
	if err != nil {
		return err
	}
	unbind, err := c.Bind()
	if err != nil {
		return err
	}
	defer unbind()
	s, err := NewStream(0)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.Close())
}

// Collectives do what their comments say, also in place, with counts as NCCL defines them.
func TestCollectives(t *testing.T) {
	const n = 3 // values per rank
	together(t, 4, func(c *Comm, s *Stream) error {
		whole, part := must(Alloc(4*n*4))(t), must(Alloc(n*4))(t)
		fill := func() {
			for i := range floats(whole) {
				floats(whole)[i] = float32(100*c.Rank + i)
			}
		}
		expect := func(what string, got []float32, want func(i int) float32) error {
			for i, x := range got {
				if x != want(i) {
					return errors.New(what + " is wrong")
				}
			}
			return nil
		}
		fill()
		err := errors.Join(
			c.AllReduce(s, whole.Pointer, whole.Pointer, 4*n, Float32, Sum),
			expect("all-reduce", floats(whole), func(i int) float32 { return 600 + 4*float32(i) }))
		fill()
		err = errors.Join(err,
			c.AllReduce(s, whole.Pointer, whole.Pointer, 4*n, Float32, Mean),
			expect("mean", floats(whole), func(i int) float32 { return 150 + float32(i) }))
		fill()
		err = errors.Join(err,
			c.ReduceScatter(s, part.Pointer, whole.Pointer, n, Float32, Max),
			expect("reduce-scatter", floats(part), func(i int) float32 { return float32(300 + n*c.Rank + i) }),
			c.AllGather(s, whole.Pointer, part.Pointer, n, Float32),
			expect("all-gather", floats(whole), func(i int) float32 { return float32(300 + i) }))
		fill()
		next, last := (c.Rank+1)%4, (c.Rank+3)%4
		err = errors.Join(err,
			c.Group(func() error {
				return errors.Join(c.Send(s, whole.Pointer, n, Float32, next), c.Receive(s, part.Pointer, n,
					Float32, last))
			}),
			expect("what was received", floats(part), func(i int) float32 { return float32(100*last + i) }),
			c.Broadcast(s, whole.Pointer, part.Pointer, n, Float32, 2),
			expect("broadcast", floats(whole.At(0, 4*n)), func(i int) float32 { return float32(100 + i) }))
		return errors.Join(err, whole.Free(), part.Free())
	})
}

// A part of a communicator consists of the ranks of one color in the order of their keys, although NCCL
// returns it only after all ranks have split.
func TestSplit(t *testing.T) {
	var mutex sync.Mutex
	places := map[int][2]int{}
	together(t, 4, func(c *Comm, s *Stream) error {
		part, err := c.Split(t.Context(), c.Rank%2, -c.Rank, 0)
		if err != nil {
			return err
		}
		mutex.Lock()
		places[c.Rank] = [2]int{part.Rank, part.Ranks}
		mutex.Unlock()
		x := must(Alloc(4))(t)
		floats(x)[0] = float32(c.Rank)
		err = part.AllReduce(s, x.Pointer, x.Pointer, 1, Float32, Sum)
		if want := float32(2 + 2*(c.Rank%2)); floats(x)[0] != want {
			t.Errorf("rank %d: the sum over its part is %g, want %g", c.Rank, floats(x)[0], want)
		}
		return errors.Join(err, x.Free(), part.Close(t.Context()))
	})
	for rank, want := range [][2]int{{1, 2}, {1, 2}, {0, 2}, {0, 2}} {
		if places[rank] != want {
			t.Errorf("rank %d is %v of its part, want %v", rank, places[rank], want)
		}
	}
}

// A rank without a color gets no communicator, and the others do.
func TestSplitWithout(t *testing.T) {
	together(t, 3, func(c *Comm, s *Stream) error {
		color := 0
		if c.Rank == 1 {
			color = NoColor
		}
		part, err := c.Split(t.Context(), color, 0, 0)
		if err != nil || c.Rank == 1 {
			if part != nil {
				t.Errorf("rank 1 has a communicator")
			}
			return err
		}
		if part.Ranks != 2 || part.Rank != c.Rank/2 {
			t.Errorf("rank %d is %d of %d", c.Rank, part.Rank, part.Ranks)
		}
		return part.Close(t.Context())
	})
}

// Waiting for absent ranks ends at the time limit. NCCL's errors are passed on in its words. An abort
// reaches the other ranks.
func TestNCCLFails(t *testing.T) {
	d, calls := fake(t, "new")
	bound(t, d)
	n := must(loadNCCL([]string{filepath.Join(fakeRoot, "new")}))(t)
	ctx, stop := context.WithTimeoutCause(t.Context(), 5*time.Millisecond, errors.New("rank 1 did not come"))
	defer stop()
	_, err := n.Join(ctx, must(n.NewID())(t), 0, 2, 0)
	if err == nil || err.Error() != "ncclCommInitRankConfig of rank 0 of 2: rank 1 did not come" ||
		!strings.Contains(calls(), "abort rank 0 of 2") {
		t.Errorf("%v", err)
	}
	_, err = n.Join(t.Context(), must(n.NewID())(t), 3, 2, 0)
	var failed *Error
	if !errors.As(err, &failed) || failed.Code != 4 || failed.Text != "invalid argument" {
		t.Errorf("%v", err)
	}
	c := must(n.Join(t.Context(), must(n.NewID())(t), 0, 1, 0))(t)
	s := must(NewStream(0))(t)
	if err := c.AllReduce(s, 0, 0, 1, BFloat16, Sum); err == nil ||
		err.Error() != "ncclAllReduce of 1 values, rank 0 of 1: ncclResult_t (4): invalid argument: a word "+
			"of the fake" {
		t.Errorf("%v", err)
	}
	calls()
	t.Setenv("PLANC_FAKE_FAIL", "ncclCommCount:3")
	if part, err := c.Split(t.Context(), 0, 0, 0); part != nil || !errors.As(err, &failed) ||
		failed.Call != "ncclCommCount" || calls() != "abort rank 0 of 1\n" {
		t.Errorf("a part whose size is not known: %v, %v", part, err)
	}
	t.Setenv("PLANC_FAKE_FAIL", "")
	check(t, c.Failed(), c.Abort())
	for _, err := range []error{c.Failed(), c.AllReduce(s, 0, 0, 1, Float32, Sum), c.Group(func() error {
		return c.Send(s, 0, 1, Float32, 0)
	}), c.Close(t.Context())} {
		if !errors.Is(err, ErrEnded) {
			t.Errorf("after an abort: %v", err)
		}
	}
	check(t, c.Abort(), s.Close())
	if log := calls(); strings.Count(log, "abort rank 0 of 1") != 1 {
		t.Errorf("a second abort: %s", log)
	}
}

// A missing NCCL is reported as an error. The system's own is tried last.
func TestNoNCCL(t *testing.T) {
	if _, why := try("libnccl.so.2"); why == "" {
		t.Skip("this machine has NCCL")
	}
	_, err := OpenNCCL()
	var missing *MissingError
	if !errors.As(err, &missing) || !slices.Contains(missing.Library.Files, "libnccl.so.2") {
		t.Errorf("%v", err)
	}
}
