package data

import "fmt"

// InputError is a mistake in what the user gave: a path, a file's content or a setting. Its text says
// what is wrong and, where that is known, what to do about it.
type InputError struct{ Msg string }

func (e *InputError) Error() string { return e.Msg }

func inputf(format string, args ...any) error {
	return &InputError{"data: " + fmt.Sprintf(format, args...)}
}
