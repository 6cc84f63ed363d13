package runtime

import (
	"fmt"
	"math"
	"slices"
)

// How a loss is judged. Gaussian noise never reaches 15 deviations, and exponential noise about once in 10,000 steps; spikes of
// published trainings (from 2.2 to 2.8 and more, with noise of 0.03) do. The floors keep quiet where a loss hardly varies.
const (
	lossWindow    = 64 // losses whose median and deviation count
	lossLeast     = 16 // of them, before they count
	lossHigh      = 15 // deviations above the lowest median
	lossDiverges  = 16 // high losses in a row
	lossEarlyPart = 0.03
	lossFloorPart = 0.01
	lossFloor     = 0.005 // nats
	madToSigma    = 1.4826
)

// lossWatch finds losses that are far above what the run has reached. A loss is high if it exceeds m + 15 s: m is the lowest median so
// far of 64 losses in a row, and s is 1.4826 times the median of the last 64 losses' distances from their median (the standard
// deviation, if noise is Gaussian), but at least 1 % of m and 0.005. Before there are 16 losses, m is the first one, unless a
// checkpoint has it, and s is 3 % of m. High losses do not enter the 64, so a run that diverges cannot pass for a usual one.
type lossWatch struct {
	recent [lossWindow]float64 // the last losses that were not high
	count  int                 // how many were
	low    float64             // m; 0 before the first loss
	median bool                // low is a median, not the first loss
	spread float64             // s
	high   int                 // losses in a row that were high
	sorted [lossWindow]float64
}

// limit is above what a loss is high.
func (w *lossWatch) limit() float64 { return w.low + lossHigh*w.spread }

// add takes note of a loss and reports whether it is high.
func (w *lossWatch) add(loss float64) bool {
	if w.low == 0 {
		w.low = loss
	}
	if w.count < lossLeast {
		w.spread = max(lossEarlyPart*w.low, lossFloor)
	}
	if loss > w.limit() {
		w.high++
		return true
	}
	w.high = 0
	w.recent[w.count%lossWindow] = loss
	if w.count++; w.count < lossLeast {
		return false
	}
	all := w.sorted[:copy(w.sorted[:], w.recent[:min(w.count, lossWindow)])]
	slices.Sort(all)
	middle := all[len(all)/2]
	if !w.median || middle < w.low {
		w.low, w.median = middle, true
	}
	for i, x := range all {
		all[i] = math.Abs(x - middle)
	}
	slices.Sort(all)
	w.spread = max(madToSigma*all[len(all)/2], lossFloorPart*w.low, lossFloor)
	return false
}

// watchLoss warns of a loss that is far above what the run has reached, and again when the next ones are too.
func (r *run) watchLoss(s *Step) {
	if !finite(s.Loss) || !r.losses.add(s.Loss) {
		return
	}
	w := &r.losses
	detail := fmt.Sprintf("loss %.4g, best %.4g, limit %.4g", s.Loss, w.low, w.limit())
	switch w.high {
	case 1:
		r.beforeHigh = r.good
		r.metrics.event(s.Step, "spike", detail)
		r.report.warn(fmt.Sprintf("step %d: the loss spikes (%s)", s.Step, detail), "step", s.Step, "loss", s.Loss, "limit", w.limit())
	case lossDiverges:
		r.metrics.event(s.Step, "divergence", detail)
		r.report.warn(fmt.Sprintf("step %d: training diverges: %d losses in a row are above the limit (%s). %s; %s", s.Step, lossDiverges, detail,
			r.calmer(), r.beforeDivergence()), "step", s.Step, "loss", s.Loss, "limit", w.limit())
	}
}

// beforeDivergence says from where to train on when the loss diverges.
func (r *run) beforeDivergence() string {
	if r.beforeHigh == 0 {
		return "no checkpoint is from before that: start anew (--resume never)"
	}
	return fmt.Sprintf("the last checkpoint from before that is of step %d (--resume %[1]d)", r.beforeHigh)
}

// lossExtra is where a checkpoint has the lowest median of losses.
const lossExtra = "loss_median"
