package settings

import (
	"testing"

	"github.com/planc-dev/planc/runtime/program"
)

// Schedule wsd has a decay, also if a flag chooses it.
func TestScheduleNeedsDecay(t *testing.T) {
	const want = "train.schedule.kind is wsd, but train.schedule.decay, the number of steps of its final decay, is " +
		"0; set it, such as 1000"
	s := program.ScheduleSettings{Kind: "wsd"}
	err := checkSchedule(&s)
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, s := range []program.ScheduleSettings{{Kind: "wsd", Decay: 1}, {Kind: "cosine"}} {
		if err := checkSchedule(&s); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
