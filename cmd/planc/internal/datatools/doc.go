// Package datatools implements the commands of `planc data`: [Tokenize], [Inspect] and [Split]. Each has a field per
// flag, and a method Run that returns a document with its screen. Package main declares the flags and prints.
package datatools

import "fmt"

// FlagError is an input error of a flag.
type FlagError struct{ Msg, Fix string }

func (e *FlagError) Error() string { return e.Msg }

func flagError(fix, format string, args ...any) error {
	return &FlagError{fmt.Sprintf(format, args...), fix}
}
