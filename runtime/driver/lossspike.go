package driver

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
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
		r.rollsBack = r.s.Train.OnSpike == "rollback" && r.lastScheduled(s.Step-1) > 0
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

// maxRollbacks is how often a run returns to the same checkpoint. PaLM's spikes (Chowdhery et al. 2022) did not come
// back after one skip of the data around them, so a spike that does has another cause.
const maxRollbacks = 3

// lastScheduled returns the step of the last checkpoint that train.checkpoint.every requires up to a step, 0 for none.
// Checkpoints for other reasons depend on when a run was interrupted.
func (r *job) lastScheduled(step int) int {
	every := r.s.Train.Checkpoint.Every
	if every == 0 {
		return 0
	}
	return step / every * every
}

// spikeGuard returns to earlier checkpoints after loss spikes.
type spikeGuard struct {
	*run
	to    int // step of the checkpoint to which it has returned last
	count int // how often it has returned there in a row
}

// rollBack returns to the last scheduled checkpoint after a loss spike. Training goes on with the samples after those
// of the spike: the ones in between are not used. Later checkpoints count them as read. A run that was interrupted does
// the same, because it has the same losses and the same scheduled checkpoint.
func (r *spikeGuard) rollBack() error {
	r.recorder.rollsBack = false
	spike, samples := r.done.step, r.done.samples
	if err := r.stepper.dropUnfinished(); err != nil {
		return err
	}
	if err := r.crew.finishUpdates(); err != nil {
		return err
	}
	if to := r.lastScheduled(spike - 1); r.to != to {
		r.to, r.count = to, 0
	}
	r.count++
	if r.count > maxRollbacks {
		r.metrics.Event(spike, "stop", "spikes after rollbacks")
		return exit.Errorf(exit.Nonfinite, "step %d: the loss spikes after %d rollbacks to the checkpoint of step %d, "+
			"each to other samples. %s; or continue with --set train.on_spike=warn", spike, maxRollbacks, r.to,
			smallerUpdatesAdvice(&r.s))
	}
	if err := r.checkpoints.reload(r.to, spike); err != nil {
		return err
	}
	text := fmt.Sprintf("step %d: rolled back to the checkpoint of step %d because of the spike; samples %d to %d are "+
		"left out", spike, r.done.step, r.done.samples, samples-1)
	r.done.samples, r.evaluator.lastEvalStep = samples, -1
	r.countSteps()
	r.report.Warn(text, "step", spike, "to", r.done.step, "samples", samples)
	r.metrics.Event(r.done.step, "rollback", text)
	r.member.rows.Stop()
	r.readSamples()
	return nil
}

// reload restores the state of the run's checkpoint of a step. If it could not be written, an older or newer one from
// before the spike takes its place. Later checkpoints are set aside, as when a run resumes: they are not of the past of
// those that follow.
func (r *checkpoints) reload(step, spike int) error {
	if err := r.awaitPrevious(); err != nil {
		return err
	}
	var c *ckpt.Checkpoint
	var err error
	if r.team.IsFirst() {
		c, err = ckpt.Find(r.ckptDir, int64(step))
		if err != nil {
			newest, _, e := ckpt.Newest(r.ckptDir)
			if e == nil && newest != nil && newest.Manifest.Step < int64(spike) {
				c, err = newest, nil
			}
		}
	}
	if err == nil {
		c, _, err = shareOrigin(r.team, c, false)
	}
	if err != nil {
		return fmt.Errorf("cannot roll back: %w; continue with --set train.on_spike=warn", err)
	}
	if err := r.load(c); err != nil {
		return err
	}
	r.losses = lossWatch{}
	r.losses.resume(c.Manifest.Extra)
	r.lastValidStep, _ = strconv.Atoi(c.Manifest.Extra[evaluatedExtra])
	if err := r.setAside(c.Manifest.Step); err != nil {
		return err
	}
	r.lastSavedStep, r.goodStep, r.res.Checkpoint = r.done.step, r.done.step, c.Path
	return r.crew.push()
}
