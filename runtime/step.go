package runtime

import (
	"fmt"
	"math"
	"time"
)

// recordStep records a step that has ended. The Step is good until the next.
func (r *run) recordStep(t *task) (*Step, error) {
	first, s := r.crew.ranks[0], &r.last
	scale, tokens := r.scaler.scale, first.Tokens
	seconds := time.Since(t.begun).Seconds()
	if k := r.crew.mine[0]; k.Device != nil {
		seconds, tokens = t.lead+k.stepResult.Seconds, float64(t.batch.counted())
	}
	*s = Step{Step: t.id, Loss: r.lossSum() / tokens, LR: t.hyper.LR, GradNorm: first.Norm, Skipped: first.Skip,
		Seconds: seconds}
	if r.scaler.on() {
		s.LossScale = scale
	}
	s.AuxLoss, s.Experts = r.auxLoss(), r.expertLoads()
	r.adapts = r.scaler.adapts()
	r.scaler.update(s.Skipped)
	r.done.step = t.id
	r.done.samples += int64(r.p.Batch.GlobalBatch)
	r.done.tokens += int64(tokens)
	if !s.Skipped {
		r.done.updates++
	}
	s.Tokens = r.done.tokens
	return s, r.record(s, tokens)
}

// stepOn runs the task on a rank.
func (r *run) stepOn(k *Rank) {
	t := &r.task
	k.load(t.batch, r.p.Batch.MicroBatches)
	k.Training, k.StepID, k.Seed, k.Hyper = true, t.id, r.s.Train.Seed, t.hyper
	k.Norm, k.Clip, k.Skip, k.Scale, k.AfterSkip = math.NaN(), 1, false, t.scale, t.afterSkip
	k.counted = 0
	if k.Device != nil { // ranks do not meet on the host
		k.counted = t.batch.counted()
	}
	k.clearLoss()
	k.experts.clear()
	k.step()
}

// hyper are the rates of a step.
func (r *run) hyper(step int) Hyper {
	t := &r.s.Train
	o := &t.Optimizer
	return Hyper{
		LR: rate(&t.Schedule, o.LR, step, r.total), Beta1: o.Betas[0], Beta2: o.Betas[1], Eps: o.Eps,
		WeightDecay: o.WeightDecay, Momentum: o.Momentum, ClipNorm: o.ClipNorm, T: r.done.updates + 1,
		BiasRate: t.Experts.BiasRate,
	}
}

// load copies the rank's rows of a batch into its arena.
func (r *Rank) load(b *batch, micro int) {
	if r.Program.Elem == F64 {
		place[float64](r, b, micro)
	} else {
		place[float32](r, b, micro)
	}
	if r.Device != nil {
		r.Device.Load()
	}
}

func (r *Rank) clearLoss() { r.LossSum, r.reduced = 0, false }

// lossSum is the sum of all replicas' token losses. Where the program has not reduced it, the ranks of one
// replica that have the same positions hold those positions' sum, or 0.
func (r *run) lossSum() float64 {
	if r.crew.ranks[0].reduced {
		return r.crew.ranks[0].LossSum
	}
	parts := r.p.size(r.p.Batch.SeqAxes)
	sums := make([]float64, r.p.Batch.Replicas*parts)
	for _, k := range r.crew.ranks {
		part, _ := k.along(r.p.Batch.SeqAxes)
		if i := k.replica()*parts + part; math.IsNaN(k.LossSum) || math.Abs(k.LossSum) > math.Abs(sums[i]) {
			sums[i] = k.LossSum
		}
	}
	total := 0.0
	for _, s := range sums {
		total += s
	}
	return total
}

// record writes a step where it belongs, and applies the numerics guard.
func (r *run) record(s *Step, tokens float64) error {
	if s.Step == r.res.FirstStep {
		r.res.FirstLoss = s.Loss
	}
	r.res.Steps, r.res.Loss, r.res.GradNorm, r.res.Tokens = s.Step, s.Loss, s.GradNorm, s.Tokens
	r.res.Seconds += s.Seconds
	if s.Step > r.res.FirstStep || r.total == r.res.FirstStep {
		r.times = append(r.times, s.Seconds)
		if len(r.times) > 2*maxTimes {
			r.times = append(r.times[:0], r.times[maxTimes:]...)
		}
	}
	speed := tokens / s.Seconds
	r.metrics.step(s, r.p.Experts.Aux, speed, r.mfu(s.Seconds), r.memory(), r.done.step-r.done.updates, r.p.Devices)
	r.watchLoss(s)
	if !s.Skipped {
		r.faults, r.lastAppliedStep = 0, s.Step
	} else {
		r.res.Skipped++
		if err := r.guard(s); err != nil {
			return err
		}
	}
	r.report.step(s, r.total, speed, r.timeLeft(s.Seconds))
	r.tokens = tokens
	return nil
}

// mfu is the part of the devices' dense peak that the model's flops use at that many seconds a step; NaN
// where the peak is unknown.
func (r *run) mfu(step float64) float64 {
	peak := r.p.Predict.PeakFlops * float64(r.res.Ranks)
	if peak == 0 {
		return math.NaN()
	}
	return r.p.Model.FlopsStep / (step * peak)
}

// memory is what one rank takes: the peak resident memory of the process shared among its ranks, or the
// arena where the system does not say.
func (r *run) memory() int64 {
	if d := r.crew.mine[0].Device; d != nil {
		return d.Memory()
	}
	if now := time.Now(); now.After(r.peakUntil) {
		r.peak, r.peakUntil = peakResident(), now.Add(time.Second)
	}
	if r.peak > 0 {
		return r.peak / int64(r.res.Ranks)
	}
	return r.res.ArenaBytes
}

// maxFaults is how many steps in a row may be skipped for being not finite. All of them have the same parameters, so
// only the data differ: batches that are bad by chance do not come ten in a row, and parameters that overflow never
// recover. A dynamic loss scale's steps above its least do not count, as it needs up to 17 of them to find its place.
// DeepSpeed and fairseq end a run at the first bad step of the least scale; optax's apply_if_finite counts steps in a
// row, as this does.
const maxFaults = 10

// guard handles a step whose loss or gradient was not finite.
func (r *run) guard(s *Step) error {
	what := fmt.Sprintf("loss %.5g, gradient norm %.5g", s.Loss, s.GradNorm)
	if r.adapts { // the scale was too large: no fault of the run
		r.metrics.event(s.Step, "skip", fmt.Sprintf("%s; loss scale %g", what, r.scaler.scale))
		return nil
	}
	r.faults++
	stop := r.s.Train.OnNonfinite == "stop"
	if !stop && r.faults < maxFaults {
		r.report.warn(fmt.Sprintf("step %d is not finite (%s): its update was skipped", s.Step, what))
		r.metrics.event(s.Step, "skip", what)
		return nil
	}
	r.metrics.event(s.Step, "stop", what)
	if stop {
		return exitf(ExitNonfinite, "step %d is not finite (%s), and train.on_nonfinite is stop", s.Step, what)
	}
	return exitf(ExitNonfinite, "steps %d to %d are not finite (the last: %s): %d in a row, and a skipped step "+
		"changes no parameter, so the next would be "+
		"no better. %s; %s", s.Step-maxFaults+1, s.Step, what, maxFaults, r.remedy(), r.resumeAdvice())
}

// resumeAdvice is from where to train on if no step is finite any more. Checkpoints since the last step that was
// applied have the parameters that may be what is wrong; those of the one before it made a step that was finite. Where
// this run applied none, that one was no earlier than if all that were skipped had been the last.
func (r *run) resumeAdvice() string {
	last := r.lastAppliedStep
	if last == 0 {
		last = r.done.updates
	}
	if last < 2 {
		return "start over (--resume never)"
	}
	return fmt.Sprintf("go on from a checkpoint of step %d or before (--resume STEP), or start over (--resume never)",
		last-1)
}

// remedy is what to try where steps stay not finite.
func (r *run) remedy() string {
	if r.s.Train.Precision.LossScale.Kind == "static" {
		return fmt.Sprintf("Lower train.precision.loss_scale (%g), or train.optimizer.lr (%g)", r.scaler.scale,
			r.s.Train.Optimizer.LR)
	}
	return r.smallerUpdatesAdvice()
}

// smallerUpdatesAdvice is what to try where updates are too large.
func (r *run) smallerUpdatesAdvice() string {
	advice := fmt.Sprintf("Lower train.optimizer.lr (%g), or raise train.schedule.warmup (%d)", r.s.Train.Optimizer.LR,
		r.s.Train.Schedule.Warmup)
	if r.s.Train.Optimizer.ClipNorm == 0 {
		advice += ", or clip gradients (train.optimizer.clip_norm=1)"
	}
	return advice
}
