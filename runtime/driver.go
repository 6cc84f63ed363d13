package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	goruntime "runtime"
	"time"

	"github.com/planc-dev/planc/runtime/amount"
	"github.com/planc-dev/planc/runtime/cpu"
	"github.com/planc-dev/planc/runtime/data"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/feed"
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/program"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/settings"
)

// run is one execution of a program: the driver of its ranks. One goroutine owns it.
type run struct {
	p   *rank.Program
	o   options
	s   Settings // the program's, with the options' changes
	res report.Result

	ckptDir       string
	files         *data.Set // nil if the caller provides a Source
	dataHash      string    // hash of samples of the files' contents at the start of the run
	source        feed.Source
	rows          *feed.Prefetcher
	feed          *feed.Prefetcher // source of the next batch: rows, or the prefetcher of an evaluation
	feedLate      bool             // a process of the team may have to wait for its next batch
	crew          *crew
	team          *launch.Team
	ctx           context.Context // the caller's context: when it ends, the run stops
	stopRequested bool            // a process of the team was asked to stop
	ended         chan struct{}   // closed at the end of the run
	deviceName    string          // name of the ranks' devices, for people
	metrics       *report.Metrics
	report        *report.Printer
	unlock        func() // unlocks the folder of the checkpoints; nil until it is locked

	tasks       []task           // unfinished steps, in order
	retries     []*feed.Batch    // batches of aborted steps, which must be retried
	lostSeconds float64          // time spent on aborted steps
	task        task             // step that onRank begins
	onRank      func(*rank.Rank) // begins the step on a rank
	last        report.Step

	total           int   // last step
	end             int64 // number of the first sample that is not used for training
	done            progress
	scaler          scaler
	adapts          bool  // the last step's loss scale was above its minimum
	faults          int   // consecutive steps that were not finite although the loss scale was not too large
	lastAppliedStep int   // last step of this run whose update was applied, 0 for none
	lastSavedStep   int   // step of the last checkpoint, -1 for none
	goodStep        int   // step of res.Checkpoint
	lastEvalStep    int   // step of the last evaluation, -1 for none
	lastValidStep   int   // step of the last validation loss in the metrics, 0 for none
	evalPending     bool  // a stop interrupted the evaluation after the last step, in this run or the previous one
	readError       error // error that ended the reading of data
	losses          lossWatch
	spikes          int       // loss spikes of this run
	stepBeforeHigh  int       // step of the last checkpoint before the loss became high, 0 for none
	times           []float64 // seconds of each step after the first; only the last ones are stored
	tokens          float64   // unmasked tokens of the last step

	peak      int64 // cached peakResident, valid until peakUntil
	peakUntil time.Time
}

// progress is what training has done so far, over all runs.
type progress struct {
	step    int   // finished steps
	updates int   // steps whose update was applied
	samples int64 // samples read
	tokens  int64 // unmasked tokens
}

// runProgram trains the program's model in this process, as Run does.
func runProgram(ctx context.Context, p *rank.Program, o *options) (report.Result, error) {
	r := &run{p: p, o: *o, s: p.Settings, lastSavedStep: -1, lastEvalStep: -1, ctx: ctx, ended: make(chan struct{})}
	nan := math.NaN()
	r.res = report.Result{Name: p.Name, FirstLoss: nan, Loss: nan, ValidLoss: nan, GradNorm: nan,
		Timing: report.Timing{StepSeconds: nan, MFU: nan}}
	err := r.execute()
	err = r.leaveTeam(err)
	r.close()
	return r.res, withExitCode(err)
}

func (r *run) execute() error {
	if r.o.export != "" {
		return r.export()
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
	r.scaler = newScaler(r.s.Train.Precision.LossScale)
	if err := r.join(r.ctx); err != nil {
		return err
	}
	// devices come before the data: on a wrong machine, the missing device is the more useful error
	if err := r.openDevices(); err != nil {
		return err
	}
	if err := r.openSource(); err != nil {
		return err
	}
	if err := r.checkAgreement(); err != nil {
		return err
	}
	r.announce()
	if err := r.fits(); err != nil {
		return err
	}
	if err := r.lock(); err != nil {
		return err
	}
	cpu.Threads(r.team.Count, threadsEach(goruntime.GOMAXPROCS(0), r.team.Count))
	var err error
	r.crew, err = newCrew(r.p, r.o.timeout, r.team)
	if err != nil {
		return err
	}
	r.crew.world.Watch = r.o.onCall
	r.guardTeam()
	for _, k := range r.crew.ranks {
		k.SetDiagnosis(r.o.poison && r.p.Devices == nil, r.o.onChoice)
	}
	if err := r.crew.openDevices(r.p.Devices); err != nil {
		return err
	}
	for _, k := range r.crew.mine {
		k.EnableOverlap(threadsEach(goruntime.GOMAXPROCS(0), r.team.Count))
	}
	r.reportLibraries()
	r.metrics = &report.Metrics{}
	if r.team.IsFirst() {
		r.metrics, err = report.OpenMetrics(r.o.logDir)
	}
	if err != nil {
		return err
	}
	r.res.Metrics = r.metrics.Path
	if err := r.restore(); err != nil {
		return err
	}
	if r.metrics.Err() != nil {
		return r.metrics.Err()
	}
	if err := r.crew.push(); err != nil {
		return err
	}
	r.res.FirstStep, r.res.Steps = r.done.step+1, r.done.step
	train, _ := feed.Readers(r.source, &r.p.ProgramData)
	r.rows = feed.New(train, r.done.samples, r.end, &r.p.Batch, r.p.Batch.GlobalBatch, r.maxBatches())
	r.readFrom(r.rows)
	return nil
}

// applySettings applies the options to the settings, checks them, and sets the folders.
func (r *run) applySettings() error {
	if err := r.p.Validate(); err != nil {
		return err
	}
	if err := settings.Apply(&r.s, &r.p.ProgramData, r.o.changes); err != nil {
		return exit.With(exit.Input, err)
	}
	if r.s.Train.Eval.Sample != "" && !r.p.Samples() {
		return exit.Errorf(exit.Input, "train.eval.sample: this model does not predict the next token, so it cannot "+
			"continue a text; leave the key out")
	}
	if err := r.selectISA(); err != nil {
		return err
	}
	if r.o.dir == "" {
		r.o.dir = filepath.Join(defaultRunsDir, r.p.Name)
	}
	if r.o.logDir == "" {
		r.o.logDir = r.o.dir
	}
	r.ckptDir = r.o.checkpointDir
	if r.ckptDir == "" {
		r.ckptDir = filepath.Join(r.o.dir, "checkpoints")
	}
	r.res.Dir, r.res.Ranks, r.res.ArenaBytes = r.o.dir, r.p.MeshSize(), r.p.LargestArena()
	return nil
}

// selectISA selects the CPU kernels of the requested ISA. By default a process uses those of the best ISA.
func (r *run) selectISA() error {
	if r.o.isa == "" {
		return nil
	}
	isa, err := cpu.FindISA(r.o.isa)
	if err != nil {
		return exit.Errorf(exit.Cannot, "--cpu-isa %s: %w", r.o.isa, err)
	}
	if isa != cpu.InUse() {
		cpu.Use(isa)
	}
	return nil
}

// openSource opens the data and computes the number of steps.
func (r *run) openSource() error {
	r.source = r.o.source
	if err := feed.CheckSource(r.source, &r.p.ProgramData, r.p.PredictsTokens()); err != nil {
		return err
	}
	if r.source == nil {
		set, sampled, err := feed.OpenFiles(&r.p.ProgramData, &r.s, r.ctx.Done(),
			func(text string) { r.report.Warn(text) })
		if err != nil {
			return err
		}
		r.files, r.source, r.dataHash = set, set, sampled
	}
	if err := feed.CheckPrompt(r.s.Train.Eval.Sample, r.p.Model.Vocab, r.files); err != nil {
		return err
	}
	b, t := r.p.Batch, &r.s.Train
	r.end = math.MaxInt64
	switch {
	case t.Steps > 0:
		r.total = t.Steps
	case t.Tokens > 0:
		step := int64(b.GlobalBatch) * int64(b.SeqLen)
		r.total = int((t.Tokens + step - 1) / step)
	default:
		n := r.source.TrainSamples()
		if n <= 0 {
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
		return exit.With(exit.Failed, err)
	}
	return exit.With(exit.Cannot, err)
}

// stepsOf returns the number of steps that read a number of samples.
func (r *run) stepsOf(samples int64) int {
	size := int64(r.p.Batch.GlobalBatch)
	return int((max(0, samples) + size - 1) / size)
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
	if r.files != nil {
		r.report.Info("data: "+r.files.String(), "data", "data", r.files.String())
	}
	if rate := r.s.Train.Experts.BiasRate; p.ExpertBiasNote(rate) != "" {
		r.report.Info(p.ExpertBiasNote(rate), "expert_bias", "rate", rate)
	}
	if text := settings.HighRate(&r.s.Train.Optimizer, p.Optim); text != "" && r.o.export == "" {
		r.report.Warn(text)
	}
}

// steps runs the remaining steps and the actions after the last.
func (r *run) steps() error {
	if r.evalPending {
		if err := r.evaluate(); err != nil {
			return err
		}
	}
	for r.done.step < r.total {
		if r.isStopRequested() {
			if err := r.finishAll(); err != nil {
				return err
			}
			return r.stop()
		}
		err := r.oneStep()
		if errors.Is(err, ErrStop) && r.done.step < r.total {
			return r.stop()
		}
		if err != nil && !errors.Is(err, ErrStop) && !errors.Is(err, feed.ErrStopRequested) {
			return err
		}
	}
	return r.finish()
}

// afterStep performs the actions that are due after a step.
func (r *run) afterStep(s *report.Step) error {
	if r.o.onTensors != nil {
		if err := r.crew.finishUpdates(); err != nil {
			return err
		}
		if err := r.crew.pull(func(a *Arena) Region { return a.Grads }); err != nil {
			return err
		}
		if err := r.o.onTensors(s.Step, &Tensors{r.crew}); err != nil {
			return err
		}
	}
	if r.isDue(r.s.Train.Eval.Every, s.Step) {
		if err := r.evaluate(); err != nil {
			return err
		}
	}
	if r.isDue(r.s.Train.Checkpoint.Every, s.Step) {
		if err := r.save(); err != nil {
			return err
		}
	}
	if r.o.onStep != nil {
		return r.o.onStep(*s)
	}
	return nil
}

// finish evaluates, saves and samples after the last step.
func (r *run) finish() error {
	if err := r.crew.finishUpdates(); err != nil {
		return err
	}
	if err := r.evaluate(); err != nil {
		return err
	}
	if err := r.save(); err != nil {
		return err
	}
	if r.evalPending || r.ioError() != nil {
		return r.stop()
	}
	if prompt := r.s.Train.Eval.Sample; prompt != "" && r.p.Model.Vocab > 1 {
		r.report.Info(fmt.Sprintf("sampling %d tokens", sampleTokens), "sampling", "tokens", sampleTokens)
		text, err := r.sample(prompt)
		if err != nil {
			return err
		}
		r.res.Sample = text
	}
	r.report.Clear()
	return nil
}

func (r *run) close() {
	if r.rows != nil {
		r.rows.Stop()
	}
	if r.crew != nil {
		r.crew.waitUpdates()
		r.crew.close()
		cpu.Threads(0, 0)
	}
	if r.files != nil {
		r.files.Close()
	}
	if r.metrics != nil {
		r.metrics.Close()
	}
	if r.unlock != nil {
		r.unlock()
	}
	r.res.PeakBytes = peakResident()
	if len(r.times) > 0 {
		r.res.StepSeconds = median(r.times)
		r.res.TokensPerSecond, r.res.MFU = r.tokens/r.res.StepSeconds, r.mfu(r.res.StepSeconds)
	}
	r.report.Clear()
}
