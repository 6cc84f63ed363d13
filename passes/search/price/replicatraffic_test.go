package price

import (
	"testing"

	"github.com/planc-dev/planc/ir"
)

// With a pipeline, ZeRO 1 gathers parameters once per step. ZeRO 2 scatters gradients after each micro-batch. ZeRO 3
// also gathers parameters before each forward and each backward pass of a chunk, except for the one layer that is
// still gathered.
func TestStateMoves(t *testing.T) {
	const micros, layers = 4, 6
	p := problem(cluster(t, "dgx-h100", 1, 4), llamaConfig(layers, 64, 4, 4, 128, 64, 16), 16, 2*micros, mixed)
	bytes := map[int]map[ir.Op]int{}
	for zero := range 4 {
		plan := ir.SerialPlan(layers, 1, mixed)
		plan.DP, plan.PP, plan.Zero, plan.ZeroGroup = 2, 2, zero, min(2, zero+1)
		plan.MicroBatches, plan.Schedule, plan.StageLayers, plan.AxisOrder = micros, "1f1b", "3,3", "tp,dp,pp"
		moves, err := StateMoves(p, plan)
		if err != nil {
			t.Fatal(err)
		}
		bytes[zero] = map[ir.Op]int{}
		for _, m := range moves {
			bytes[zero][m.Op] = m.Bytes
		}
	}
	once := bytes[1][ir.OpAllGather]
	if bytes[0][ir.OpAllReduce] != 2*once || bytes[1][ir.OpReduceScatter] != 2*once || once == 0 { // f32 and bf16
		t.Errorf("zero 0 moves %v, zero 1 %v", bytes[0], bytes[1])
	}
	for zero := 2; zero < 4; zero++ {
		if got := float64(bytes[zero][ir.OpReduceScatter]) / float64(bytes[1][ir.OpReduceScatter]); got <
			0.99*micros || got > 1.1*micros {
			t.Errorf("zero %d scatters %.2f times what zero 1 does, want %d", zero, got, micros)
		}
	}
	if got := float64(bytes[3][ir.OpAllGather]) / float64(once); got < 1.2*micros || got > 2.1*micros {
		t.Errorf("zero 3 gathers %.2f times what zero 1 does, want up to %d", got, 2*micros)
	}
}
