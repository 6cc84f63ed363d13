package search

import (
	"reflect"
	"runtime"
	"testing"
)

// The explanation of a plan's choices does not depend on whether a second worker answered some of the questions, nor
// on which.
func TestTwinsSayTheSame(t *testing.T) {
	pinned := *problem175(t)
	pinned.Pins = Pins{"zero": {"1", "2"}}
	several := map[string]*Problem{"Mixtral": problemMixtral(t), "pinned": &pinned}
	if isBrute() {
		several["175B"] = problem175(t)
	}
	for name, p := range several {
		cores := func(n int) *Result {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
			return must(t, p)
		}
		alone, two := cores(1), cores(2)
		if n := len(two.searcher.searched.families); n < minFamiliesToShare {
			t.Errorf("%s has %d families, for which there is no twin", name, n)
		}
		if !reflect.DeepEqual(alone.Best, two.Best) || alone.Counts != two.Counts {
			t.Errorf("%s: %v %+v, beside a twin %v %+v", name, alone.Best.Plan.Text(), alone.Counts,
				two.Best.Plan.Text(), two.Counts)
		}
		if !reflect.DeepEqual(alone.Alternatives, two.Alternatives) || !reflect.DeepEqual(alone.Choices, two.Choices) {
			t.Errorf("%s: of its choices %v, beside a twin %v", name, alone.Choices, two.Choices)
		}
	}
}
