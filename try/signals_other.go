//go:build !unix

package main

import (
	"os"
	"os/signal"
)

const executableSuffix = ".exe"

// signals keeps this process alive when it is interrupted: the command is interrupted too, and ends first.
func signals() (forward func(*os.Process), stop func()) {
	signal.Ignore(os.Interrupt)
	return func(*os.Process) {}, func() { signal.Reset(os.Interrupt) }
}
