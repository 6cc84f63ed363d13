package driver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/planc-dev/planc/runtime/amount"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/feed"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/settings"
)

// run is one execution of a program: the driver of its ranks. One goroutine owns it.
type run struct {
	*job
	member      *member
	checkpoints *checkpoints
	evaluator   *evaluator
	recorder    *recorder
	stepper     *stepper
	deviceName  string // name of the ranks' devices, for people
	spikes      spikeGuard
}

// newRun returns a run that has not begun.
func newRun(ctx context.Context, p *rank.Program, o *Options) *run {
	nan := math.NaN()
	j := &job{p: p, o: *o, s: p.Settings, ctx: ctx}
	j.res = report.Result{Name: p.Name, FirstLoss: nan, Loss: nan, ValidLoss: nan, GradNorm: nan,
		Timing: report.Timing{StepSeconds: nan, MFU: nan}}
	r := &run{job: j, member: &member{job: j, ended: make(chan struct{})},
		checkpoints: &checkpoints{saver: &saver{job: j, lastSavedStep: -1}}}
	r.recorder = &recorder{job: j, pull: r.checkpoints.pull}
	r.evaluator = &evaluator{job: j, member: r.member, lastEvalStep: -1}
	j.tracer = &tracer{job: j}
	r.stepper = &stepper{job: j, member: r.member, recorder: r.recorder, after: r.afterStep}
	r.spikes.run = r
	return r
}

// Run trains the program's model in this process, as Run does.
func Run(ctx context.Context, p *rank.Program, o *Options) (report.Result, error) {
	r := newRun(ctx, p, o)
	err := r.execute()
	r.checkpoints.finishPending(err)
	err = r.member.leaveTeam(err)
	r.close()
	return r.res, withExitCode(err)
}

func (r *run) execute() error {
	switch {
	case r.o.Export != "":
		return r.export()
	case r.o.Generate != "":
		return r.generate()
	}
	if err := r.prepare(); err != nil {
		return err
	}
	return r.train()
}

// prepare does everything before the first step.
func (r *run) prepare() error {
	r.report = r.o.printer()
	if err := r.applySettings(); err != nil {
		return err
	}
	if err := errors.Join(r.tracer.check(), r.checkExporter()); err != nil {
		return err
	}
	r.scaler = newScaler(r.s.Train.Precision.LossScale)
	r.done.early = newEarlyStop(r.s.Train.EarlyStop)
	if err := r.member.join(r.ctx); err != nil {
		return err
	}
	// devices come before the data: on a wrong machine, the missing device is the more useful error
	if err := r.openDevices(); err != nil {
		return err
	}
	if err := r.openSource(); err != nil {
		return err
	}
	if err := r.member.checkAgreement(); err != nil {
		return err
	}
	r.announce()
	if err := r.fits(); err != nil {
		return err
	}
	if err := r.checkpoints.lock(); err != nil {
		return err
	}
	if err := r.startCrew(); err != nil {
		return err
	}
	r.recorder.parts = newPartTimes(r.crew.ranks)
	r.reportLibraries()
	var err error
	r.metrics = &report.Metrics{}
	if r.team.IsFirst() {
		r.metrics, err = report.OpenMetrics(r.o.LogDir)
	}
	if err != nil {
		return err
	}
	r.metrics.Plan, r.metrics.Program = r.p.Plan.Text, r.p.Hash
	r.res.Metrics = r.metrics.Path
	if err := r.serveMetrics(); err != nil {
		return err
	}
	if err := r.checkpoints.restore(); err != nil {
		return err
	}
	if r.metrics.Err() != nil {
		return r.metrics.Err()
	}
	if err := r.crew.push(); err != nil {
		return err
	}
	if err := r.checkpoints.takeMemory(); err != nil {
		return err
	}
	r.checkpoints.restartTimer()
	r.res.FirstStep, r.res.Steps = r.done.step+1, r.done.step
	r.readSamples()
	return nil
}

// readSamples starts to read the batches from the next sample on.
func (r *run) readSamples() {
	train, _ := r.data.readers(&r.p.ProgramData)
	r.member.rows = feed.New(train, r.done.samples, r.end, &r.p.Batch, r.p.Batch.GlobalBatch, r.stepper.maxBatches())
	r.member.readFrom(r.member.rows)
}

// applySettings applies the options to the settings, checks them, and sets the folders.
func (r *run) applySettings() error {
	if err := r.p.Validate(); err != nil {
		return err
	}
	if err := settings.Apply(&r.s, &r.p.ProgramData, r.o.Changes); err != nil {
		return exit.Wrap(exit.Input, err)
	}
	if err := r.checkSampling(); err != nil {
		return err
	}
	if err := r.selectISA(); err != nil {
		return err
	}
	if r.o.Dir == "" {
		r.o.Dir = filepath.Join(defaultRunsDir, r.p.Name+r.o.folderSuffix())
	}
	if r.o.LogDir == "" {
		r.o.LogDir = r.o.Dir
	}
	r.ckptDir = r.o.CheckpointDir
	if r.ckptDir == "" {
		r.ckptDir = filepath.Join(r.o.Dir, "checkpoints")
	}
	r.res.Dir, r.res.Ranks, r.res.ArenaBytes = r.o.Dir, r.p.MeshSize(), r.p.LargestArena()
	return nil
}

// selectISA selects the CPU kernels of the requested ISA. By default a process uses those of the best ISA.
func (r *run) selectISA() error {
	if r.o.ISA == "" {
		return nil
	}
	isa, err := cpu.FindISA(r.o.ISA)
	if err != nil {
		return exit.Errorf(exit.Cannot, "--cpu-isa %s: %w", r.o.ISA, err)
	}
	if isa != cpu.InUse() {
		cpu.Use(isa)
	}
	return nil
}

// openSource opens the data and computes the number of steps.
func (r *run) openSource() error {
	r.data.source = r.o.Source
	if err := feed.CheckSource(r.data.source, &r.p.ProgramData, r.p.PredictsTokens()); err != nil {
		return err
	}
	if r.data.source == nil {
		set, sampled, err := feed.OpenFiles(&r.p.ProgramData, &r.s, r.ctx.Done(),
			func(text string) { r.report.Warn(text) })
		if err != nil {
			return err
		}
		r.data.files, r.data.source, r.data.hash = set, set, sampled
	}
	prompt := r.prompt(r.s.Train.Eval.Sample, sampleSetting)
	prompt.IsTokens = r.data.files != nil && !r.data.files.Bytes()
	if err := prompt.Check(); err != nil {
		return err
	}
	if err := errors.Join(r.checkBest(), r.checkEarlyStop()); err != nil {
		return err
	}
	b, t := r.p.Batch, &r.s.Train
	r.data.first = int64(r.o.OverfitBatches) * int64(b.GlobalBatch)
	if err := r.checkSaveEpochs(); err != nil {
		return err
	}
	r.end = math.MaxInt64
	switch {
	case t.Steps > 0:
		r.total = t.Steps
	case t.Tokens > 0:
		step := int64(b.GlobalBatch) * int64(b.SeqLen)
		r.total = int((t.Tokens + step - 1) / step)
	default:
		n := r.data.epoch()
		if n == 0 {
			return exit.Errorf(exit.Input, "train.epochs needs data of known length; use train.steps instead")
		}
		r.end = max(1, int64(math.Round(t.Epochs*float64(n))))
		r.total = r.stepsOf(r.end)
	}
	return nil
}

// openDevices opens the devices that the program is compiled for.
func (r *run) openDevices() (err error) {
	r.deviceName = "this CPU"
	if r.p.Devices == nil {
		return nil
	}
	r.deviceName, err = r.p.Devices.Open(r.team)
	switch p := r.team.Peers; {
	case err == nil:
		return nil
	// another process has failed, not this machine
	case p != nil && p.Err() != nil && errors.Is(err, p.Err()):
		return exit.Wrap(exit.Failed, err)
	}
	return exit.Wrap(exit.Cannot, err)
}

// announce prints the first lines of a run, except for the checkpoint that it resumes.
func (r *run) announce() {
	p := r.p
	ranks := "1 rank"
	if r.res.Ranks > 1 {
		ranks = fmt.Sprintf("%d ranks", r.res.Ranks)
	}
	r.report.Info(fmt.Sprintf("%s: %s · %s on %s", p.Name, p.Plan.Text, ranks, r.deviceName),
		"plan", "name", p.Name, "plan", p.Plan.Text, "ranks", r.res.Ranks)
	r.report.Info(fmt.Sprintf("program %s · %s params\n        predicted %s a step, %s tokens/s, %s a rank",
		program.ShortHash(p.Hash),
		amount.Params(p.Model.Params), report.Seconds(p.Predict.StepSeconds), amount.Short(p.Predict.TokensPerSecond),
		report.Size(p.Predict.MemoryBytes)),
		"program", "hash", p.Hash, "params", p.Model.Params, "predicted_step_s", p.Predict.StepSeconds,
		"predicted_tokens_per_s", p.Predict.TokensPerSecond, "predicted_memory_bytes", p.Predict.MemoryBytes)
	if r.data.files != nil {
		text, mixture := r.data.files.String()+r.data.limit(), r.data.files.Mixture()
		r.report.Info(strings.Join(append([]string{"data: " + text}, mixture...), "\n        "), "data", "data", text,
			"mixture", mixture)
	}
	if rate := r.s.Train.Experts.BiasRate; p.ExpertBiasNote(rate) != "" {
		r.report.Info(p.ExpertBiasNote(rate), "expert_bias", "rate", rate)
	}
	if text := settings.HighRate(&r.s.Train.Optimizer, p.Optim); text != "" && r.o.Export == "" {
		r.report.Warn(text)
	}
}

// steps runs the remaining steps and the actions after the last.
func (r *run) steps() error {
	if err := r.finishEvaluation(); err != nil {
		return err
	}
	for r.done.step < r.total {
		if err := r.checkWriting(); err != nil {
			return err
		}
		if r.member.isStopRequested() {
			if err := r.finishAll(); err != nil {
				return err
			}
			return r.stop()
		}
		if err := r.tracer.before(r.done.step + 1); err != nil {
			return err
		}
		err := r.stepper.oneStep()
		if err == nil && r.recorder.rollsBack {
			err = r.spikes.goBack()
		}
		if errors.Is(err, ErrStop) && r.done.step < r.total {
			return r.stop()
		}
		if err != nil && !errors.Is(err, ErrStop) && !errors.Is(err, feed.ErrStopRequested) {
			return err
		}
	}
	return r.finish()
}

// finishEvaluation repeats the evaluation after the last step if it was interrupted.
func (r *run) finishEvaluation() error {
	if !r.evalPending {
		return nil
	}
	if err := r.evaluator.evaluate(); err != nil {
		return err
	}
	r.evaluator.stopEarly()
	if !r.checkpoints.addBest() {
		return nil
	}
	r.checkpoints.lastSavedStep = -1 // the checkpoint of this step does not have its loss
	return r.checkpoints.save()
}

// finishAll finishes all steps that have begun, and rolls back if one of them was a spike.
func (r *run) finishAll() error {
	err := r.stepper.finishAll()
	if err == nil && r.recorder.rollsBack {
		return r.spikes.goBack()
	}
	return err
}

// checkWriting saves the state if a checkpoint could not be written in the background.
func (r *run) checkWriting() error {
	mustSave, err := r.checkpoints.check()
	if err != nil || !mustSave {
		return err
	}
	if err := r.finishAll(); err != nil {
		return err
	}
	return r.checkpoints.begin(false)
}

// afterStep performs the actions that are due after a step.
func (r *run) afterStep(s *report.Step) error {
	if r.o.OnTensors != nil {
		if err := r.checkpoints.pull(func(a *program.Arena) program.Region { return a.Grads }); err != nil {
			return err
		}
		if err := r.o.OnTensors(s.Step, &Tensors{r.crew}); err != nil {
			return err
		}
	}
	if isDue(r.o.CheckReplicas, s.Step) {
		if err := r.checkpoints.checkReplicas(); err != nil {
			return err
		}
	}
	if isDue(r.s.Train.Eval.Every, s.Step) {
		if err := r.evaluator.evaluate(); err != nil {
			return err
		}
		r.evaluator.stopEarly()
		if r.checkpoints.addBest() {
			if err := r.checkpoints.save(); err != nil {
				return err
			}
		}
	}
	if r.isSaveDue(s.Step) || r.checkpoints.isTimeDue() && len(r.stepper.tasks) == 0 {
		if err := r.checkpoints.save(); err != nil {
			return err
		}
	}
	if isDue(r.s.Train.Eval.SampleEvery, s.Step) && s.Step < r.total {
		if err := r.evaluator.showSample(); err != nil {
			return err
		}
	}
	if r.o.OnStep != nil {
		return r.o.OnStep(*s)
	}
	return nil
}

// finish evaluates, saves and samples after the last step.
func (r *run) finish() error {
	if err := r.crew.finishUpdates(); err != nil {
		return err
	}
	if err := r.evaluator.evaluate(); err != nil {
		return err
	}
	r.checkpoints.addBest()
	if err := r.checkpoints.saveLast(); err != nil {
		return err
	}
	if r.evalPending || r.member.ioError() != nil {
		return r.stop()
	}
	if r.s.Train.Eval.Sample != "" && r.p.Model.Vocab > 1 {
		n := r.evaluator.sampleTokens()
		r.report.Info(fmt.Sprintf("sampling %d tokens", n), "sampling", "tokens", n)
		text, err := r.evaluator.sample(r.s.Train.Eval.Sample)
		if err != nil {
			return err
		}
		r.res.Sample = text
	}
	if f := r.data.files; f != nil && r.team.IsFirst() {
		for _, c := range f.Counts(min(r.done.samples, r.end)) {
			r.res.Sources = append(r.res.Sources, report.SourceCount(c))
		}
	}
	r.report.Clear()
	return nil
}

func (r *run) close() {
	if r.member.rows != nil {
		r.member.rows.Stop()
	}
	if r.crew != nil {
		r.crew.waitUpdates()
		r.crew.close()
		cpu.Threads(0, 0)
	}
	if r.data.files != nil {
		r.data.files.Close()
	}
	r.checkpoints.close()
	if r.metrics != nil {
		r.metrics.Close()
	}
	r.res.PeakBytes = peakResident()
	if len(r.recorder.times) > 0 {
		r.res.StepSeconds = median(r.recorder.times)
		r.res.TokensPerSecond, r.res.MFU = r.recorder.tokens/r.res.StepSeconds, r.recorder.mfu(r.res.StepSeconds)
	}
	r.report.Clear()
}
