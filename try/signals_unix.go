//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

const executableSuffix = ""

// signals keeps this process alive when it is asked to stop, and returns how such a request reaches the command.
func signals() (forward func(*os.Process), stop func()) {
	all := make(chan os.Signal, 4)
	signal.Notify(all, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP)
	forward = func(p *os.Process) {
		for s := range all {
			if s != syscall.SIGINT { // a terminal has sent this one to the command already
				_ = p.Signal(s) // it may have ended
			}
		}
	}
	return forward, func() { signal.Stop(all); close(all) }
}
