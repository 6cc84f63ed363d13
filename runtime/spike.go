package runtime

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// How a loss is judged. Gaussian noise never reaches 15 deviations, and exponential noise about once in 10,000 steps;
// spikes of published trainings (from 2.2 to 2.8 and more, with noise of 0.03) do. The floors keep quiet where a loss
// hardly varies.
const (
	lossWindow    = 64 // losses whose median and deviation count
	lossLeast     = 16 // of them, before they count
	lossHigh      = 15 // deviations above the lowest median
	lossDiverges  = 16 // high losses in a row
	lossEarlyPart = 0.03
	lossEarly     = 0.1 // nats: one batch tells nothing of the others' noise
	lossFloorPart = 0.01
	lossFloor     = 0.005 // nats
	madToSigma    = 1.4826
)

// lossWatch finds losses that are far above what the run has reached. A loss is high if it exceeds m + 15 s: m is the
// lowest median so far of 64 losses in a row, and s is 1.4826 times the median of the last 64 losses' distances from
// their median (the standard deviation, if noise is Gaussian), but at least 1 % of m and 0.005. Before there are 16
// losses, m and s are those of the checkpoint, or else m is the first loss and s is 3 % of m, at least 0.1. High losses
// do not enter the 64, so a run that diverges cannot pass for a usual one.
type lossWatch struct {
	recent [lossWindow]float64 // the last losses that were not high
	count  int                 // how many were
	low    float64             // m; 0 before the first loss
	median bool                // low is a median, not the first loss
	noise  bool                // loadSpread is of the run before
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
	if w.count < lossLeast && !w.noise {
		w.spread = max(lossEarlyPart*w.low, lossEarly)
	}
	if loss > w.limit() {
		w.high++
		return true
	}
	w.high = 0
	w.recent[w.count%lossWindow] = loss
	w.count++
	if w.count < lossLeast {
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
		r.stepBeforeHigh = r.goodStep
		r.metrics.event(s.Step, "spike", detail)
		r.warnSpike(s, detail)
	case lossDiverges:
		r.metrics.event(s.Step, "divergence", detail)
		r.report.warn(fmt.Sprintf("step %d: training diverges: %d losses in a row are above the limit (%s). %s; %s",
			s.Step, lossDiverges, detail,
			r.smallerUpdatesAdvice(), r.divergenceAdvice()), "step", s.Step, "loss", s.Loss, "limit", w.limit())
	}
}

// warnSpike tells people of the first spike of a run, the second, the fourth and so on: some data have spikes without
// end.
func (r *run) warnSpike(s *Step, detail string) {
	r.spikes++
	if r.spikes&(r.spikes-1) != 0 {
		return
	}
	text := fmt.Sprintf("step %d: the loss spikes (%s)", s.Step, detail)
	if r.spikes > 1 {
		text += fmt.Sprintf("; spikes of this run so far: %d", r.spikes)
	}
	r.report.warn(text, "step", s.Step, "loss", s.Loss, "limit", r.losses.limit(), "spikes", r.spikes)
}

// divergenceAdvice says from where to train on when the loss diverges.
func (r *run) divergenceAdvice() string {
	if r.stepBeforeHigh == 0 {
		return "no checkpoint is from before that: start over (--resume never)"
	}
	return fmt.Sprintf("the last checkpoint from before that is of step %d (--resume %[1]d)", r.stepBeforeHigh)
}

// lossExtra and noiseExtra are where a checkpoint has m and s.
const (
	lossExtra  = "loss_median"
	noiseExtra = "loss_deviation"
)

// save writes what the run that continues a checkpoint is to know.
func (w *lossWatch) save(extra map[string]string) {
	if w.median {
		extra[lossExtra] = strconv.FormatFloat(w.low, 'g', -1, 64)
		extra[noiseExtra] = strconv.FormatFloat(w.spread, 'g', -1, 64)
	}
}

// resume reads what keep has written.
func (w *lossWatch) resume(extra map[string]string) {
	positive := func(name string) (float64, bool) {
		x, err := strconv.ParseFloat(extra[name], 64)
		return x, err == nil && x > 0 && finite(x)
	}
	low, known := positive(lossExtra)
	if !known {
		return
	}
	w.low, w.median = low, true
	if spread, known := positive(noiseExtra); known {
		w.spread, w.noise = spread, true
	}
}
