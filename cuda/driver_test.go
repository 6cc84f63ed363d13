//go:build cuda && linux

package cuda

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A driver that is missing, does not load, is too old or sees no GPU is reported as an error, and the
// process continues.
func TestOpen(t *testing.T) {
	broken := t.TempDir()
	check(t, os.WriteFile(filepath.Join(broken, "libcuda.so.1"), []byte("not a library"), 0o666))
	_, why := try("libcuda.so.1")
	for _, c := range []struct {
		name, folder, fail string
		system             bool // the system's own driver is found last
		want               string
	}{
		{"nowhere", t.TempDir(), "", true,
			`^NVIDIA driver: cannot find libcuda.so.1, needed for training on a GPU: install the ` +
				`NVIDIA driver; `},
		{"broken", broken, "", true, `; files that exist but do not load: /.*/libcuda.so.1: .*: install the ` +
			`NVIDIA driver`},
		{"ancient", filepath.Join(fakeRoot, "ancient"), "", false,
			`^NVIDIA driver: .*/ancient/libcuda.so.1 is too old, it has no cuGraphDestroy: `},
		{"no GPU", filepath.Join(fakeRoot, "new"), "cuInit:100", false,
			`^cuInit: CUDA_ERROR_NO_DEVICE \(100\): no CUDA-capable device is detected: the driver sees no ` +
				`GPU: check ` +
				`CUDA_VISIBLE_DEVICES`},
		{"stub", filepath.Join(fakeRoot, "new"), "cuInit:34", false,
			`^cuInit: an unknown error \(34\): .*stubs, from LD_LIBRARY_PATH$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.system && why == "" {
				t.Skip("this machine has a driver, which is found instead")
			}
			t.Setenv("PLANC_FAKE_FAIL", c.fail)
			theDriver = nil
			d, err := Open(c.folder)
			if err == nil || !regexp.MustCompile(c.want).MatchString(err.Error()) {
				t.Errorf("driver %v, error\n%v\nwant\n%s", d, err, c.want)
			}
		})
	}
}

func TestDevices(t *testing.T) {
	d, _ := fake(t, "new")
	if d.Version != "13.5" || d.Path != filepath.Join(fakeRoot, "new", "libcuda.so.1") {
		t.Errorf("%+v", d)
	}
	devices := must(d.Devices())(t)
	for i := range devices {
		devices[i].id = 0
	}
	if want := (Device{1, "Fake GPU 1", "0000:02:00.0", 9, 0, 132, 232448, 80 << 30, 0}); len(devices) != 2 ||
		devices[1] != want {
		t.Errorf("%+v, want the second to be %+v", devices, want)
	}
	if second := must(Open())(t); second != d {
		t.Error("a second driver")
	}
}

const listing = "fake\naxpy p p 4 4\nwide 128 8\n"

// A step on two streams that are ordered by an event runs as written, with the arguments as the kernel
// takes them. As a graph it runs again. Everything is freed, and a copy returns the result.
func TestStep(t *testing.T) {
	d, calls := fake(t, "new")
	c := must(must(d.Devices())(t)[0].Open())(t)
	unbind := must(c.Bind())(t)
	m := must(Load([]byte(listing)))(t)
	k := must(m.Kernel("axpy"))(t)
	x, y := must(Alloc(256))(t), must(Alloc(64))(t)
	host := must(AllocPinned(64))(t)
	compute, copies := must(NewStream(HighPriority))(t), must(NewStream(NormalPriority))(t)
	later, done := must(NewEvent(false))(t), must(NewEvent(true))(t)
	for i := range host.Slice() {
		host.Slice()[i] = byte(i)
	}
	calls()

	step := func() error {
		var args Args
		args.Pointer(x.At(64, 64).Pointer).Pointer(y.Pointer).Float32(2).Int32(16)
		return errors.Join(compute.Record(later), copies.Wait(later), copies.Upload(x.At(64, 64), host),
			copies.Record(done), compute.Fill(y, 3), compute.Wait(done),
			compute.Launch(k, Shape{Grid: [3]int{4}, Block: [3]int{32, 2}, Shared: 1024}, &args),
			compute.Copy(y, x.At(64, 64)))
	}
	check(t, step(), compute.Download(host, y), compute.Synchronize())
	work := "stream 2 upload 64 bytes\nstream 1 fill 64 bytes with 3\nstream 1 axpy <4,1,1|32,2,1|1024> p p 40000000 " +
		"00000010\nstream 1 copy 64 bytes\n"
	order := strings.ReplaceAll(work, "stream 1 axpy", "stream 1 waits for event 2\nstream 1 axpy")
	order = "event 1 after stream 1\nstream 2 waits for event 1\n" + strings.Replace(order, "bytes\n",
		"bytes\nevent 2 after stream 2\n", 1)
	if got, want := calls(), order+"stream 1 download 64 bytes\nsynchronize stream 1\n"; got != want {
		t.Errorf("the driver was asked for\n%s\nwant\n%s", got, want)
	}
	if s := host.Slice(); s[0] != 0 || s[63] != 63 || !slices.IsSorted(s) {
		t.Errorf("what comes back is %d", s)
	}

	g := must(compute.Capture(step))(t)
	if got := calls(); strings.Contains(got, "axpy") || !strings.HasSuffix(got, "graph 1: flags 8\n") {
		t.Errorf("work runs while it is captured, or the graph has no priorities:\n%s", got)
	}
	check(t, compute.Replay(g), compute.Replay(g))
	replay := "stream 1 replays graph 1\n" + work
	if got := calls(); got != replay+replay {
		t.Errorf("replays are\n%s\nwant twice\n%s", got, replay)
	}
	check(t, g.Close(), later.Close(), done.Close(), compute.Close(), copies.Close(), x.Free(), y.Free(),
		host.Free(), m.Unload())
	unbind()
	check(t, c.Close())
	if got := calls(); strings.Contains(got, "leak") {
		t.Errorf("left over:\n%s", got)
	}
}

// Binding a context while another is bound restores the other afterwards.
func TestNestedBind(t *testing.T) {
	d, calls := fake(t, "new")
	outer := bound(t, d)
	inner := must(must(d.Devices())(t)[1].Open())(t)
	calls()
	unbind := must(inner.Bind())(t)
	check(t, inner.Synchronize())
	unbind()
	check(t, outer.Synchronize(), inner.Close())
	if got, want := calls(), "synchronize context 2\nsynchronize context 1\nrelease context 2\n"; got != want {
		t.Errorf("the driver was asked for\n%swant\n%s", got, want)
	}
}

// The fake detects what is not closed: the test above can fail.
func TestLeak(t *testing.T) {
	d, calls := fake(t, "new")
	c := must(must(d.Devices())(t)[1].Open())(t)
	unbind := must(c.Bind())(t)
	must(Alloc(8))(t)
	unbind()
	check(t, c.Close())
	if got := calls(); !strings.Contains(got, "leak memory") {
		t.Errorf("no leak in\n%s", got)
	}
}

// A capture whose function fails or panics leaves the stream usable and no graph.
func TestCaptureFails(t *testing.T) {
	d, calls := fake(t, "new")
	bound(t, d)
	a, b, e := must(NewStream(0))(t), must(NewStream(0))(t), must(NewEvent(false))(t)
	m := must(Alloc(8))(t)
	_, err := a.Capture(func() error { return errors.Join(a.Record(e), b.Wait(e), b.Fill(m, 1)) })
	var failed *Error
	if !errors.As(err, &failed) || failed.Call != "cuStreamEndCapture" {
		t.Errorf("a stream was not joined: %v", err)
	}
	ours := errors.New("ours")
	if _, err := a.Capture(func() error { return ours }); !errors.Is(err, ours) {
		t.Errorf("the function failed: %v", err)
	}
	if _, err := a.Capture(a.Synchronize); !errors.As(err, &failed) || failed.Call != "cuStreamSynchronize" {
		t.Errorf("one waits while it is captured: %v", err)
	}
	calls()
	check(t, a.Fill(m, 1), a.Synchronize(), m.Free(), a.Close(), b.Close(), e.Close())
	if got := calls(); !strings.HasPrefix(got, "stream 1 fill 8 bytes with 1\nsynchronize stream 1\n") {
		t.Errorf("the stream does not work any more:\n%s", got)
	}
}

// Clusters use a separate launch function, which older drivers do not have.
func TestCluster(t *testing.T) {
	for folder, want := range map[string]string{"new": "|cluster 2,1,1>", "old": "500"} {
		d, calls := fake(t, folder)
		bound(t, d)
		m := must(Load([]byte(listing)))(t)
		k, s := must(m.Kernel("wide"))(t), must(NewStream(0))(t)
		check(t, k.Reserve(200<<10))
		var args Args
		args.Bytes(make([]byte, 128), 64).Uint64(9)
		err := s.Launch(k, Shape{Grid: [3]int{4}, Block: [3]int{128}, Cluster: [3]int{2}}, &args)
		if output := calls() + text(err); !strings.Contains(output, want) {
			t.Errorf("%s driver: %s", folder, output)
		}
		check(t, m.Unload(), s.Close())
	}
}

// A kernel is launched early if the last thing that was enqueued is a kernel, and not if it is anything else.
func TestEarlyLaunch(t *testing.T) {
	d, calls := fake(t, "new")
	bound(t, d)
	m := must(Load([]byte(listing)))(t)
	k, s := must(m.Kernel("wide"))(t), must(NewStream(0))(t)
	e, x := must(NewEvent(false))(t), must(Alloc(64))(t)
	kernel := func() error {
		var args Args
		args.Bytes(make([]byte, 128), 64).Uint64(9)
		return s.Launch(k, Shape{}, &args)
	}
	early := func(want bool, what string) {
		t.Helper()
		calls()
		check(t, kernel())
		if got := calls(); strings.Contains(got, "|early>") != want {
			t.Errorf("after %s: %s", what, got)
		}
	}
	check(t, kernel())
	early(false, "a kernel, if that is not wanted")
	s.EarlyLaunch = true
	early(true, "a kernel")
	check(t, s.Synchronize())
	early(true, "a kernel that has ended")
	for what, err := range map[string]error{"a record": s.Record(e), "a wait": s.Wait(e), "a memset": s.Fill(x, 1)} {
		check(t, err)
		early(false, what)
	}
	g := must(s.Capture(func() error {
		calls()
		err := errors.Join(kernel(), kernel())
		return err
	}))(t)
	calls()
	check(t, s.Replay(g))
	if got := calls(); strings.Count(got, "|early>") != 1 {
		t.Errorf("of two captured kernels, only the second is early:\n%s", got)
	}
	early(false, "a graph")
	check(t, m.Unload(), s.Close(), e.Close(), x.Free(), g.Close())
}

// GPUs before sm_90 and drivers before 12.3 have no early launches in graphs.
func TestCanLaunchEarly(t *testing.T) {
	fake(t, "new")
	for _, c := range []struct {
		major, driver int
		want          bool
	}{{8, 13000, false}, {9, 12020, false}, {9, 12030, true}, {10, 13000, true}} {
		theDriver.number = c.driver
		if got := (Device{Major: c.major}).CanLaunchEarly(); got != c.want {
			t.Errorf("compute capability %d, driver %d: %v", c.major, c.driver, got)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A driver that cannot load kernels by name loads them with their modules, unless the user asks for another mode.
func TestOldDriverLoadsEagerly(t *testing.T) {
	for _, c := range []struct{ folder, users, want string }{
		{"old", "", "EAGER"}, {"old", "LAZY", "LAZY"}, {"new", "", ""},
	} {
		t.Setenv(eagerLoading, c.users) // restores the variable at the end
		if c.users == "" {
			check(t, os.Unsetenv(eagerLoading))
		}
		theDriver = nil
		must(Open(filepath.Join(fakeRoot, c.folder)))(t)
		if got := os.Getenv(eagerLoading); got != c.want {
			t.Errorf("%s driver, %s=%q by the user: now %q, want %q", c.folder, eagerLoading, c.users, got, c.want)
		}
	}
}

// NCCL connects the ranks of a communicator when it is created, unless the user sets another mode.
func TestNCCLConnectsEarly(t *testing.T) {
	for _, c := range []struct{ users, want string }{{"", "0"}, {"1", "1"}} {
		t.Setenv(runtimeConnect, c.users)
		if c.users == "" {
			check(t, os.Unsetenv(runtimeConnect))
		}
		must(loadNCCL([]string{filepath.Join(fakeRoot, "new")}))(t)
		if got := os.Getenv(runtimeConnect); got != c.want {
			t.Errorf("%s=%q by the user: now %q, want %q", runtimeConnect, c.users, got, c.want)
		}
	}
}

// NCCL starts kernels of several communicators in the host's order if the driver can overlap them then, unless the user
// sets another mode.
func TestLaunchOrder(t *testing.T) {
	for _, c := range []struct{ folder, users, want string }{{"old", "", ""}, {"new", "", "1"}, {"new", "0", "0"}} {
		t.Setenv(launchOrder, c.users)
		if c.users == "" {
			check(t, os.Unsetenv(launchOrder))
		}
		theDriver = nil
		must(Open(filepath.Join(fakeRoot, c.folder)))(t)
		if got := os.Getenv(launchOrder); got != c.want {
			t.Errorf("%s driver, %s=%q by the user: now %q, want %q", c.folder, launchOrder, c.users, got, c.want)
		}
	}
}
