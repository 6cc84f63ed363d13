package runtime

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/planc-dev/planc/runtime/launch"
)

// Exit codes of a training program.
const (
	ExitFailed     = 1  // the world: I/O, a lost rank
	ExitInput      = 2  // flags, settings, data or checkpoint are wrong
	ExitCannot     = 3  // this machine or launch cannot run the program
	ExitNonfinite  = 5  // stopped by the numerics guard
	ExitOnRequest  = 75 // stopped on request, with a committed checkpoint
	defaultRunsDir = "runs"
)

// ExitError is Run's error, with the code that a command exits with.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string { return e.Err.Error() }
func (e *ExitError) Unwrap() error { return e.Err }

func exitf(code int, format string, args ...any) error {
	return &ExitError{code, fmt.Errorf(format, args...)}
}

// ErrStop, returned by the function given to OnStep, ends the run as a signal does: after this step, with
// a committed checkpoint.
var ErrStop = errors.New("stopped by OnStep")

// Step describes a finished optimizer step.
type Step struct {
	Step      int     // from 1
	Loss      float64 // nats per unmasked token, mean over the global batch, before the update
	LR        float64
	GradNorm  float64 // before clipping
	Skipped   bool    // the update was not applied
	LossScale float64 // of this step; 0 where the loss is not scaled
	AuxLoss   float64 // what routers are trained with beside the loss, mean over the sequences of the global batch
	Experts   []ExpertLoad
	Tokens    int64 // unmasked, since training began
	Seconds   float64
}

// Result is what a run did.
type Result struct {
	Name      string
	Steps     int // last step done, absolute
	FirstStep int // of this run; 1 unless resumed
	Skipped   int // updates not applied, in this run
	FirstLoss float64
	Loss      float64 // of the last step; NaN when the run had none, that is Steps < FirstStep
	ValidLoss float64 // NaN when there was no evaluation
	GradNorm  float64 // of the last step

	Tokens          int64   // unmasked, since training began
	Seconds         float64 // of this run's steps
	StepSeconds     float64 // median of this run, the first step left out
	TokensPerSecond float64 // at that median
	MFU             float64 // at that median; NaN where the peak is unknown

	Ranks      int
	Here       int   // ranks of this process, which is all of them unless a launcher started several
	ArenaBytes int64 // of one rank
	PeakBytes  int64 // of the process, resident; 0 where the system does not say
	Sample     string
	Export     string // folder that the model was written to

	Dir        string
	Metrics    string // path of metrics.jsonl
	Checkpoint string // folder of the last one committed, "" for none
}

// Source is a user's own data. A sample is SeqLen tokens and their labels; samples are numbered from 0
// through all epochs, and the same number must always give the same sample. Train and Valid may be called
// at the same time, each by one goroutine.
//
// What a Source gives is checked: a token outside of the vocabulary, a label that counts and is not below it, an
// unmasked outside of 0 to len(labels), or a step of which no position counts end the run with ExitInput.
type Source interface {
	// Train fills tokens and labels with sample g. labels[i] is what the model shall say at position i: of text,
	// tokens[i+1]. unmasked is the length of the part at the front that counts: positions from unmasked on, and
	// those whose label is negative, add nothing to loss and gradient, and may hold any label. Their tokens are
	// read all the same; 0 will do. A sample that is full returns len(tokens).
	Train(g int64, tokens, labels []int32) (unmasked int, err error)
	// TrainSamples is the length of an epoch; only a job with train.epochs needs it.
	TrainSamples() int64
	// Valid is like Train, for g below ValidSamples.
	Valid(g int64, tokens, labels []int32) (unmasked int, err error)
	// ValidSamples is 0 where there is no validation.
	ValidSamples() int64
}

// TypedSource is a [Source] for models that know token types, such as BERT's two segments; those of another Source
// are all 0. Sample g is the one that Train or Valid gives for g.
type TypedSource interface {
	// TrainTypes fills types, one a position, for sample g of training.
	TrainTypes(g int64, types []int32) error
	// ValidTypes is like TrainTypes, for a sample of validation.
	ValidTypes(g int64, types []int32) error
}

// ImageSource is a [Source] for models that read pictures, which cannot do without. Pixels holds one patch a
// position, in the order of the model's patch projection; what it held before is arbitrary. Position 0 is the class
// token's, which is no patch: what is written there does not count, and the picture's class is its label. Train and
// Valid are still asked for labels, and for tokens, which such a model does not read.
type ImageSource interface {
	// TrainPixels fills pixels, len(pixels)/SeqLen of them a position, for sample g of training.
	TrainPixels(g int64, pixels []float32) error
	// ValidPixels is like TrainPixels, for a sample of validation.
	ValidPixels(g int64, pixels []float32) error
}

// Option changes how Run runs a program.
type Option func(*options)

type options struct {
	dir, checkpointDir, logDir string
	resume                     string // "auto", "never", a step or a folder
	export                     string // folder to write the model to, instead of training
	sets                       []setting
	source                     Source
	onStep                     func(Step) error
	onTensors                  func(int, *Tensors) error
	logger                     *slog.Logger
	text                       io.Writer // progress for people, instead of logger
	terminal                   bool      // text is one
	timeout                    time.Duration
	poison                     bool
	watch                      func(Call)
	onChoice                   func(*Choice)
	isa                        string         // of the kernels; "" is auto
	launch                     *launch.Launch // that the process is part of; nil: none
	joinWithin                 time.Duration
}

type setting struct {
	path  string
	value any
}

// Dir is the folder of metrics.jsonl and checkpoints/; the default is runs/NAME.
func Dir(path string) Option { return func(o *options) { o.dir = path } }

// CheckpointDir moves the checkpoints, by default in Dir/checkpoints.
func CheckpointDir(path string) Option { return func(o *options) { o.checkpointDir = path } }

// LogDir moves metrics.jsonl, by default in Dir.
func LogDir(path string) Option { return func(o *options) { o.logDir = path } }

// Resume says where to begin: "auto" (the default: the newest verified checkpoint), "never", the step of
// a checkpoint, or a checkpoint's folder.
func Resume(from string) Option { return func(o *options) { o.resume = from } }

// Set changes a setting by its path in the job file, such as "train.optimizer.lr". A string value is read
// as planc's --set reads it; nil or "null" is what the program was compiled with.
func Set(path string, value any) Option {
	return func(o *options) { o.sets = append(o.sets, setting{path, value}) }
}

// Data replaces the job's files by the caller's own samples. The source may be a [TypedSource] and a [ImageSource] too.
func Data(s Source) Option { return func(o *options) { o.source = s } }

// OnStep calls f after every step, before the next is begun; an error ends the run with it.
func OnStep(f func(Step) error) Option { return func(o *options) { o.onStep = f } }

// Logger takes the run's messages; the default is slog.Default().
func Logger(l *slog.Logger) Option { return func(o *options) { o.logger, o.text = l, nil } }

// Timeout is how long a collective waits for a rank before the run fails; the default is ten minutes. On GPUs, where
// collectives are parts of a step, it is how long a step may take beyond ten times the longest so far.
func Timeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// text reports to people on w, with a live line where it is a terminal.
func text(w io.Writer, terminal bool) Option {
	return func(o *options) { o.text, o.terminal = w, terminal }
}
