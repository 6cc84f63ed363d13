package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// launchedBy is an environment variable that planc run sets, so that messages of the binary mention flags after --.
const launchedBy = "PLANC_RUN"

// launchChild runs the binary as a child process with planc's standard streams, and returns its exit status.
func launchChild(a *app, binary string, argv []string) error {
	// the binary escapes its output itself
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
