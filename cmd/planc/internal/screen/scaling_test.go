package screen

import (
	"testing"

	"github.com/planc-dev/planc/planner"
)

// What people read of the law: its fraction and its limit, or that no fraction fits.
func TestAmdahlSentence(t *testing.T) {
	limit := 80.0
	for _, c := range []struct {
		s    planner.Scaling
		want string
	}{
		{planner.Scaling{From: 8, SerialFraction: 0.0125, Residual: 0.013, Fits: true, Limit: &limit},
			"serial fraction 1.25 %, within 1.3 %: at most 80 × as fast as 8"},
		{planner.Scaling{From: 8, SerialFraction: -0.01, Residual: 0.002, Fits: true},
			"serial fraction -1 %, within 0.2 %: less than none, as more devices have more memory"},
		{planner.Scaling{From: 64, SerialFraction: 0.002, Residual: 0.07, Least: planner.RowFraction{Devices: 128,
			SerialFraction: -0.0705},
			Largest: planner.RowFraction{Devices: 4096, SerialFraction: 0.00327}},
			"no serial fraction fits: 128 do more than their share, and 4,096 are as fast as if 0.327 % of the work " +
				"were serial"},
		{planner.Scaling{From: 8, SerialFraction: 1.4, Residual: 0, Least: planner.RowFraction{Devices: 16,
			SerialFraction: 1.4}, Largest: planner.RowFraction{Devices: 16, SerialFraction: 1.4}},
			"no serial fraction fits: more devices are no faster than 8"},
		{planner.Scaling{From: 8, SerialFraction: -0.5, Residual: 0.2, Least: planner.RowFraction{Devices: 16,
			SerialFraction: -0.6},
			Largest: planner.RowFraction{Devices: 16, SerialFraction: -0.6}},
			"no serial fraction fits: 16 do more than their share"},
		{planner.Scaling{From: 8, SerialFraction: -0.3, Residual: 0.2, Least: planner.RowFraction{Devices: 16,
			SerialFraction: -0.6},
			Largest: planner.RowFraction{Devices: 32, SerialFraction: -0.1}},
			"no serial fraction fits: 16 and 32 each do more than their share"},
		{planner.Scaling{From: 8, SerialFraction: 0.3, Residual: 0.2, Least: planner.RowFraction{Devices: 16,
			SerialFraction: 0.1},
			Largest: planner.RowFraction{Devices: 32, SerialFraction: 0.5}},
			"no serial fraction fits: 16 are as fast as if 10 % of the work were serial, but 32 are as fast as if 50 " +
				"% of the work were serial"},
		{planner.Scaling{From: 1, SerialFraction: 0.9, Residual: 0.2, Least: planner.RowFraction{Devices: 2,
			SerialFraction: 0.701},
			Largest: planner.RowFraction{Devices: 8, SerialFraction: 1.1}},
			"no serial fraction fits: 2 are as fast as if 70.1 % of the work were serial, but 8 are no faster than 1"},
		{planner.Scaling{From: 8, SerialFraction: 0.1, Residual: 0, Least: planner.RowFraction{Devices: 16,
			SerialFraction: 0.1}, Largest: planner.RowFraction{Devices: 16, SerialFraction: 0.1}},
			"no serial fraction fits: 16 are as fast as if 10 % of the work were serial"},
	} {
		if got := scalingSentence(&c.s); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
