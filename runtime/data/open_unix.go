//go:build unix

package data

import (
	"os"
	"syscall"
)

// openAtOnce opens a file for reading. O_NONBLOCK keeps it from waiting for the writer of a FIFO. It waits for a file
// on which a network file server holds a lease.
func openAtOnce(path string) (*os.File, error) {
	for {
		fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
		if err == syscall.EINTR {
			continue
		}
		if err == syscall.EAGAIN && isRegular(path) {
			return os.Open(path) // waits until the lease is released
		}
		if err == nil {
			err = syscall.SetNonblock(fd, false)
		}
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		return os.NewFile(uintptr(fd), path), nil
	}
}

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
