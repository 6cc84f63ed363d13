package planner

import (
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/costmodel/engines"
	"github.com/planc-dev/planc/planner/quantity"
)

// The headroom that is suggested for a tight plan follows from the uncertainty of its engine: the largest memory that
// surely fits does fit, and one per cent more does not. An engine whose memory is less certain needs more headroom.
func TestRoomIsTheEngines(t *testing.T) {
	device := costmodel.Bytes(80 << 30)
	fits := map[string]int64{}
	for _, name := range []string{"planc", "megatron", "fsdp", "deepspeed"} {
		e, m := engines.EngineOf(name), costmodel.Memory{Total: 70 << 30}
		fits[name] = mostSureMemory(e, m, device)
		m.Total = fits[name]
		if p := e.FitProbability(m, device); p < sureFit {
			t.Errorf("%s: %s of %v fit with %v, want at least %v", name, quantity.Bytes(m.Total), device, p, sureFit)
		}
		m.Total += m.Total / 100
		if p := e.FitProbability(m, device); p >= sureFit {
			t.Errorf("%s: %s of %v fit with %v and are not the most", name, quantity.Bytes(m.Total), device, p)
		}
	}
	if fits["megatron"] >= fits["planc"] {
		t.Errorf("megatron %s surely fit, planc %s: measured memory is off by more", quantity.Bytes(fits["megatron"]),
			quantity.Bytes(fits["planc"]))
	}
}
