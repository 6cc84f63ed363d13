//go:build cuda && linux

package cuda

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// alone returns the fake NCCL for a communicator of one rank.
func alone(t *testing.T, folder string) (n *NCCL, calls func() string) {
	t.Helper()
	d, calls := fake(t, "new")
	bound(t, d)
	return must(loadNCCL([]string{filepath.Join(fakeRoot, folder)}))(t), calls
}

// Memory is registered and deregistered once each, before the communicator ends. If NCCL refuses or ignores
// it, nothing is deregistered.
func TestRegister(t *testing.T) {
	n, calls := alone(t, "new")
	if !n.Registers() {
		t.Fatal("the fake does")
	}
	m := must(n.Alloc(4096))(t)
	c := must(n.Join(t.Context(), must(n.NewID())(t), 0, 1, 0))(t)
	if known, err := c.Register(m); !known || err != nil {
		t.Errorf("%v, %v", known, err)
	}
	if known, err := c.Register(m.At(0, 1024)); !known || err != nil {
		t.Errorf("%v, %v", known, err)
	}
	t.Setenv("PLANC_FAKE_FAIL", "ncclCommRegister:1")
	known, err := c.Register(m)
	if failed := (*Error)(nil); known || !errors.As(err, &failed) || failed.Call != "ncclCommRegister" {
		t.Errorf("%v, %v", known, err)
	}
	t.Setenv("PLANC_FAKE_FAIL", "")
	t.Setenv("NCCL_LOCAL_REGISTER", "0")
	if known, err := c.Register(m); known || err != nil {
		t.Errorf("not to be listened to: %v, %v", known, err)
	}
	check(t, c.Close(t.Context()), n.Free(m))
	log := calls()
	if strings.Count(log, "deregister as rank 0 of 1") != 2 || strings.Contains(log, "buffers registered") ||
		!strings.HasSuffix(log, "destroy rank 0 of 1\nnccl memory is freed\n") ||
		!strings.Contains(log, "register 1024 bytes as rank 0 of 1") {
		t.Error(log)
	}
}

// NCCL before 2.19 cannot register memory, and Alloc says so.
func TestNoRegister(t *testing.T) {
	n, _ := alone(t, "old")
	_, err := n.Alloc(4096)
	if n.Registers() || err == nil || !strings.Contains(err.Error(), "NCCL 2.23.4 does not support it") {
		t.Errorf("%v, %v", n.Registers(), err)
	}
}

// The number of blocks of a communicator reaches NCCL, also that of one that is split from another. By default, NCCL
// decides.
func TestCTAs(t *testing.T) {
	n, calls := alone(t, "new")
	calls() // skips the driver's calls
	for _, c := range []struct {
		ctas int
		want string
	}{{0, ""}, {16, "rank 0: 16 to 16 CTAs\nrank 0: 16 to 16 CTAs\n"}} {
		whole := must(n.Join(t.Context(), must(n.NewID())(t), 0, 1, c.ctas))(t)
		part := must(whole.Split(t.Context(), 0, 0, c.ctas))(t)
		check(t, part.Close(t.Context()), whole.Close(t.Context()))
		if log := strings.ReplaceAll(calls(), "destroy rank 0 of 1\n", ""); log != c.want {
			t.Errorf("%q, want %q", log, c.want)
		}
	}
}
