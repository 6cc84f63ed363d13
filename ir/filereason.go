package ir

import (
	"errors"
	"io/fs"
	"strings"
)

// FileReason returns why a file cannot be read, for messages that name the file already.
func FileReason(err error) string {
	var path *fs.PathError
	if !errors.As(err, &path) {
		return err.Error()
	}
	reason := path.Err.Error()
	if errors.Is(err, fs.ErrNotExist) {
		return "there is no such file"
	}
	return strings.Replace(reason, "is a directory", "it is a folder", 1)
}
