//go:build cuda && linux

package cuda

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// everything makes each call of the driver once, and stops at the first failure.
func everything() error {
	theDriver = nil
	d, err := Open(filepath.Join(fakeRoot, "new"))
	if err != nil {
		return err
	}
	devices, err := d.Devices()
	if err != nil {
		return err
	}
	if _, err := devices[0].Reaches(devices[1]); err != nil {
		return err
	}
	c, err := devices[0].Open()
	if err != nil {
		return err
	}
	other, err := devices[1].Open()
	if err != nil {
		return err
	}
	unbind, err := c.Bind()
	if err != nil {
		return err
	}
	defer unbind()
	return first(
		func() error { return c.Reach(other) },
		func() error { _, err := c.Free(); return err },
		func() error { return work(c) },
		c.Synchronize, c.Close, other.Close)
}

// work makes the calls that need a bound context.
func work(c *Context) error {
	var (
		m    *Module
		k    *Kernel
		x    Memory
		host Pinned
		s    *Stream
		e, f *Event
		g    *Graph
		args Args
		err  error
	)
	return first(
		func() error { m, err = Load([]byte(listing)); return err },
		func() error { k, err = m.Kernel("axpy"); return err },
		func() error { return k.Reserve(100 << 10) },
		func() error { _, err = k.Usage(); return err },
		func() error { x, err = Alloc(64); return err },
		func() error { host, err = AllocPinned(64); return err },
		func() error { s, err = NewStream(0); return err },
		func() error { e, err = NewEvent(true); return err },
		func() error { f, err = NewEvent(true); return err },
		func() error { return s.Record(e) },
		func() error { return s.Upload(x, host) },
		func() error { return s.Fill(x, 0) },
		func() error { return s.Copy(x.At(0, 32), x.At(32, 32)) },
		func() error {
			args.Pointer(x.Pointer).Pointer(x.Pointer).Int32(1).Int32(2)
			return s.Launch(k, Shape{}, &args)
		},
		func() error { return s.Launch(k, Shape{Cluster: [3]int{2}}, &args) },
		func() error { return s.Download(host, x) },
		func() error { return s.Record(f) },
		func() error { return s.Wait(e) },
		func() error { _, err := s.Done(); return err },
		func() error { return s.Synchronize() },
		func() error { return f.Synchronize() },
		func() error { _, err := f.Since(e); return err },
		func() error { g, err = s.Capture(func() error { return s.Fill(x, 1) }); return err },
		func() error { return s.Replay(g) },
		func() error {
			_, err := Tiles{Element: ElementBFloat16, Memory: x, Dims: []uint64{8, 4}, Strides: []uint64{16},
				Box: []uint32{8, 2}}.Map()
			return err
		},
		func() error {
			return g.Close()
		}, func() error {
			return e.Close()
		}, func() error {
			return f.Close()
		}, func() error {
			return s.Close()
		},
		func() error { return x.Free() }, func() error { return host.Free() }, func() error { return m.Unload() },
	)
}

func first(steps ...func() error) error {
	for _, f := range steps {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// Whichever call the driver refuses, the error names it and has the driver's text. No call is missed, and
// none panics.
func TestEveryCallFails(t *testing.T) {
	harmless := []string{"cuGetErrorName", "cuGetErrorString", "cuGraphDestroy"} // their failures are not reported
	if err := everything(); err != nil {
		t.Fatalf("without a failure: %v", err)
	}
	header := must(os.ReadFile("driver.h"))(t)
	calls := regexp.MustCompile(`F\([01], (cu\w+),`).FindAllSubmatch(header, -1)
	if len(calls) < 40 {
		t.Fatalf("%d calls found in driver.h", len(calls))
	}
	for _, c := range calls {
		name := string(c[1])
		if slices.Contains(harmless, name) {
			continue
		}
		t.Setenv("PLANC_FAKE_FAIL", name+":2")
		var failed *Error
		if err := everything(); !errors.As(err, &failed) || failed.Call != name && failed.Call+"Ex" != name ||
			failed.Name != "CUDA_ERROR_OUT_OF_MEMORY" {
			t.Errorf("%s fails, and the error is %v", name, err)
		}
	}
}

// A goroutine that has not bound a context gets an error, rather than some device.
func TestUnbound(t *testing.T) {
	fake(t, "new")
	result := make(chan error)
	go func() {
		_, err := Alloc(8)
		result <- err
	}()
	var failed *Error
	if err := <-result; !errors.As(err, &failed) || failed.Name != "CUDA_ERROR_INVALID_CONTEXT" {
		t.Errorf("%v", err)
	}
}

// A tensor map passes the driver the right values in its order. Invalid tiles panic.
func TestTiles(t *testing.T) {
	d, calls := fake(t, "new")
	bound(t, d)
	x := must(Alloc(1024))(t)
	m := must(Tiles{Element: ElementBFloat16, Memory: x, Dims: []uint64{64, 8}, Strides: []uint64{128},
		Box: []uint32{64, 4}, Swizzle: 128}.Map())(t)
	if m != [128]byte(slices.Repeat([]byte{0x5a}, 128)) {
		t.Errorf("% x", m)
	}
	if got, want := calls(), "tensor map type 9 rank 2 dims 64,8 stride 128 box 64,4 steps 1,1 swizzle 3, "+
		"0 2 0\n"; !regexp.MustCompile(regexp.QuoteMeta(want)).MatchString(got) {
		t.Errorf("%s\nlacks %s", got, want)
	}
	check(t, x.Free())
	defer func() {
		if recover() == nil {
			t.Error("a tensor without a stride is accepted")
		}
	}()
	_, _ = Tiles{Dims: []uint64{1, 2}, Box: []uint32{1, 1}}.Map()
}
