package search

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// Each stage's blocks are spread over its chunks one by one. Surplus blocks go to the first chunks, and to those with
// the embedding or the head last.
func TestSpread(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 19))
	for range 2000 {
		b := &stageBalancer{dims: Dims{Embed: r.IntN(2) > 0, Head: r.IntN(2) > 0}}
		plan := &ir.Plan{PP: 1 + r.IntN(8), VPP: 1 + r.IntN(5), Schedule: "interleaved"}
		if r.IntN(3) == 0 {
			plan.VPP, plan.Schedule = 2, "zb-v"
		}
		n, stages := plan.PP*plan.VPP, make([]int, plan.PP)
		want := make([]int, n)
		for st := range stages {
			stages[st] = r.IntN(20)
			var heavy, light []int
			for c := range n {
				switch {
				case plan.StageOf(c) != st:
				case c == 0 && b.dims.Embed || c == n-1 && b.dims.Head:
					light = append(light, c)
				default:
					heavy = append(heavy, c)
				}
			}
			turns := append(heavy, light...)
			for i := range stages[st] {
				want[turns[i%len(turns)]]++
			}
		}
		if got := b.spreadOverChunks(plan, stages); !slices.Equal(got, want) {
			t.Fatalf("%s pp %d vpp %d: %v blocks are spread as %v, want %v", plan.Schedule, plan.PP, plan.VPP,
				stages, got, want)
		}
	}
}
