package driver

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/comm"
	"github.com/planc-dev/planc/runtime/feed"
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/settings"
)

// defaultRunsDir is the folder of the runs' folders.
const defaultRunsDir = "runs"

// printer returns the printer of a run's messages. Only the first process of a launch prints.
func (o *Options) printer() *report.Printer {
	if l := o.Launch; l != nil && l.Process > 0 {
		return report.NewPrinter(io.Discard, false, nil)
	}
	return report.NewPrinter(o.Text, o.Terminal, o.Logger)
}

// Options change how a program is run.
type Options struct {
	Dir, CheckpointDir, LogDir string
	Resume                     string // "auto", "never", a step or a folder
	Generate                   string // prompt to continue instead of training
	Changes                    []settings.Change
	Source                     feed.Source
	OnStep                     func(report.Step) error
	OnTensors                  func(int, *Tensors) error
	Logger                     *slog.Logger
	Text                       io.Writer // progress for people, in place of logger
	Terminal                   bool      // text is a terminal
	Timeout                    time.Duration
	ISA                        string         // ISA of the CPU kernels; "" is auto
	Launch                     *launch.Launch // launch that the process is part of; nil: none
	JoinWithin                 time.Duration
	Now                        func() time.Time // clock of train.checkpoint.every_minutes; nil: time.Now
	// Save writes a checkpoint; nil: ckpt.Save. Tests make it slow or fail.
	Save func(dir string, m ckpt.Manifest, contents []ckpt.Content) (ckpt.Saved, error)
	ExportOptions
	Diagnosis
}

// ExportOptions say what is exported instead of training.
type ExportOptions struct {
	Export     string // folder to export the model to; "": none
	ExportType string // of tensors.ExportTypes; "": the type of the checkpoint
}

// Diagnosis are the options that find faults of the model, the program or the machine.
type Diagnosis struct {
	Poison         bool
	OnCall         func(comm.Call)
	OnChoice       func(*rank.Choice)
	OverfitBatches int // number of batches to train on again and again; 0: all data
	CheckReplicas  int // steps between comparisons of replicated parameters; 0: none
	ParamNorms     int // steps between norms of parameters and gradients in the metrics; 0: none
	Trace          TraceSteps
	Metrics        string // address at which metrics are served; "": none
	// learning rates of the first and the last step of a range test, in place of those of the job; 0: none
	LRRange [2]float64
}

// folderSuffix ends the name of the default folder of a run that is not the real one.
func (d *Diagnosis) folderSuffix() string {
	if d.OverfitBatches > 0 {
		return fmt.Sprintf("-overfit-%d", d.OverfitBatches)
	}
	return ""
}

// ErrStop, returned by the function given to OnStep, ends the run as a signal does: after this step, with a committed
// checkpoint.
var ErrStop = errors.New("stopped by OnStep")
