//go:build !unix

package cli

import (
	"os"
	"syscall"
)

// stopSignals are the signals on which a run saves a checkpoint and ends.
var stopSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
