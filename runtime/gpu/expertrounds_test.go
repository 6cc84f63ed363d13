//go:build cuda && linux

package gpu

import (
	"fmt"
	"sync/atomic"
	"testing"

	rt "github.com/planc-dev/planc/runtime"
)

// repeating is a Source whose tokens repeat more often in steps 3 and 7 than in previous ones. The host
// waits for nothing after these steps, so that the next step has already been launched.
type repeating struct{ drawn }

func (s repeating) Train(g int64, tokens, labels []int32) (int, error) {
	n, err := s.drawn.Train(g, tokens, labels)
	step := g/(micros*dp) + 1
	for i := range tokens {
		switch {
		case step == 3 && g%3 == 0:
			tokens[i] = int32(i / 3)
		case step == 7 && g%5 == 0:
			tokens[i] = 7
		}
	}
	return n, err
}

// routed returns a program whose blocks use their tokens as choices of experts, which have one slot each.
// walks counts how often rank 0 runs a block's function.
func (k toy) routed(gpu bool, walks *atomic.Int64) *rt.Program {
	p := k.due(gpu)
	p.Experts = rt.Experts{Copies: 1}
	forward := p.Segments[1].Forward
	p.Segments[1].Forward = func(r *rt.Rank, b *rt.Block) {
		at := r.Stage.Inputs.Tokens + 4*b.Micro*seqLen
		if gpu {
			Rounds(r, 0, Buf[int32]{At: at, N: seqLen}, 16, 1)
		} else {
			rt.Rounds(r, 0, ints(r, b, r.Stage.Inputs.Tokens), 16, 1)
		}
		if r.ID == 0 && r.Training {
			walks.Add(1)
		}
		forward(r, b)
	}
	return p
}

// A captured step has as many rounds as were needed so far. A step that needs more is retried, and so is
// the next one, which has been launched already. Nothing is lost, and the logged choices equal a CPU's.
func TestRoundsAhead(t *testing.T) {
	for _, k := range []toy{{pp: 1, zero: 2}, {pp: 2, zero: 3}} {
		t.Run(fmt.Sprintf("%+v", k), func(t *testing.T) {
			var walks, none atomic.Int64
			want, _ := alone(t, k.routed(false, &none), rt.Data(repeating{}))
			got, dir := alone(t, onGPUs(k.routed(true, &walks), images()), rt.Data(repeating{}))
			sameLines(t, got, want, 1e-11)
			largest := 0.0
			for _, line := range want {
				if n, ok := line["expert_rounds"].(float64); ok {
					largest = max(largest, n)
				}
			}
			if largest == 0 {
				t.Error("no step needs further rounds")
			}
			// Step 1 and its graph; step 3, and a new graph; step 7, and another.
			if n, each := walks.Load(), int64(blocks/k.pp*micros); n != 6*each {
				t.Errorf("rank 0 walked %d times through its schedule, want 6", n/each)
			}
			// the emulated clock advances a millisecond for each step: this one, its first attempt, and the next
			// step's
			for _, step := range []int{3, 7} {
				if s := secondsOf(t, dir)[step]; s < 0.003 {
					t.Errorf("step %d took %v s, without what came to nothing", step, s)
				}
			}
		})
	}
}
