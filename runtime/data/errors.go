package data

import (
	"errors"
	"fmt"
	"io/fs"
)

// InputError is a mistake in what the user gave: a path, a file's content or a setting. Its text says
// what is wrong and, where that is known, what to do about it.
type InputError struct {
	Msg  string
	File string // path of the data file that it is about; "" if it is about none
}

func (e *InputError) Error() string { return e.Msg }

func inputf(format string, args ...any) error {
	return &InputError{Msg: "data: " + fmt.Sprintf(format, args...)}
}

// ReadError is a failure of the file system while a data file is opened or read, such as an I/O error.
type ReadError struct {
	File string
	Err  error
}

func (e *ReadError) Error() string {
	return fmt.Sprintf("data: %s cannot be read: %v", e.File, e.Err)
}

func (e *ReadError) Unwrap() error { return e.Err }

// readError is err about a file, which the text of err does not name a second time.
func readError(path string, err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		err = of.Err
	}
	return &ReadError{path, err}
}

// ChangedError reports that a data file no longer has the contents that it had when the Set opened it.
type ChangedError struct {
	File     string
	Was, Now int64  // sizes in bytes
	Msg      string // the whole text
}

func (e *ChangedError) Error() string { return e.Msg }
