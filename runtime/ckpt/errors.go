package ckpt

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// InputError reports a file or folder with wrong content: damaged, incomplete, or written by another program.
type InputError struct{ Msg string }

func (e *InputError) Error() string { return e.Msg }

func inputf(format string, args ...any) error {
	return &InputError{"checkpoint: " + fmt.Sprintf(format, args...)}
}

// explain adds advice to an error of saving in dir.
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
