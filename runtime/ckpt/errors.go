package ckpt

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// InputError is a file or folder whose content is not what it has to be: damaged, incomplete, or made by
// something else.
type InputError struct{ Msg string }

func (e *InputError) Error() string { return e.Msg }

func inputf(format string, args ...any) error {
	return &InputError{"checkpoint: " + fmt.Sprintf(format, args...)}
}

// explain says what to do about a failure to save in dir.
func explain(dir string, step, bytes int64, err error) error {
	hint := ""
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		hint = fmt.Sprintf("; it needs %d bytes: free some space, or choose another folder with --checkpoint-dir",
			bytes)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		hint = "; choose a folder that can be written with --checkpoint-dir"
	}
	return fmt.Errorf("checkpoint: cannot save step %d in %s: %w%s", step, dir, err, hint)
}
