package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/planc-dev/planc/cmd/planc/internal/lock"
	"github.com/planc-dev/planc/codegen/build"
)

// writeWhole replaces a file atomically ([build.Replace]). It does not touch a file that has the same text, apart from
// line endings. If path is a symbolic link, it replaces the target of the link.
func writeWhole(path string, data []byte) (wrote bool, err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if old, err := os.ReadFile(path); err == nil && sameText(old, data) {
		return false, nil
	}
	if err := build.ReplaceBytes(path, data, 0o666); err != nil {
		if file := (*fs.PathError)(nil); errors.As(err, &file) {
			err = file.Err // without the name of the temporary file
		}
		if names := (*os.LinkError)(nil); errors.As(err, &names) {
			err = names.Err
		}
		return false, fmt.Errorf("%s cannot be written: %w", filepath.ToSlash(path), err)
	}
	return true, nil
}

// sameText reports whether two texts are equal apart from line endings, which git may change.
func sameText(a, b []byte) bool { return bytes.Equal(unixText(a), unixText(b)) }

func unixText(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")) }

// writeLock writes a job's lock if it has changed.
func (a *app) writeLock(l *lock.Job, f *lock.File) error {
	wrote, err := writeWhole(l.Path, f.Bytes())
	if wrote {
		a.notef("wrote    %s", l.Name())
	}
	return err
}
