package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// launchedBy is an environment variable that planc run sets, so that messages of the binary mention flags after --.
const launchedBy = "PLANC_RUN"

// ExitStatus is the exit status of the binary that planc ran. planc exits with it and prints nothing more.
type ExitStatus int

func (e ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Streams holds the standard streams of a process.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// launchChild runs the binary as a child process, and returns its exit status.
func launchChild(binary string, argv []string, on Streams) error {
	cmd := &exec.Cmd{Path: binary, Args: argv, Stdin: on.In, Stdout: on.Out, Stderr: on.Err}
	cmd.Env = append(os.Environ(), launchedBy+"=1")
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() >= 0 {
		return ExitStatus(exit.ExitCode())
	}
	if err != nil {
		return fmt.Errorf("run %s: %w", binary, err)
	}
	return nil
}
