package runtime

import (
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/settings"
)

// ErrStop, returned by the function given to OnStep, ends the run as a signal does: after this step, with a committed
// checkpoint.
var ErrStop = errors.New("stopped by OnStep")

// Step is a finished optimizer step.
type Step struct {
	Step      int     // counted from 1
	Loss      float64 // nats per unmasked token, mean over the global batch, before the update
	LR        float64
	GradNorm  float64 // before clipping
	Skipped   bool    // the update was not applied
	LossScale float64 // loss scale of this step; 0 if the loss is not scaled
	AuxLoss   float64 // the routers' auxiliary loss, mean over the sequences of the global batch
	Experts   []ExpertLoad
	Tokens    int64 // unmasked tokens since training began
	Seconds   float64
}

// Result is the outcome of a run.
type Result struct {
	Name      string
	Steps     int // last finished step, counted over all runs
	FirstStep int // first step of this run; 1 unless it was resumed
	Skipped   int // updates of this run that were not applied
	FirstLoss float64
	Loss      float64 // loss of the last step; NaN if this run had no step, that is Steps < FirstStep
	ValidLoss float64 // NaN if there was no evaluation
	GradNorm  float64 // gradient norm of the last step

	Tokens          int64   // unmasked tokens since training began
	Seconds         float64 // total time of this run's steps
	StepSeconds     float64 // median over this run's steps, without the first
	TokensPerSecond float64 // at that median
	MFU             float64 // at that median; NaN if the peak is unknown

	Ranks      int
	Here       int   // ranks of this process: all of them unless a launcher started several processes
	ArenaBytes int64 // arena size of one rank
	PeakBytes  int64 // peak resident memory of the process; 0 if the system does not report it
	Sample     string
	Export     string // folder to which the model was exported

	Dir        string
	Metrics    string // path of metrics.jsonl
	Checkpoint string // folder of the last committed checkpoint; "" if there is none
}

// Source is training data that the caller provides. A sample is SeqLen tokens and their labels. Samples are numbered
// from 0 through all epochs, and the same number must always give the same sample. Train and Valid may be called
// concurrently, each by one goroutine.
//
// The samples are checked. The run ends with ExitInput if a token is outside of the vocabulary, a counted label is not
// below it, unmasked is outside of 0 to len(labels), or no position of a step counts.
type Source interface {
	// Train fills tokens and labels with sample g. labels[i] is the model's target at position i; for text it is
	// tokens[i+1]. The first unmasked positions count, except those whose label is negative. Other positions add
	// nothing to loss and gradient, and may have any label. The model still reads their tokens, which may be 0. A full
	// sample returns len(tokens).
	Train(g int64, tokens, labels []int32) (unmasked int, err error)
	// TrainSamples returns the samples in an epoch. Only a job with train.epochs needs it.
	TrainSamples() int64
	// Valid is like Train, for g below ValidSamples.
	Valid(g int64, tokens, labels []int32) (unmasked int, err error)
	// ValidSamples returns the number of validation samples; 0 if there is no validation.
	ValidSamples() int64
}

// TypedSource is a [Source] for models with token types, such as BERT's two segments. Without it all types are 0.
// Sample g is the sample that Train or Valid gives for g.
type TypedSource interface {
	// TrainTypes fills types, one per position, for training sample g.
	TrainTypes(g int64, types []int32) error
	// ValidTypes is like TrainTypes, for a validation sample.
	ValidTypes(g int64, types []int32) error
}

// ImageSource is a [Source] for models that read images; such models require it. Pixels holds one patch per position,
// in the order of the model's patch projection. Its previous content is arbitrary. Position 0 is the class token: what
// is written there is ignored, and its label is the class of the image. Train and Valid are still called for labels,
// and for tokens, which such a model does not read.
type ImageSource interface {
	// TrainPixels fills pixels, len(pixels)/SeqLen of them per position, for training sample g.
	TrainPixels(g int64, pixels []float32) error
	// ValidPixels is like TrainPixels, for a validation sample.
	ValidPixels(g int64, pixels []float32) error
}

// defaultRunsDir is the folder of the runs' folders.
const defaultRunsDir = "runs"

// Option changes how Run executes a program.
type Option func(*options)

type options struct {
	dir, checkpointDir, logDir string
	resume                     string // "auto", "never", a step or a folder
	export                     string // folder to export the model to instead of training
	changes                    []settings.Change
	source                     Source
	onStep                     func(Step) error
	onTensors                  func(int, *Tensors) error
	logger                     *slog.Logger
	text                       io.Writer // progress for people, in place of logger
	terminal                   bool      // text is a terminal
	timeout                    time.Duration
	poison                     bool
	onCall                     func(Call)
	onChoice                   func(*Choice)
	isa                        string         // ISA of the CPU kernels; "" is auto
	launch                     *launch.Launch // launch that the process is part of; nil: none
	joinWithin                 time.Duration
}

// Dir sets the folder of metrics.jsonl and checkpoints/; the default is runs/NAME.
func Dir(path string) Option { return func(o *options) { o.dir = path } }

// CheckpointDir sets the folder of the checkpoints; the default is Dir/checkpoints.
func CheckpointDir(path string) Option { return func(o *options) { o.checkpointDir = path } }

// LogDir sets the folder of metrics.jsonl; the default is Dir.
func LogDir(path string) Option { return func(o *options) { o.logDir = path } }

// Resume sets the checkpoint to continue: "auto" (the default: the newest verified one), "never", the step of a
// checkpoint, or a checkpoint's folder.
func Resume(from string) Option { return func(o *options) { o.resume = from } }

// Set changes a setting by its path in the job file, such as "train.optimizer.lr". A string value is parsed as planc's
// --set parses it; nil or "null" restores the compiled value.
func Set(path string, value any) Option {
	return func(o *options) { o.changes = append(o.changes, settings.Change{Path: path, Value: value}) }
}

// Data replaces the job's files by the caller's samples. The source may also be a [TypedSource] or an [ImageSource].
func Data(s Source) Option { return func(o *options) { o.source = s } }

// OnStep calls f after every step, before the next one begins. An error of f ends the run.
func OnStep(f func(Step) error) Option { return func(o *options) { o.onStep = f } }

// Logger sets the logger of the run's messages; the default is slog.Default().
func Logger(l *slog.Logger) Option { return func(o *options) { o.logger, o.text = l, nil } }

// Timeout sets how long a collective waits for a rank before the run fails; the default is ten minutes. On GPUs, where
// collectives are parts of a step, a step may take this long beyond ten times the longest step so far.
func Timeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// text reports to people on w, with a live status line if w is a terminal.
func text(w io.Writer, terminal bool) Option {
	return func(o *options) { o.text, o.terminal = w, terminal }
}
