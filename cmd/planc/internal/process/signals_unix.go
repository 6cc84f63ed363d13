//go:build unix

package process

import (
	"os"
	"os/signal"
	"syscall"
)

// endBy ends the process by a signal.
func endBy(s os.Signal) {
	signal.Reset(s)
	if err := syscall.Kill(os.Getpid(), s.(syscall.Signal)); err != nil {
		os.Exit(1)
	}
}
