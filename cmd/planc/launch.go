package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// launchedBy tells the binary that its flags follow --, for its messages.
const launchedBy = "PLANC_RUN"

// launchChild runs the binary with our stdio; its exit status becomes ours.
func launchChild(a *app, binary string, argv []string) error {
	// the binary escapes what it shows
	cmd := &exec.Cmd{Path: binary, Args: argv, Stdin: a.stdin, Stdout: a.stdout.to, Stderr: a.stderr.to}
	cmd.Env = append(os.Environ(), launchedBy+"=1")
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return exitStatus(exit.ExitCode())
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", binary, err)
	}
	return nil
}
