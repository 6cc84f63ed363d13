package runtime

import (
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/planc-dev/planc/runtime/feed"
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/settings"
)

// ErrStop, returned by the function given to OnStep, ends the run as a signal does: after this step, with a committed
// checkpoint.
var ErrStop = errors.New("stopped by OnStep")

// defaultRunsDir is the folder of the runs' folders.
const defaultRunsDir = "runs"

// Option changes how Run executes a program.
type Option func(*options)

type options struct {
	dir, checkpointDir, logDir string
	resume                     string // "auto", "never", a step or a folder
	export                     string // folder to export the model to instead of training
	changes                    []settings.Change
	source                     feed.Source
	onStep                     func(report.Step) error
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
func Data(s feed.Source) Option { return func(o *options) { o.source = s } }

// OnStep calls f after every step, before the next one begins. An error of f ends the run.
func OnStep(f func(report.Step) error) Option { return func(o *options) { o.onStep = f } }

// Logger sets the logger of the run's messages; the default is slog.Default().
func Logger(l *slog.Logger) Option { return func(o *options) { o.logger, o.text = l, nil } }

// Timeout sets how long a collective waits for a rank before the run fails; the default is ten minutes. On GPUs, where
// collectives are parts of a step, a step may take this long beyond ten times the longest step so far.
func Timeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// text reports to people on w, with a live status line if w is a terminal.
func text(w io.Writer, terminal bool) Option {
	return func(o *options) { o.text, o.terminal = w, terminal }
}

// printer returns the printer of a run's messages. Only the first process of a launch prints.
func (o *options) printer() *report.Printer {
	if l := o.launch; l != nil && l.Process > 0 {
		return report.NewPrinter(io.Discard, false, nil)
	}
	return report.NewPrinter(o.text, o.terminal, o.logger)
}
