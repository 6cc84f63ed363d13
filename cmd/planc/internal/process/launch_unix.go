//go:build unix

package process

import (
	"fmt"
	"os"
	"syscall"
)

// Launch replaces this process by the binary (exec), so that signals and the exit status need no forwarding. In a test,
// whose stdout is not the process's, it runs a child process instead.
func Launch(binary string, argv []string, on Streams) error {
	if on.Out != os.Stdout {
		return launchChild(binary, argv, on)
	}
	if err := syscall.Exec(binary, argv, append(os.Environ(), launchedBy+"=1")); err != nil {
		return fmt.Errorf("start %s: %w", binary, err)
	}
	return nil
}
