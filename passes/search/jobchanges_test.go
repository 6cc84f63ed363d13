package search

import (
	"slices"
	"testing"

	"github.com/planc-dev/planc/costmodel"
)

// If many pins are all removed, the change names one field of the job; a few, or some, are named each.
func TestPinsGivenUpAreFolded(t *testing.T) {
	p := problem(cluster(t, "dgx-h100", 1, 8), gpt2Config(12, 768, 12, 50257, 1024), 1024, 64, mixed)
	p.Pins = Pins{"dp": {"8"}, "tp": {"1"}, "pp": {"1"}, "zero": {"0"}}
	s, err := newSearcher(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		keys []string
		want string
	}{
		{[]string{"dp", "tp", "pp", "zero"}, "--set plan=null"},
		{[]string{"dp", "zero"}, "--set plan.dp=null --set plan.zero=null"},
		{[]string{"dp", "tp", "pp"}, "--set plan.dp=null --set plan.pp=null --set plan.tp=null"},
	} {
		if got := (Change{Set: (changeFinder{s}).withoutPins(c.keys...).set}).Args(); got != c.want {
			t.Errorf("%q: %s, want %s", c.keys, got, c.want)
		}
	}
}

// Changes are sorted by price per hour, or by devices if there is no price. A change that keeps the cluster is first.
func TestCheapestFirst(t *testing.T) {
	on := func(set string, nodes, devices int, price float64) Change {
		return Change{Set: map[string]any{set: 1},
			Cluster: &costmodel.Cluster{Nodes: nodes, Node: costmodel.Node{Devices: devices, PricePerHour: price}}}
	}
	for _, c := range []struct {
		changes []Change
		want    []string
	}{
		{[]Change{on("more", 4, 8, 20), on("some", 3, 8, 20), on("pin", 2, 8, 20), on("headroom", 2, 8, 20)},
			[]string{"pin", "headroom", "some", "more"}},
		{[]Change{on("more", 4, 8, 0), on("some", 3, 8, 0), on("pin", 2, 8, 0), on("headroom", 2, 8, 0)},
			[]string{"pin", "headroom", "some", "more"}},
		{[]Change{on("dear", 2, 4, 90), on("cheap", 3, 8, 20)}, []string{"cheap", "dear"}},
		{[]Change{on("dear", 2, 4, 0), on("cheap", 1, 6, 0)}, []string{"cheap", "dear"}},
		// a node costs the same, however many of its devices are used
		{[]Change{on("part", 1, 4, 20), on("pin", 1, 2, 20)}, []string{"pin", "part"}},
	} {
		cheapestFirst(c.changes)
		var got []string
		for _, change := range c.changes {
			for key := range change.Set {
				got = append(got, key)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
