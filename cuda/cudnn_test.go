//go:build cuda && linux

package cuda

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var small = Attention{Batch: 2, Seq: 8, KSeq: 8, KHeads: 2, Group: 1, Dim: 16, Scale: 0.25, Causal: true,
	Type: ValueBFloat16}

// attentionsOf returns Attentions of the fake cuDNN.
func attentionsOf(t *testing.T) (a *Attentions, calls func() string) {
	t.Helper()
	d, calls := fake(t, "new")
	bound(t, d)
	return must(must(loadDNN([]string{filepath.Join(fakeRoot, "new")}))(t).NewAttentions())(t), calls
}

// Of the engines that the heuristic suggests, the first that is deterministic and works with the workspace
// is chosen and runs. Everything is freed.
func TestAttentionPlans(t *testing.T) {
	a, calls := attentionsOf(t)
	if a.dnn.Version != "9.26.0" {
		t.Errorf("version %s", a.dnn.Version)
	}
	s, at := must(NewStream(0))(t), AttentionOperands{}
	for i := range at {
		at[i] = Pointer(i * Alignment)
	}
	for i, x := range []struct {
		x    Attention
		grad bool
		ops  int
	}{{small, false, 14}, {small, true, 21}, {Attention{Batch: 2, Seq: 8, KSeq: 8, KHeads: 2, Group: 3, Dim: 16,
		Scale: 1, Type: ValueFloat16}, true, 19}} {
		p := must(a.Prepare(x.x, x.grad, 1<<20))(t)
		if own := int64(512); p.Workspace < own || !x.grad && p.Workspace != own {
			t.Errorf("%d: %d bytes of workspace", i, p.Workspace)
		}
		room := must(Alloc(p.Workspace))(t)
		check(t, s.Attend(p, &at, room))
		if got := calls(); !strings.Contains(got, fmt.Sprintf("graph of %d operations\n", x.ops)) ||
			!strings.Contains(got, "attention by way 2\n") {
			t.Errorf("%d: %s", i, got)
		}
		at[AttentionQ]++
		if !panics(func() { _ = s.Attend(p, &at, room) }) {
			t.Error("unaligned operands are accepted")
		}
		at[AttentionQ]--
		if !panics(func() { _ = s.Attend(p, &at, room.At(0, 16)) }) {
			t.Error("a workspace that is too small is accepted")
		}
		check(t, p.Close(), room.Free())
	}
	check(t, s.Close(), a.Close())
	if got := calls(); !strings.Contains(got, "descriptors of cuDNN left: 0\n") {
		t.Error(got)
	}
}

// Prepare fails for attention that cuDNN does not support, for too old a version, and if a call fails.
// Everything is freed.
func TestAttentionPlansFail(t *testing.T) {
	a, calls := attentionsOf(t)
	ragged, wide := small, small
	ragged.KSeq, wide.Dim = 130, 136
	for version, x := range map[string]Attention{"91001": small, "91500": ragged, "92600": wide} {
		t.Setenv("PLANC_FAKE_CUDNN", version)
		a.dnn = must(loadDNN([]string{filepath.Join(fakeRoot, "new")}))(t)
		if _, err := a.Prepare(x, false, 1<<20); !errors.Is(err, errNoAttention) {
			t.Errorf("%s: %v", version, err)
		}
	}
	a.dnn.number = 92600
	if _, err := a.Prepare(small, true, 600); !errors.Is(err, errNoAttention) ||
		!strings.Contains(err.Error(), "none of 3 engines works with 600 bytes of workspace") {
		t.Errorf("%v", err)
	}
	t.Setenv("PLANC_FAKE_NO_ENGINE", "1")
	if _, err := a.Prepare(small, false, 1<<20); !errors.Is(err, errNoAttention) ||
		!strings.Contains(err.Error(), "a configuration without an engine") {
		t.Errorf("%v", err)
	}
	os.Unsetenv("PLANC_FAKE_NO_ENGINE")
	var failed *Error
	for _, call := range []string{"cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute", "cudnnBackendFinalize",
		"cudnnBackendGetAttribute"} {
		t.Setenv("PLANC_FAKE_FAIL", call+":3001")
		if _, err := a.Prepare(small, true, 1<<20); !errors.As(err, &failed) || failed.Call != call ||
			failed.Code != 3001 || failed.Text != "the fake was told so" {
			t.Errorf("%s: %v", call, err)
		}
	}
	t.Setenv("PLANC_FAKE_FAIL", "")
	p, s := must(a.Prepare(small, false, 1<<20))(t), must(NewStream(0))(t)
	at, room := AttentionOperands{}, must(Alloc(p.Workspace))(t)
	for _, call := range []string{"cudnnSetStream", "cudnnBackendCreateDescriptor", "cudnnBackendSetAttribute",
		"cudnnBackendFinalize", "cudnnBackendExecute"} {
		t.Setenv("PLANC_FAKE_FAIL", call+":5000")
		if err := s.Attend(p, &at, room); !errors.As(err, &failed) || failed.Call != call || failed.Code != 5000 {
			t.Errorf("%s: %v", call, err)
		}
	}
	t.Setenv("PLANC_FAKE_FAIL", "")
	check(t, p.Close(), room.Free(), s.Close(), a.Close())
	if got := calls(); !strings.Contains(got, "descriptors of cuDNN left: 0\n") {
		t.Error(got)
	}
}
