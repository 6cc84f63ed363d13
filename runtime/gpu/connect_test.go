//go:build cuda && linux

package gpu

import (
	"testing"

	rt "github.com/planc-dev/planc/runtime"
)

// shifting returns a program whose members of group 0 also send to each other, without an effect on its results.
func shifting(declared bool) *rt.Program {
	p := toy{pp: 1, zero: 2}.program(true)
	p.Groups[0].Messages = declared
	forward := p.Segments[0].Forward
	p.Segments[0].Forward = func(r *rt.Rank, b *rt.Block) {
		at := r.Stage.Arena.Workspace.Offset
		to, from := View[float64](r, at, 4), View[float64](r, at+32, 4)
		deviceOf(r).Clear(from.At, 32)
		Shift(r, 0, to, from, 1)
		forward(r, b)
	}
	return p
}

// The ranks of each line connect before the first step: for messages if the program says that members send to each
// other, and for all collectives. The emulated NCCL fails a device that connects in a step, which the last two cases
// show.
func TestConnectsBeforeSteps(t *testing.T) {
	for _, c := range []struct {
		name           string
		declared       bool
		runtimeConnect string
		fails          bool
	}{
		{"declared messages", true, "", false},
		{"messages that the program does not declare", false, "", true},
		{"collectives that connect at first use", true, "1", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.runtimeConnect != "" {
				t.Setenv("NCCL_RUNTIME_CONNECT", c.runtimeConnect)
			}
			if _, err := train(t, onGPUs(shifting(c.declared), images())); (err != nil) != c.fails {
				t.Error(err)
			}
		})
	}
}
