package engines

import (
	"testing"

	"github.com/planc-dev/planc/costmodel"
)

// Messages of each pass never cost planc less than messages of each step, and a CPU's collectives cost its
// compute nothing.
func TestContends(t *testing.T) {
	gpu := &costmodel.Cluster{GPU: costmodel.GPU{Arch: "sm_90"}}
	cpu := &costmodel.Cluster{GPU: costmodel.GPU{Arch: "cpu"}}
	if !cpu.IsCPU() || gpu.IsCPU() {
		t.Fatal("a GPU is taken for a CPU")
	}
	for _, e := range Engines {
		once, each := e.Contends(gpu, 1), e.Contends(gpu, 3)
		if each.Slows < once.Slows || once.Slows != e.Interfere || e.Overlap[1] && (each.Gain <= 1 || each.Gain >= 2) {
			t.Errorf("%s: once a step %+v, with each pass %+v", e.Name, once, each)
		}
		if e.Contends(cpu, 3) != (costmodel.Contention{}) {
			t.Errorf("%s: a CPU's compute is slower by %+v", e.Name, e.Contends(cpu, 3))
		}
	}
	if c := PlancEngine.Contends(gpu, 3); c != (costmodel.Contention{Slows: 0.2, Gain: 1.266}) {
		t.Errorf("planc's own sharded traffic %+v", c)
	}
}
