// Package exit holds the exit codes of training programs, and errors that carry one.
package exit

import "fmt"

// Exit codes of a training program.
const (
	Failed    = 1  // failure of the environment: I/O, a lost rank
	Input     = 2  // flags, settings, data or checkpoint are wrong
	Cannot    = 3  // this machine or launch cannot run the program
	Nonfinite = 5  // stopped by the numerics guard
	OnRequest = 75 // stopped on request, with a committed checkpoint
)

// Error is the error that Run returns, with the exit code of the command.
type Error struct {
	Code int
	Err  error
}

// Error returns the message of the error itself.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without its code.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an error with an exit code.
func Errorf(code int, format string, args ...any) error {
	return &Error{code, fmt.Errorf(format, args...)}
}

// Wrap gives an error an exit code.
func Wrap(code int, err error) *Error { return &Error{code, err} }
