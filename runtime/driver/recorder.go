package driver

import (
	"fmt"
	"math"
	"time"

	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
)

// recorder records finished steps: their metrics, the numerics guard, loss spikes and step times.
type recorder struct {
	*job
	// pull is the saver's: it waits while a checkpoint is written from the host's arenas
	pull func(more ...func(*program.Arena) program.Region) error

	adapts          bool      // the last step's loss scale was above its minimum
	faults          int       // consecutive steps that were not finite although the loss scale was not too large
	lastAppliedStep int       // last step of this run whose update was applied, 0 for none
	spikes          int       // loss spikes of this run
	rollsBack       bool      // the last step was a spike, before which the run must return
	times           []float64 // seconds of each step after the first; only the last ones are stored
	tokens          float64   // unmasked tokens of the last step

	parts      *partTimes      // nil: not measured
	line       report.StepLine // of the last step; a field, so that a step allocates nothing
	stragglers stragglers

	peak      int64 // cached peakResident, valid until peakUntil
	peakUntil time.Time
}

// recordStep records a finished step. The returned Step is valid until the next one.
func (r *recorder) recordStep(t *task) (*report.Step, error) {
	first, s := r.crew.ranks[0], &r.last
	scale, tokens := r.scaler.scale, first.Tokens
	seconds := time.Since(t.begun).Seconds()
	if k := r.crew.mine[0]; k.Device != nil {
		seconds, tokens = t.lead+k.StepResult().Seconds, float64(t.batch.Counted())
	}
	*s = report.Step{Step: t.id, Loss: rank.LossSum(r.crew.ranks) / tokens, LR: t.hyper.LR, GradNorm: first.Norm,
		Skipped: first.Skip, Seconds: seconds}
	if r.scaler.on() {
		s.LossScale = scale
	}
	s.AuxLoss, s.Experts = rank.AuxLoss(r.crew.ranks), rank.ExpertLoads(r.crew.ranks)
	r.adapts = r.scaler.adapts()
	r.scaler.update(s.Skipped)
	r.done.step = t.id
	r.done.samples += t.leftOut + int64(r.p.Batch.GlobalBatch)
	r.done.tokens += int64(tokens)
	if !s.Skipped {
		r.done.updates++
	}
	s.Tokens = r.done.tokens
	return s, r.record(s, tokens, r.parts.measure(r.crew.ranks, seconds, t.lead))
}

// stepOn runs the task on a rank.
func (r *stepper) stepOn(k *rank.Rank) {
	t := &r.task
	k.BeginStep(&rank.StepInput{ID: t.id, Seed: r.s.Train.Seed, Hyper: t.hyper, Scale: t.scale, AfterSkip: t.afterSkip},
		t.batch)
}

// hyper returns the hyperparameters of a step.
func (r *stepper) hyper(step int) rank.Hyper {
	t := &r.s.Train
	o := &t.Optimizer
	lr := rate(&t.Schedule, o.LR, step, r.total)
	if between := r.o.LRRange; between[1] > 0 {
		lr = between[0] * math.Pow(between[1]/between[0], float64(step)/float64(r.total))
	}
	return rank.Hyper{
		LR: lr, Beta1: o.Betas[0], Beta2: o.Betas[1], Eps: o.Eps,
		WeightDecay: o.WeightDecay, Momentum: o.Momentum, ClipNorm: o.ClipNorm, T: r.done.updates + 1,
		BiasRate: t.Experts.BiasRate,
	}
}

// record reports a step, writes its metrics, and applies the numerics guard.
func (r *recorder) record(s *report.Step, tokens float64, times *report.Times) error {
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
	var params []report.ParamNorm
	if isDue(r.o.ParamNorms, s.Step) {
		var err error
		params, err = r.paramNorms()
		if err != nil {
			return err
		}
	}
	r.line = report.StepLine{Step: s, HasAux: r.p.Experts.Aux, TokensPerSecond: speed, MFU: r.mfu(s.Seconds),
		Memory: r.memory(), Times: times, Params: params, Skipped: r.done.step - r.done.updates,
		Telemetry: telemetryOf(r.p.Devices)}
	r.metrics.Step(&r.line)
	r.watchLoss(s)
	if s.Step > r.res.FirstStep {
		r.watchStragglers(s.Step, s.Seconds)
	}
	if !s.Skipped {
		r.faults, r.lastAppliedStep = 0, s.Step
	} else {
		r.res.Skipped++
		if err := r.guard(s); err != nil {
			return err
		}
	}
	r.report.Step(s, r.total, speed, r.timeLeft(s.Seconds))
	r.tokens = tokens
	return nil
}

// mfu returns the model flops utilization at a step time in seconds: the fraction of the devices' dense peak that the
// model's flops use. It is NaN if the peak is unknown.
func (r *recorder) mfu(step float64) float64 {
	peak := r.p.Predict.PeakFlops * float64(r.res.Ranks)
	if peak == 0 {
		return math.NaN()
	}
	return r.p.Model.FlopsStep / (step * peak)
}

// memory returns the memory of one rank: the peak resident memory of the process divided by its ranks, or the arena if
// the system does not report the peak.
func (r *recorder) memory() int64 {
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

// maxFaults is the maximum number of consecutive steps that are skipped because they are not finite. All of them have
// the same parameters, and only the data differ. Ten bad batches in a row are not a coincidence, and parameters that
// overflow never recover. Steps at which a dynamic loss scale is above its minimum do not count, because finding the
// scale takes up to 17 of them. DeepSpeed and fairseq end a run at the first bad step at the minimum scale; optax's
// apply_if_finite counts consecutive steps, as here.
const maxFaults = 10

// guard handles a step whose loss or gradient is not finite.
func (r *recorder) guard(s *report.Step) error {
	what := fmt.Sprintf("loss %.5g, gradient norm %.5g", s.Loss, s.GradNorm)
	if r.adapts { // the loss scale was too large, which is not an error
		r.metrics.Event(s.Step, "skip", fmt.Sprintf("%s; loss scale %g", what, r.scaler.scale))
		return nil
	}
	r.faults++
	stop := r.s.Train.OnNonfinite == "stop"
	if !stop && r.faults < maxFaults {
		r.report.Warn(fmt.Sprintf("step %d is not finite (%s): its update was skipped", s.Step, what))
		r.metrics.Event(s.Step, "skip", what)
		return nil
	}
	r.metrics.Event(s.Step, "stop", what)
	if stop {
		return exit.Errorf(exit.Nonfinite, "step %d is not finite (%s), and train.on_nonfinite is stop", s.Step, what)
	}
	return exit.Errorf(exit.Nonfinite, "steps %d to %d are not finite (the last: %s): %d in a row, and a skipped step "+
		"changes no parameter, so further steps would be "+
		"the same. %s; %s", s.Step-maxFaults+1, s.Step, what, maxFaults, r.remedy(), r.resumeAdvice())
}

// resumeAdvice says from where to restart if no step is finite any more. Checkpoints since the last applied step have
// parameters that may be the problem. The parameters of the step before it gave a finite step. If this run applied no
// step, the number of updates is a lower bound for the last applied step.
func (r *recorder) resumeAdvice() string {
	last := r.lastAppliedStep
	if last == 0 {
		last = r.done.updates
	}
	if last < 2 {
		return "start over (--resume never)"
	}
	return fmt.Sprintf("resume from a checkpoint of step %d or before (--resume STEP), or start over (--resume never)",
		last-1)
}

// remedy says what to change if steps stay not finite.
func (r *recorder) remedy() string {
	if r.s.Train.Precision.LossScale.Kind == "static" {
		return fmt.Sprintf("Lower train.precision.loss_scale (%g), or train.optimizer.lr (%g)", r.scaler.scale,
			r.s.Train.Optimizer.LR)
	}
	return smallerUpdatesAdvice(&r.s)
}

// smallerUpdatesAdvice says how to make updates smaller.
func smallerUpdatesAdvice(s *program.Settings) string {
	advice := fmt.Sprintf("Lower train.optimizer.lr (%g), or raise train.schedule.warmup (%d)", s.Train.Optimizer.LR,
		s.Train.Schedule.Warmup)
	if s.Train.Optimizer.ClipNorm == 0 {
		advice += ", or clip gradients (train.optimizer.clip_norm=1)"
	}
	return advice
}

// checkExporter returns an error if the binary cannot serve metrics.
func (r *job) checkExporter() error {
	if addr := r.o.Metrics; addr != "" && report.StartExporter == nil {
		return exit.Errorf(exit.Input, "--metrics %s: this binary has no HTTP server; compile it with planc compile "+
			"--with-metrics, or use planc run JOB -- --metrics %s", addr, addr)
	}
	return nil
}

// serveMetrics starts to serve metrics, in the first process of a launch.
func (r *job) serveMetrics() error {
	addr := r.o.Metrics
	if addr == "" || !r.team.IsFirst() {
		return nil
	}
	e, err := report.StartExporter(addr, report.RunInfo{Name: r.p.Name, Plan: r.p.Plan.Text, Program: r.p.Hash})
	if err != nil {
		return exit.Errorf(exit.Cannot, "--metrics %s: cannot listen: %w; use another address, such as :9400", addr,
			err)
	}
	r.metrics.Exporter = e
	r.report.Info(fmt.Sprintf("metrics: http://%s/metrics", e.Addr()), "metrics", "address", e.Addr())
	return nil
}
