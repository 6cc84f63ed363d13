//go:build unix

package cli

import (
	"os"
	"syscall"
)

// stopSignals are the signals on which a run saves a checkpoint and ends. SLURM sends SIGUSR1 before a job's time limit
// if it is asked to (sbatch --signal=USR1@120).
var stopSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1}
