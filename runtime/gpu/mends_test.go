//go:build cuda && linux

package gpu

import (
	"errors"
	"os"
	"strings"
	"testing"

	rt "github.com/planc-dev/planc/runtime"
)

// A reduction that NCCL does not know stays where it is when the scratch grows behind it: the graph of the second step
// holds addresses.
func TestLogSumExpStays(t *testing.T) {
	p := toy{pp: 1}.program(true)
	forward, backward := p.Segments[0].Forward, p.Segments[0].Backward
	p.Segments[0].Forward = func(r *rt.Rank, b *rt.Block) {
		x := View[float64](r, r.Stage.Arena.Workspace.Offset, 4)
		of(r).Clear(x.At, 32)
		AllReduce(r, 0, x, x, rt.LSE)
		forward(r, b)
	}
	p.Segments[0].Backward = func(r *rt.Rank, b *rt.Block) {
		backward(r, b)
		if b.Micro == micros-1 { // behind the step's last one
			of(r).scratch(workspace + sumBytes + 1)
		}
	}
	if _, err := train(t, on(p, images())); err != nil {
		t.Error(err)
	}
}

// A rank that fails while all have a graph with collectives, on which the others wait, ends the run: its communicators
// end when the graphs have.
func TestFailureEndsGraphs(t *testing.T) {
	p := toy{pp: 2, zero: 3}.program(true)
	forward := p.Segments[0].Forward
	p.Segments[0].Forward = func(r *rt.Rank, b *rt.Block) {
		if d := of(r); r.ID == 1 && len(d.feeds) == 1 {
			d.feed(8, func([]byte) {
				if r.StepID == 4 {
					rt.Check(errors.New("a test's failure"))
				}
			})
		}
		forward(r, b)
	}
	if _, err := train(t, on(p, images())); err == nil || !strings.Contains(err.Error(), "a test's failure") {
		t.Error(err)
	}
}

// The driver is told of as many queues as there can be, unless the environment says otherwise.
func TestConnections(t *testing.T) {
	const name = "CUDA_DEVICE_MAX_CONNECTIONS"
	for _, c := range []struct{ before, want string }{{"", "32"}, {"8", "8"}} {
		t.Setenv(name, c.before)
		if err := connections(); err != nil || os.Getenv(name) != c.want {
			t.Errorf("%q gives %q: %v", c.before, os.Getenv(name), err)
		}
	}
}
