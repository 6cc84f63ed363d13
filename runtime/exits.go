package runtime

import "github.com/planc-dev/planc/runtime/exit"

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
