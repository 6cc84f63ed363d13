//go:build !unix

package process

import (
	"os"
	"os/signal"
)

// Launch runs the binary as a child process. The console sends Ctrl-C to both processes; only the child handles it.
func Launch(binary string, argv []string, on Streams) error {
	signal.Ignore(os.Interrupt)
	return launchChild(binary, argv, on)
}
