package driver

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/runtime/program"
)

// A loss that is not lower by more than min_delta counts, and so does one that is not finite. An improvement starts the
// count again.
func TestEarlyStopRule(t *testing.T) {
	e := newEarlyStop(program.EarlyStopSettings{Patience: 2, MinDelta: 0.5})
	for i, c := range []struct {
		loss float64
		over bool
	}{{5, false}, {4.5, false}, {4.4, false}, {4, false}, {math.NaN(), true}, {3, false}, {3, false}, {2.6, true}} {
		e.add(c.loss)
		if e.isOver() != c.over {
			t.Errorf("loss %d, %v: over %v; %+v", i, c.loss, e.isOver(), e)
		}
	}
	if got, want := e.reason(), "2 evaluations without an improvement on 3.0000 by more than 0.5"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	extra := map[string]string{}
	e.save(extra)
	next := newEarlyStop(program.EarlyStopSettings{Metric: "valid_loss"})
	next.resume(extra)
	if next.best != 3 || next.waited != 2 || next.rule.Patience != 3 || next.isOver() {
		t.Errorf("resumed as %+v", next)
	}
	off := newEarlyStop(program.EarlyStopSettings{})
	for range 9 {
		off.add(1)
	}
	if off.isOver() {
		t.Error("a run without the setting stops early")
	}
}
