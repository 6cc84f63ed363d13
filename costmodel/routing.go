package costmodel

import (
	"math"

	"github.com/planc-dev/planc/ir"
)

// Routing describes how a token's experts are chosen: Choices of them. If Groups is above 1, they come from the
// BestGroups best of this many equal groups, which limits the number of nodes that a token goes to (DeepSeek-AI,
// "DeepSeek-V3 Technical Report", 2.1.2).
type Routing struct{ Choices, Groups, BestGroups int }

// Slots returns the expected number, among n places that share the experts in order, on which a token's experts are.
// The choices are evenly distributed over the allowed experts. A place that has a part of a group, or several groups,
// counts if it has at least one choice.
func (r Routing) Slots(n int) float64 {
	places, choices := float64(n), float64(r.Choices)
	if r.Groups <= 1 || r.BestGroups >= r.Groups || n%r.Groups != 0 && r.Groups%n != 0 {
		return places * (1 - math.Pow(1-1/places, choices))
	}
	groups, best := float64(r.Groups), float64(r.BestGroups)
	if n >= r.Groups {
		return places * best / groups * (1 - math.Pow(1-groups/(best*places), choices))
	}
	each := r.Groups / n // groups per place
	hit := 0.0
	for k := 1; k <= min(each, r.BestGroups); k++ {
		chosen := choose(each, k) * choose(r.Groups-each, r.BestGroups-k) / choose(r.Groups, r.BestGroups)
		hit += chosen * (1 - math.Pow(1-float64(k)/best, choices))
	}
	return places * hit
}

// choose returns the number of ways to choose k of n.
func choose(n, k int) float64 {
	if k < 0 || k > n {
		return 0
	}
	out := 1.0
	for i := range k {
		out *= float64(n-i) / float64(i+1)
	}
	return out
}

// OnceTime returns the time of an all-to-all to experts whose buffer of b bytes has one copy per choice, if a token is
// sent over the network once to each node, and over the links once to each rank, that has any of its experts (DeepEP,
// Zhao et al. 2025).
func (c *Cluster) OnceTime(p Placement, b Bytes, r Routing) Seconds {
	part := func(places int) Bytes { return Bytes(r.Slots(places) / float64(r.Choices)) }
	near := c.CollectiveTime(ir.OpAllToAll, Placement{Local: p.Local, Nodes: 1, Span: 1}, b*part(p.Ranks()))
	if p.Nodes == 1 {
		return near
	}
	return max(near, c.CollectiveTime(ir.OpAllToAll, p, b*part(p.Nodes)))
}
