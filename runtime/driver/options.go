package driver

import (
	"errors"
	"io"
	"log/slog"
	"time"

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
	Export                     string // folder to export the model to instead of training
	Changes                    []settings.Change
	Source                     feed.Source
	OnStep                     func(report.Step) error
	OnTensors                  func(int, *Tensors) error
	Logger                     *slog.Logger
	Text                       io.Writer // progress for people, in place of logger
	Terminal                   bool      // text is a terminal
	Timeout                    time.Duration
	Poison                     bool
	OnCall                     func(comm.Call)
	OnChoice                   func(*rank.Choice)
	ISA                        string         // ISA of the CPU kernels; "" is auto
	Launch                     *launch.Launch // launch that the process is part of; nil: none
	JoinWithin                 time.Duration
}

// ErrStop, returned by the function given to OnStep, ends the run as a signal does: after this step, with a committed
// checkpoint.
var ErrStop = errors.New("stopped by OnStep")
