package costmodel

import (
	"math"
	"testing"

	"github.com/planc-dev/planc/ir"
)

// The places of a token are those that all ways to choose groups, and experts in them, have in the mean.
func TestRoutingPlaces(t *testing.T) {
	const choices = 3
	for _, x := range []struct {
		groups, best, n int
	}{{4, 2, 8}, {4, 2, 4}, {4, 2, 2}, {4, 2, 1}, {4, 1, 2}, {4, 3, 2}, {4, 4, 8}, {1, 1, 4}, {6, 3, 2}, {6, 3, 3}} {
		parts := max(x.groups, x.n) // of the experts, each of one place and one group
		sum, ways := 0.0, 0.0
		for set := range 1 << x.groups {
			var open []int
			for p := range parts {
				if set>>(p*x.groups/parts)&1 == 1 {
					open = append(open, p)
				}
			}
			if len(open) != x.best*parts/x.groups || len(open) == 0 {
				continue
			}
			for tuple := range int(math.Pow(float64(len(open)), choices)) {
				on := map[int]bool{}
				for range choices {
					on[open[tuple%len(open)]*x.n/parts] = true
					tuple /= len(open)
				}
				sum, ways = sum+float64(len(on)), ways+1
			}
		}
		if got := (Routing{choices, x.groups, x.best}).Slots(x.n); math.Abs(got-sum/ways) > 1e-12 {
			t.Errorf("3 choices of %d of %d groups on %d places: %v, counted %v", x.best, x.groups, x.n, got, sum/ways)
		}
	}
	// DeepSeek-V3's, 8 of 256 experts in 4 of 8 groups on 8 nodes: 4 nodes at most, where any 8 would be on 5.25.
	if got := (Routing{8, 8, 4}).Slots(8); math.Abs(got-3.6) > 0.01 {
		t.Errorf("DeepSeek-V3's tokens go to %v of 8 nodes", got)
	}
	if free := (Routing{Choices: 8}).Slots(8); math.Abs(free-5.25) > 0.01 {
		t.Errorf("tokens of any experts go to %v of 8 nodes", free)
	}
}

// Tokens that go once to each place take no longer than a copy for each choice, and as long where there is one choice.
func TestOnceTime(t *testing.T) {
	c := twoTier(8)
	for _, p := range []Placement{{Local: 4, Nodes: 1, Span: 1}, {Local: 4, Nodes: 2, Span: 2},
		{Local: 2, Nodes: 8, Span: 8}} {
		each := c.CollectiveTime(ir.OpAllToAll, p, 1e9)
		if one := c.OnceTime(p, 1e9, Routing{Choices: 1}); math.Abs(float64(one/each-1)) > 1e-12 {
			t.Errorf("%+v: one choice takes %v, an all-to-all %v", p, one, each)
		}
		if allChoices := c.OnceTime(p, 1e9, Routing{Choices: 8}); allChoices >= each || allChoices < each/8 {
			t.Errorf("%+v: eight choices take %v, a copy for each %v", p, allChoices, each)
		}
	}
}
