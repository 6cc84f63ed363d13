package runtime

import (
	"io"
	"log/slog"
	"time"

	"github.com/planc-dev/planc/runtime/feed"
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/rank"
	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/settings"
)

// defaultRunsDir is the folder of the runs' folders.
const defaultRunsDir = "runs"

// printer returns the printer of a run's messages. Only the first process of a launch prints.
func (o *options) printer() *report.Printer {
	if l := o.launch; l != nil && l.Process > 0 {
		return report.NewPrinter(io.Discard, false, nil)
	}
	return report.NewPrinter(o.text, o.terminal, o.logger)
}

// options change how a program is run.
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
	onChoice                   func(*rank.Choice)
	isa                        string         // ISA of the CPU kernels; "" is auto
	launch                     *launch.Launch // launch that the process is part of; nil: none
	joinWithin                 time.Duration
}
