package data

import (
	"errors"
	"fmt"
	"io/fs"
)

// InputError is an input error of the user: a path, a file's content or a setting. Its text says what is wrong and, if
// known, what to do.
type InputError struct {
	Msg  string
	File string // path of the data file concerned; "" if there is none
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

// readError returns a ReadError for a file. It does not repeat the path that err already contains.
func readError(path string, err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	return &ReadError{path, err}
}

// ChangedError reports that a data file no longer has the contents that it had when the Set opened it.
type ChangedError struct {
	File     string
	Was, Now int64  // sizes in bytes
	Msg      string // complete message
}

func (e *ChangedError) Error() string { return e.Msg }
