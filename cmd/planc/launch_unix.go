//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

// launch makes this process the binary: there is nobody in between to forward a signal or to translate a status.
// In a test, whose stdout is not the process's, it is a child instead.
func launch(a *app, binary string, argv []string) error {
	if a.stdout.to != os.Stdout {
		return launchChild(a, binary, argv)
	}
	if err := syscall.Exec(binary, argv, append(os.Environ(), launchedBy+"=1")); err != nil {
		return fmt.Errorf("start %s: %w", binary, err)
	}
	return nil
}
