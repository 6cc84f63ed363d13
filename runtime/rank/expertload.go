package rank

import (
	"cmp"
	"math"
	"slices"

	"github.com/planc-dev/planc/runtime/report"
)

// LayerID is a layer of a segment.
type LayerID struct{ Segment, Layer int }

// expertCounts is what a rank counts of its experts in a step.
type expertCounts struct {
	Counting bool // a forward pass of a training step is running, and it is not recomputed
	At       LayerID
	layers   map[LayerID]*layerLoad
	Aux      float64
}

// layerLoad is what a rank counts for one layer.
type layerLoad struct {
	Choices        []int64 // per expert
	Dropped        int64
	Passes, Rounds int
}

// Clear resets the counts before a step.
func (c *expertCounts) Clear() {
	c.Aux = 0
	for _, x := range c.layers {
		clear(x.Choices)
		x.Dropped, x.Passes, x.Rounds = 0, 0, 0
	}
}

// Add counts a micro-batch's choices. A dropped choice is encoded as -1 - expert.
func (c *expertCounts) Add(index []int32, experts, rounds int) {
	if !c.Counting {
		return
	}
	x := c.Layer(c.At, experts)
	x.Passes++
	x.Rounds += rounds
	for _, e := range index {
		if e < 0 {
			x.Dropped++
			e = -1 - e
		}
		x.Choices[e]++
	}
}

// Layer returns the counts of a layer.
func (c *expertCounts) Layer(at LayerID, experts int) *layerLoad {
	x := c.layers[at]
	if x == nil {
		x = (&layerLoad{Choices: make([]int64, experts)})
		if c.layers == nil {
			c.layers = map[LayerID]*layerLoad{}
		}
		c.layers[at] = x
	}
	return x
}

// AuxLoss returns the mean auxiliary loss over the sequences of the global batch.
func AuxLoss(ranks []*Rank) float64 {
	sum := 0.0
	for _, k := range ranks {
		sum += k.Experts.Aux
	}
	return sum / float64(max(ranks[0].Program.Experts.Copies, 1)) / float64(ranks[0].Program.Batch.GlobalBatch)
}

// ExpertLoads combines the counts of the ranks, layer by layer.
func ExpertLoads(ranks []*Rank) []report.ExpertLoad {
	if ranks[0].Program.Experts.Copies == 0 {
		return nil
	}
	var ids []LayerID
	for _, k := range ranks {
		for id := range k.Experts.layers {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	slices.SortFunc(ids, func(a, b LayerID) int { return cmp.Or(a.Segment-b.Segment, a.Layer-b.Layer) })
	out := make([]report.ExpertLoad, len(ids))
	for i, id := range ids {
		out[i] = expertLoad(ranks, id)
	}
	return out
}

func expertLoad(ranks []*Rank, id LayerID) report.ExpertLoad {
	e := report.ExpertLoad{Segment: ranks[0].Program.Segments[id.Segment].Name, Layer: id.Layer, Rounds: make([]int,
		len(ranks))}
	var choices []int64
	for i, k := range ranks {
		x := k.Experts.layers[id]
		if x == nil {
			continue
		}
		if choices == nil {
			choices = make([]int64, len(x.Choices))
		}
		for j, n := range x.Choices {
			choices[j] += n
		}
		e.Dropped += x.Dropped
		e.Rounds[i], e.Further = x.Rounds, max(e.Further, x.Rounds-x.Passes)
	}
	e.Dropped /= int64(ranks[0].Program.Experts.Copies)
	e.Load, e.CV = loadSpread(choices)
	return e
}

// loadSpread returns the maximum of some numbers divided by their mean, and their coefficient of variation.
func loadSpread(n []int64) (largest, cv float64) {
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
