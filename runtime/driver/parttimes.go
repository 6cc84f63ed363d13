package driver

import (
	"slices"

	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/timeline"
)

// partTimes measures where the time of steps goes, on ranks that run on this CPU. A device's work is not measured,
// because the host only enqueues it.
type partTimes struct {
	times  report.Times
	excess []float64 // of each rank: busy time over the median of the others of its stage, minus 1; 0 without others
	stages [][]int   // ranks of each stage
	sorted []float64
}

// newPartTimes returns nil for ranks on devices.
func newPartTimes(ranks []*rank.Rank) *partTimes {
	if ranks[0].Device != nil {
		return nil
	}
	n := len(ranks)
	t := &partTimes{excess: make([]float64, n), sorted: make([]float64, 0, n)}
	t.times.Busy, t.times.Wait = make([]float64, n), make([]float64, n)
	t.stages = make([][]int, len(ranks[0].Program.Stages))
	for _, k := range ranks {
		at := k.Coord[program.StageAxis]
		t.stages[at] = append(t.stages[at], k.ID)
	}
	return t
}

// measure reads the times of the last step, which took seconds, including lead seconds until the batch was there.
func (t *partTimes) measure(ranks []*rank.Rank, seconds, lead float64) *report.Times {
	if t == nil {
		return nil
	}
	t.times.Parts = [timeline.Parts]float64{timeline.Data: lead}
	for _, k := range ranks {
		for p := range timeline.Parts {
			t.times.Parts[p] += k.Compute().Seconds(p) / float64(len(ranks))
		}
		t.times.Busy[k.ID] = 0
		for _, p := range timeline.Work {
			t.times.Busy[k.ID] += k.Compute().Seconds(p)
		}
		t.times.Wait[k.ID] = k.Compute().Wait() + k.Communication().Wait()
	}
	sum := 0.0
	for _, x := range t.times.Parts {
		sum += x
	}
	t.times.Parts[timeline.Other] += max(0, seconds-sum) // until the last rank ended, and the host's own work
	t.compare()
	return &t.times
}

// compare compares each rank with the others of its stage, which have the same work.
func (t *partTimes) compare() {
	t.times.Skew = 0
	busy := t.times.Busy
	for _, stage := range t.stages {
		if len(stage) < 2 {
			continue
		}
		middle := t.median(stage, -1)
		for _, id := range stage {
			t.times.Skew = max(t.times.Skew, busy[id]/middle-1)
			t.excess[id] = busy[id]/t.median(stage, id) - 1
		}
	}
}

// median returns the median busy time of a stage's ranks without one; -1: of all.
func (t *partTimes) median(stage []int, without int) float64 {
	t.sorted = t.sorted[:0]
	for _, id := range stage {
		if id != without {
			t.sorted = append(t.sorted, t.times.Busy[id])
		}
	}
	slices.Sort(t.sorted)
	n := len(t.sorted)
	return (t.sorted[n/2] + t.sorted[(n-1)/2]) / 2
}
