package ckpt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// openRegular opens a regular file for reading and returns its size. A pipe or device is an InputError, because opening
// a pipe waits for a writer, and reading a device may never end.
func openRegular(path string) (ObjectReader, int64, error) {
	if IsURL(path) {
		return openObject(path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if err := regular(path, info); err != nil {
		return nil, 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err = f.Stat()
	if err == nil {
		err = regular(path, info)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// regular refuses anything that is not a regular file, and names its type.
func regular(path string, info fs.FileInfo) error {
	mode := info.Mode()
	is := "not a regular file"
	switch {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		is = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		is = "a pipe"
	case mode&fs.ModeDevice != 0:
		is = "a device"
	case mode&fs.ModeSocket != 0:
		is = "a socket"
	}
	return inputf("%s is %s; a checkpoint consists of regular files", path, is)
}

// readSmall reads a whole file. A file of more than limit bytes is an InputError.
func readSmall(path string, limit int64) ([]byte, error) {
	f, _, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = inputf("%s has more than %d bytes; no file of this kind is that long", path, limit)
	}
	return b, err
}

// absent reports whether an error means that a file does not exist.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }

// reading wraps an error of reading a checkpoint. An InputError stays one. Others are failures of the environment, and
// the file may be complete.
func reading(err error) error {
	if bad := (*InputError)(nil); errors.As(err, &bad) {
		return err
	}
	return fmt.Errorf("checkpoint: %w", err)
}
