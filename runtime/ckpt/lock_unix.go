//go:build unix && !solaris && !aix

package ckpt

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// tryLock locks an open file or folder until it is closed. It reports whether the lock is held, because some file
// systems have none.
func tryLock(f *os.File) (held bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return false, ErrLocked
	case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENOSYS),
		errors.Is(err, syscall.ENOLCK):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot lock it: %w", err)
	}
	return true, nil
}
