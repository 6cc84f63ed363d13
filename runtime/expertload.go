package runtime

import (
	"cmp"
	"math"
	"slices"

	"github.com/planc-dev/planc/runtime/report"
)

// layerID is a layer of a segment.
type layerID struct{ segment, layer int }

// expertCounts is what a rank counts of its experts in a step.
type expertCounts struct {
	counting bool // a forward pass of a training step is running, and it is not recomputed
	at       layerID
	layers   map[layerID]*layerLoad
	aux      float64
}

// layerLoad is what a rank counts for one layer.
type layerLoad struct {
	choices        []int64 // per expert
	dropped        int64
	passes, rounds int
}

// clear resets the counts before a step.
func (c *expertCounts) clear() {
	c.aux = 0
	for _, x := range c.layers {
		clear(x.choices)
		x.dropped, x.passes, x.rounds = 0, 0, 0
	}
}

// add counts a micro-batch's choices. A dropped choice is encoded as -1 - expert.
func (c *expertCounts) add(index []int32, experts, rounds int) {
	if !c.counting {
		return
	}
	x := c.layer(c.at, experts)
	x.passes++
	x.rounds += rounds
	for _, e := range index {
		if e < 0 {
			x.dropped++
			e = -1 - e
		}
		x.choices[e]++
	}
}

// layer returns the counts of a layer.
func (c *expertCounts) layer(at layerID, experts int) *layerLoad {
	x := c.layers[at]
	if x == nil {
		x = (&layerLoad{choices: make([]int64, experts)})
		if c.layers == nil {
			c.layers = map[layerID]*layerLoad{}
		}
		c.layers[at] = x
	}
	return x
}

// auxLoss returns the mean auxiliary loss over the sequences of the global batch.
func auxLoss(ranks []*Rank) float64 {
	sum := 0.0
	for _, k := range ranks {
		sum += k.experts.aux
	}
	return sum / float64(max(ranks[0].Program.Experts.Copies, 1)) / float64(ranks[0].Program.Batch.GlobalBatch)
}

// expertLoads combines the counts of the ranks, layer by layer.
func expertLoads(ranks []*Rank) []report.ExpertLoad {
	if ranks[0].Program.Experts.Copies == 0 {
		return nil
	}
	var ids []layerID
	for _, k := range ranks {
		for id := range k.experts.layers {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	slices.SortFunc(ids, func(a, b layerID) int { return cmp.Or(a.segment-b.segment, a.layer-b.layer) })
	out := make([]report.ExpertLoad, len(ids))
	for i, id := range ids {
		out[i] = expertLoad(ranks, id)
	}
	return out
}

func expertLoad(ranks []*Rank, id layerID) report.ExpertLoad {
	e := report.ExpertLoad{Segment: ranks[0].Program.Segments[id.segment].Name, Layer: id.layer, Rounds: make([]int,
		len(ranks))}
	var choices []int64
	for i, k := range ranks {
		x := k.experts.layers[id]
		if x == nil {
			continue
		}
		if choices == nil {
			choices = make([]int64, len(x.choices))
		}
		for j, n := range x.choices {
			choices[j] += n
		}
		e.Dropped += x.dropped
		e.Rounds[i], e.Further = x.rounds, max(e.Further, x.rounds-x.passes)
	}
	e.Dropped /= int64(ranks[0].Program.Experts.Copies)
	e.Load, e.CV = loadSpread(choices)
	return e
}

// loadSpread returns the maximum of some numbers divided by their mean, and their coefficient of variation.
func loadSpread(n []int64) (most, cv float64) {
	sum, squares, top := 0.0, 0.0, 0.0
	for _, x := range n {
		sum += float64(x)
		top = max(top, float64(x))
	}
	mean := sum / float64(len(n))
	for _, x := range n {
		squares += float64((float64(x) - mean) * (float64(x) - mean))
	}
	return top / mean, math.Sqrt(squares/float64(len(n))) / mean
}
