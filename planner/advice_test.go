package planner

import (
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/planner/quantity"
)

// The room that a tight plan is told to keep is what its own engine's uncertainty asks for: the most memory that surely
// fits does, and a hundredth more does not. An engine whose memory is less certain asks for more room.
func TestRoomIsTheEngines(t *testing.T) {
	device := costmodel.Bytes(80 << 30)
	most := map[string]int64{}
	for _, name := range []string{"planc", "megatron", "fsdp", "deepspeed"} {
		e, m := engines.EngineOf(name), costmodel.Memory{Total: 70 << 30}
		most[name] = mostSureMemory(e, m, device)
		m.Total = most[name]
		if p := e.FitProbability(m, device); p < sureFit {
			t.Errorf("%s: %s of %v fit with %v, want at least %v", name, quantity.Bytes(m.Total), device, p, sureFit)
		}
		m.Total += m.Total / 100
		if p := e.FitProbability(m, device); p >= sureFit {
			t.Errorf("%s: %s of %v fit with %v and are not the most", name, quantity.Bytes(m.Total), device, p)
		}
	}
	if most["megatron"] >= most["planc"] {
		t.Errorf("megatron %s surely fit, planc %s: measured memory is off by more", quantity.Bytes(most["megatron"]),
			quantity.Bytes(most["planc"]))
	}
}
