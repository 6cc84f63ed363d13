package driver

import (
	"errors"

	"github.com/planc-dev/planc/runtime/ckpt"
	"github.com/planc-dev/planc/runtime/exit"
	"github.com/planc-dev/planc/runtime/feed"
)

// inputCode returns the exit code of an error: ExitInput if another package marks it as an input error, else others.
func inputCode(err error, others int) int {
	var bad *ckpt.InputError
	var coded *exit.Error
	switch {
	case errors.As(err, &coded):
		return coded.Code
	case errors.As(err, &bad):
		return exit.Input
	}
	return others
}

// withExitCode gives an error its exit code.
func withExitCode(err error) error {
	var coded *exit.Error
	if err == nil || errors.As(err, &coded) && error(coded) == err {
		return err
	}
	return exit.Wrap(inputCode(err, feed.ExitCode(err)), err)
}
