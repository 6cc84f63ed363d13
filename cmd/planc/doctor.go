package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/machine"
)

func doctorCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor",
		Short: "check what works on this machine and what is missing",
		Long: `doctor checks what planc needs on this machine: Go, the build cache, disk space and the CPU. For GPUs it
checks the driver, cuBLASLt, NCCL, NVRTC and nvcc, with versions, and, if there are GPUs, how they are connected, and
the network. It says what does not work without each part. The exit status is 0 if training on the CPU works,
otherwise 1.`,
		Example: "planc doctor --json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			d := machine.Examine(version)
			var err error
			if a.json {
				err = a.PrintJSON(d)
			} else {
				err = a.Print(d.Screen())
			}
			if err == nil && !d.Works {
				err = &reportedError{errors.New(d.Failure())}
			}
			return err
		},
	}
	a.jsonFlag(c)
	return c
}

// reportedError is an error whose document has been printed on stdout already.
type reportedError struct{ error }

func (e *reportedError) Unwrap() error { return e.error }
