//go:build !unix

package main

import (
	"os"
	"os/signal"
)

// launch runs the binary as a child. The console gives Ctrl-C to both; only the child acts on it.
func launch(a *app, binary string, argv []string) error {
	signal.Ignore(os.Interrupt)
	return launchChild(a, binary, argv)
}
