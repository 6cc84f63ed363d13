//go:build unix

package data

import (
	"os"
	"syscall"
)

// openAtOnce opens a file for reading. O_NONBLOCK keeps it from waiting for the writer of a FIFO.
func openAtOnce(path string) (*os.File, error) {
	for {
		fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
		if err == syscall.EINTR {
			continue
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
