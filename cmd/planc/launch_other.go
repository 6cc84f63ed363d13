//go:build !unix

package main

import (
	"os"
	"os/signal"
)

// launch runs the binary as a child process. The console sends Ctrl-C to both processes; only the child handles it.
func launch(a *app, binary string, argv []string) error {
	signal.Ignore(os.Interrupt)
	return launchChild(a, binary, argv)
}
