//go:build unix && !solaris && !aix

package ckpt

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lockFile locks an open file, as long as it is open.
func lockFile(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return ErrLocked
	case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.ENOLCK):
		return nil // this file system has no locks
	case err != nil:
		return fmt.Errorf("cannot lock the folder: %w", err)
	}
	return nil
}
