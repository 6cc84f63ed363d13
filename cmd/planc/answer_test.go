package main

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// The latency of links is a guess until links were measured, whatever else was.
func TestLinkIsGuessedUntilMeasured(t *testing.T) {
	j := tinyJob(t, "dgx-h100")
	for _, c := range []struct {
		measured costmodel.Measured
		guess    bool
	}{
		{costmodel.Measured{}, true},
		{costmodel.Measured{By: "a bench of the network", Network: 0.136}, true},
		{costmodel.Measured{By: "planc calibrate", Link: 0.9}, false},
		{costmodel.Measured{By: "a bench", Collectives: "sizes.csv"}, false},
	} {
		own := *j.Hardware
		own.Measured = c.measured
		j.Hardware = &own
		guess := false
		for _, g := range assumptions(j, ir.Plan{}) {
			guess = guess || g.Path == "node.link.latency_us"
		}
		if guess != c.guess {
			t.Errorf("%+v: guessed %v, want %v", c.measured, guess, c.guess)
		}
	}
}

// More memory that no plan is faster with gains nothing.
func TestMemoryGainsNothing(t *testing.T) {
	d := example()
	d.Binding = bindingDoc{"compute", 4 << 30}
	d.Levers = []leverDoc{{Name: memoryBinds}}
	if got := d.bindingSentence(); !strings.Contains(got, ", 8 GiB more gains nothing.") {
		t.Errorf("%q", got)
	}
}
