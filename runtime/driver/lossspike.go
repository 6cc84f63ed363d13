package driver

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/runtime/num"
	"github.com/planc-dev/planc/runtime/report"
)

// Parameters of the detection of loss spikes. Gaussian noise never reaches 15 deviations, and exponential noise does
// about once in 10,000 steps. Spikes of published training runs (from 2.2 to 2.8 and more, with a noise of 0.03) exceed
// it. The minima avoid warnings where the loss hardly varies.
const (
	lossWindow    = 64 // losses from which median and deviation are computed
	lossLeast     = 16 // minimum number of losses for that
	lossHigh      = 15 // deviations above the lowest median
	lossDiverges  = 16 // high losses in a row
	lossEarlyPart = 0.03
	lossEarly     = 0.1 // nats: the first losses say nothing of the noise
	lossFloorPart = 0.01
	lossFloor     = 0.005 // nats
	madToSigma    = 1.4826
)

// lossWatch detects losses far above what the run has reached. A loss is high if it exceeds m + 15 s. m is the lowest
// median of 64 consecutive losses so far. s is the standard deviation, estimated as 1.4826 times the median distance of
// the last 64 losses from their median, but at least 1 % of m and 0.005. Before there are 16 losses, m and s come from
// the checkpoint; without one, m is the first loss and s is 3 % of m, at least 0.1. High losses do not enter the 64, so
// that a diverging run does not become the reference.
type lossWatch struct {
	recent [lossWindow]float64 // the last losses that were not high
	count  int                 // number of losses that were not high
	low    float64             // m; 0 before the first loss
	median bool                // low is a median, not the first loss
	noise  bool                // spread comes from the previous run
	spread float64             // s
	high   int                 // number of consecutive high losses
	// step of the last checkpoint before the loss became high, 0 for none
	stepBefore int
	sorted     [lossWindow]float64
}

// limit returns the loss above which a loss is high.
func (w *lossWatch) limit() float64 { return w.low + lossHigh*w.spread }

// add records a loss and reports whether it is high.
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

// watchLoss warns of a high loss, and warns again if the next losses are high too.
func (r *recorder) watchLoss(s *report.Step) {
	if r.o.LRRange[1] > 0 || !num.Finite(s.Loss) || !r.losses.add(s.Loss) {
		return
	}
	w := &r.losses
	detail := fmt.Sprintf("loss %.4g, best %.4g, limit %.4g", s.Loss, w.low, w.limit())
	switch w.high {
	case 1:
		r.losses.stepBefore = r.goodStep
		r.metrics.Event(s.Step, "spike", detail)
		r.warnSpike(s, detail)
		r.rollsBack = r.s.Train.GoesBack() && r.lastScheduled(s.Step-1) > 0
	case lossDiverges:
		r.metrics.Event(s.Step, "divergence", detail)
		r.report.Warn(fmt.Sprintf("step %d: training diverges: %d losses in a row are above the limit (%s). %s; %s",
			s.Step, lossDiverges, detail,
			smallerUpdatesAdvice(&r.s), r.divergenceAdvice()), "step", s.Step, "loss", s.Loss, "limit", w.limit())
	}
}

// warnSpike warns of the first spike of a run, the second, the fourth and so on, because on some data spikes never end.
func (r *recorder) warnSpike(s *report.Step, detail string) {
	r.spikes++
	if r.spikes&(r.spikes-1) != 0 {
		return
	}
	text := fmt.Sprintf("step %d: the loss spikes (%s)", s.Step, detail)
	if r.spikes > 1 {
		text += fmt.Sprintf("; spikes of this run so far: %d", r.spikes)
	}
	r.report.Warn(text, "step", s.Step, "loss", s.Loss, "limit", r.losses.limit(), "spikes", r.spikes)
}

// divergenceAdvice says from which checkpoint to restart when the loss diverges.
func (r *recorder) divergenceAdvice() string {
	if r.losses.stepBefore == 0 {
		return "there is no checkpoint from before that: start over (--resume never)"
	}
	return fmt.Sprintf("the last checkpoint from before that is of step %d (--resume %[1]d)", r.losses.stepBefore)
}

// Keys of a checkpoint: m, s, and the losses from which they are computed, the oldest first.
const (
	lossExtra   = "loss_median"
	noiseExtra  = "loss_deviation"
	windowExtra = "loss_window"
)

// save writes the state for the run that continues from a checkpoint, so that the same losses are high there.
func (w *lossWatch) save(extra map[string]string) {
	if w.median {
		extra[lossExtra], extra[noiseExtra] = lossText(w.low), lossText(w.spread)
	}
	var words []string
	for i := max(0, w.count-lossWindow); i < w.count; i++ {
		words = append(words, lossText(w.recent[i%lossWindow]))
	}
	if len(words) > 0 {
		extra[windowExtra] = strings.Join(words, " ")
	}
}

// resume reads what save has written. Older checkpoints do not have the losses.
func (w *lossWatch) resume(extra map[string]string) {
	low, hasLow := positive(extra[lossExtra])
	spread, hasSpread := positive(extra[noiseExtra])
	for word := range strings.FieldsSeq(extra[windowExtra]) {
		loss, ok := positive(word)
		switch {
		case !ok || w.count == lossWindow:
		case hasLow:
			w.recent[w.count] = loss
			w.count++
		default: // there were too few losses for a median
			w.add(loss)
		}
	}
	if hasLow {
		w.low, w.median = low, true
	}
	if hasLow && hasSpread {
		w.spread, w.noise = spread, true
	}
}

// positive parses a finite number above 0.
func positive(text string) (float64, bool) {
	x, err := strconv.ParseFloat(text, 64)
	return x, err == nil && x > 0 && num.Finite(x)
}
