package passes

import (
	"testing"

	"github.com/planc-dev/planc/ir"
)

// Buffers of schedules without chunks, which have a closed form, are those that their passes take.
func TestInFlight(t *testing.T) {
	for _, name := range []string{"none", "gpipe", "1f1b"} {
		for pp := 1; pp < 6; pp++ {
			for micro := 1; micro < 8; micro++ {
				plan := ir.Plan{PP: pp, VPP: 1, MicroBatches: micro, Schedule: name}
				for stage := range pp {
					if got, want := InFlight(plan, stage), ir.InFlight(Schedule(plan, stage), 0); len(got) != 1 || got[0] != want {
						t.Errorf("%s, stage %d of %d, %d micro-batches: %v, want %d", name, stage, pp, micro, got, want)
					}
				}
			}
		}
	}
}
