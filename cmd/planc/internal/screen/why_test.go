package screen

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/planner"
)

// More memory that no plan is faster with gains nothing.
func TestMemoryGainsNothing(t *testing.T) {
	d := example()
	d.Binding = planner.Binding{Resource: "compute", SlackBytes: 4 << 30}
	d.Levers = []planner.Lever{{Name: planner.MemoryBinding}}
	if got := d.bindingSentence(); !strings.Contains(got, ", 8 GiB more gains nothing.") {
		t.Errorf("%q", got)
	}
}
