package runtime

import (
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/feed"
	"github.com/planc-dev/planc/runtime/report"
	"github.com/planc-dev/planc/runtime/tensors"
)

// ExitError is the error that Run returns, with the exit code of the command.
type ExitError = exit.Error

// Exit codes of a training program.
const (
	ExitFailed    = exit.Failed    // failure of the environment: I/O, a lost rank
	ExitInput     = exit.Input     // flags, settings, data or checkpoint are wrong
	ExitCannot    = exit.Cannot    // this machine or launch cannot run the program
	ExitNonfinite = exit.Nonfinite // stopped by the numerics guard
	ExitOnRequest = exit.OnRequest // stopped on request, with a committed checkpoint
)

// What a run reports.
type (
	Step       = report.Step
	Result     = report.Result
	ExpertLoad = report.ExpertLoad
	Telemetry  = report.Telemetry
)

// Training data that the caller provides.
type (
	Source      = feed.Source
	TypedSource = feed.TypedSource
	ImageSource = feed.ImageSource
)

// What devices know of the tensors in an arena.
type (
	Float   = tensors.Float
	Numbers = tensors.Numbers
	Digit   = tensors.Digit
)
