package driver

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/runtime/program"
)

func TestSchedules(t *testing.T) {
	const lr, min, total = 1.0, 0.1, 110
	for _, test := range []struct {
		kind string
		step int
		want float64
	}{
		{"constant", 1, 0.1}, {"constant", 10, 1}, {"constant", 11, 1}, {"constant", 110, 1},
		{"linear", 5, 0.5}, {"linear", 60, 0.55}, {"linear", 110, 0.1},
		{"cosine", 10, 1}, {"cosine", 35, 0.1 + 0.9*(1+math.Sqrt2/2)/2}, {"cosine", 60, 0.55}, {"cosine", 110, 0.1},
		{"cosine", 500, 0.1},
		{"wsd", 90, 1}, {"wsd", 100, 0.55}, {"wsd", 110, 0.1},
		{"inverse_sqrt", 10, 1}, {"inverse_sqrt", 40, 0.5}, {"inverse_sqrt", 2000, 0.1},
	} {
		o := &program.ScheduleSettings{Kind: test.kind, Warmup: 10, MinLR: min, Decay: 20}
		if got := rate(o, lr, test.step, total); math.Abs(got-test.want) > 1e-15 {
			t.Errorf("%s at step %d: %v, want %v", test.kind, test.step, got, test.want)
		}
	}
	if got := rate(&program.ScheduleSettings{Kind: "cosine", MinLR: min}, lr, 1, 1); math.Abs(got-min) > 1e-15 {
		t.Errorf("the only step has rate %v", got)
	}
}
