//go:build cuda && linux

package gpu

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/planc-dev/planc/cuda/kernels/emulate"
	rt "github.com/planc-dev/planc/runtime"
)

// The memory of a reduction that NCCL does not support stays at its address when the scratch memory grows
// later, because the graph of the second step holds addresses.
func TestLogSumExpStays(t *testing.T) {
	p := toy{pp: 1}.program(true)
	forward, backward := p.Segments[0].Forward, p.Segments[0].Backward
	p.Segments[0].Forward = func(r *rt.Rank, b *rt.Block) {
		x := View[float64](r, r.Stage.Arena.Workspace.Offset, 4)
		deviceOf(r).Clear(x.At, 32)
		AllReduce(r, 0, x, x, rt.LSE)
		forward(r, b)
	}
	p.Segments[0].Backward = func(r *rt.Rank, b *rt.Block) {
		backward(r, b)
		if b.Micro == micros-1 { // after the last micro-batch of the step
			deviceOf(r).scratch(workspace + sumBytes + 1)
		}
	}
	if _, err := train(t, onGPUs(p, images())); err != nil {
		t.Error(err)
	}
}

// If a rank fails after all have captured a graph with collectives, in which the others wait, the run ends:
// communicators close after the graphs.
func TestFailureEndsGraphs(t *testing.T) {
	p := toy{pp: 2, zero: 3}.program(true)
	forward := p.Segments[0].Forward
	p.Segments[0].Forward = func(r *rt.Rank, b *rt.Block) {
		if d := deviceOf(r); r.ID == 1 && len(d.feeds) == 1 {
			d.feed(8, func([]byte) {
				if r.StepID == 4 {
					rt.Check(errors.New("a test's failure"))
				}
			})
		}
		forward(r, b)
	}
	if _, err := train(t, onGPUs(p, images())); err == nil || !strings.Contains(err.Error(), "a test's failure") {
		t.Error(err)
	}
}

// In a captured step, the collectives of buckets and the messages of pipelines have a higher priority than
// kernels. The run is that of another test, in a process whose driver writes a log.
func TestCommunicationHasPriority(t *testing.T) {
	if emulate.Skipped() != "" {
		t.Skip(emulate.Skipped())
	}
	log := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command(os.Args[0], "-test.run=^TestFailureEndsGraphs$")
	cmd.Env = append(os.Environ(), "PLANC_EMULATED_LOG="+log)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	graphs := regexp.MustCompile(`graph of (\d+) nodes, (\d+) at high priority`).FindAllStringSubmatch(string(text), -1)
	if len(graphs) == 0 {
		t.Fatal("no graph was captured")
	}
	for _, g := range graphs {
		all, _ := strconv.Atoi(g[1])
		high, _ := strconv.Atoi(g[2])
		if high == 0 || high == all {
			t.Error(g[0])
		}
	}
}

// Kernels that follow kernels are launched early, also in a captured step, unless the environment switches that off. The
// runs are those of another test, in processes whose driver writes a log.
func TestKernelsAreLaunchedEarly(t *testing.T) {
	if emulate.Skipped() != "" {
		t.Skip(emulate.Skipped())
	}
	for value, want := range map[string]bool{"": true, "1": true, "0": false} {
		log := filepath.Join(t.TempDir(), "log")
		cmd := exec.Command(os.Args[0], "-test.run=^TestFailureEndsGraphs$")
		cmd.Env = append(os.Environ(), "PLANC_EMULATED_LOG="+log, earlyVariable+"="+value)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		for _, launch := range []string{" runs stream ", " runs graph: stream "} {
			kernel := regexp.MustCompile(launch + `\d+: \w+ <[^>]*> early\n`)
			if kernel.Match(text) != want {
				t.Errorf("%s=%s: kernels launched early at%s: %v", earlyVariable, value, launch, !want)
			}
		}
	}
}

// The driver gets the maximum number of hardware queues, unless the environment sets another.
func TestConnections(t *testing.T) {
	const name = "CUDA_DEVICE_MAX_CONNECTIONS"
	for _, c := range []struct{ before, want string }{{"", "32"}, {"8", "8"}} {
		t.Setenv(name, c.before)
		if err := setMaxConnections(); err != nil || os.Getenv(name) != c.want {
			t.Errorf("%q gives %q: %v", c.before, os.Getenv(name), err)
		}
	}
}
