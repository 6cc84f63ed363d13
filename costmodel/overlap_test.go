package costmodel

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// A pass whose collectives would take as long as its compute does not end sooner than the engine's gain allows: the sum
// of both over the gain. Where they take a tenth, only the slower compute counts.
func TestOverlapGainBoundsAPass(t *testing.T) {
	for _, x := range []struct {
		fetch, gain, want float64
	}{{4, 0, 12 + 0.1*8}, {4, 1.25, 20 / 1.25}, {4, 1.64, 12 + 0.1*8}, {0.4, 1.25, 12 + 0.1*0.8}} {
		c := Chunk{Runs: []Layers{{Count: 3, Forward: Cost{Compute: 4}, Fetch: Seconds(x.fetch)}},
			Contention: Contention{0.1, x.gain}}
		if p := c.Pass(ir.Forward, true); math.Abs(float64(p.Total())-x.want) > 1e-12 {
			t.Errorf("two gathers of %v s beside 12 s with a gain of %v: %v, want %v", x.fetch, x.gain,
				p.Total(), x.want)
		}
	}
	if got := (Contention{0.1, 1.25}).Added(8, 2, 0); math.Abs(float64(got)-0.2) > 1e-12 {
		t.Errorf("2 s of collectives beside 8 s add %v", got)
	}
}

// What moves with each pass never costs planc less than what moves once a step, and a CPU's collectives cost its
// compute nothing.
func TestContends(t *testing.T) {
	gpu, cpu := &Cluster{GPU: GPU{Arch: "sm_90"}}, &Cluster{GPU: GPU{Arch: "cpu"}}
	if !cpu.IsCPU() || gpu.IsCPU() {
		t.Fatal("a GPU is taken for a CPU")
	}
	for _, e := range Engines {
		once, each := e.Contends(gpu, 1), e.Contends(gpu, 3)
		if each.Slows < once.Slows || once.Slows != e.Interfere || e.Overlap[1] && (each.Gain <= 1 || each.Gain >= 2) {
			t.Errorf("%s: once a step %+v, with each pass %+v", e.Name, once, each)
		}
		if e.Contends(cpu, 3) != (Contention{}) {
			t.Errorf("%s: a CPU's compute is slower by %+v", e.Name, e.Contends(cpu, 3))
		}
	}
	if c := PlancEngine.Contends(gpu, 3); c != (Contention{0.2, 1.266}) {
		t.Errorf("planc's own sharded traffic %+v", c)
	}
}
