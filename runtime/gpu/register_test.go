//go:build cuda && linux

package gpu

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"

	rt "github.com/planc-dev/planc/runtime"
	"github.com/planc-dev/planc/runtime/gpu/comm"
	"github.com/planc-dev/planc/runtime/gpu/gemmchoice"
)

// joinedBy trains on four emulated GPUs, and returns the line of the run about NCCL.
func joinedBy(t *testing.T) string {
	t.Helper()
	k := toy{pp: 2, zero: 2}
	want, err := train(t, k.program(false))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	got, err := train(t, onGPUs(k.program(true), images()), rt.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	got.compare(t, &want, 1e-12)
	_, output, _ := strings.Cut(log.String(), "msg=found what=")
	output, _, _ = strings.Cut(output, "\n")
	return strings.Trim(output, `"`)
}

// Arenas are registered with NCCL, and the run says so. If a rank may not register, or its GPU refuses,
// training gives the same numbers, and no member of its group has its arena registered. The emulated NCCL
// checks that, and that nothing is registered when a communicator closes.
func TestRegisters(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"", "NCCL 2.27.5: arenas are registered with all "},
		{registerEnv + "=0", "NCCL 2.27.5: arenas are not registered (PLANC_REGISTER=0)"},
		// not with GPU 1's communicators nor with those of its peers, pipes included
		{"PLANC_EMULATED_UNREGISTERED=1", " registered with 8 of 16 communicators (ncclCommRegister of "},
	} {
		t.Run(c.env, func(t *testing.T) {
			if name, value, set := strings.Cut(c.env, "="); set {
				t.Setenv(name, value)
			}
			if output := joinedBy(t); !strings.Contains(output, c.want) {
				t.Errorf("%q, want %q", output, c.want)
			}
		})
	}
}

// unset removes environment variables until the end of the test.
func unset(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		t.Setenv(name, "") // restores the value afterwards
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
}

// A run says what is fixed.
func TestDeterministicRun(t *testing.T) {
	unset(t, "NCCL_ALGO", "NCCL_PROTO", "NCCL_NVLS_ENABLE", "NCCL_COLLNET_ENABLE")
	t.Setenv(comm.Deterministic, "1")
	if output := joinedBy(t); !strings.Contains(output, "; deterministic by NCCL_ALGO=Ring") {
		t.Errorf("%q", output)
	}
	t.Setenv(gemmchoice.Timing, "1")
	_, err := rt.Run(context.Background(), onGPUs(toy{pp: 2}.program(true), images()), rt.Dir(t.TempDir()),
		rt.Data(drawn{}), rt.Logger(slog.New(slog.DiscardHandler)))
	if err == nil || !strings.Contains(err.Error(), "exclude each other") {
		t.Error(err)
	}
}
