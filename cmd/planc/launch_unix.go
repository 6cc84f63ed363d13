//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

// launch replaces this process by the binary (exec), so that signals and the exit status need no forwarding. In a test,
// whose stdout is not the process's, it runs a child process instead.
func launch(a *app, binary string, argv []string) error {
	if a.stdout.to != os.Stdout {
		return launchChild(a, binary, argv)
	}
	if err := syscall.Exec(binary, argv, append(os.Environ(), launchedBy+"=1")); err != nil {
		return fmt.Errorf("start %s: %w", binary, err)
	}
	return nil
}
