// Package slurm writes batch scripts of SLURM.
package slurm

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/launcher"
)

// Format is a batch script. It is only exported.
var Format = interop.Format{
	Name:  "slurm",
	Title: "a batch script of SLURM",
	Tool:  "SLURM",
	Write: write,
	Ext:   ".sbatch",
}

const (
	// signalSeconds is how long before the time limit SLURM signals the job: time for a step and a checkpoint.
	signalSeconds = 300
	// maxFailures is how often the script starts a failed run again. SLURM_RESTART_COUNT also counts other restarts.
	maxFailures = 3
)

func write(t *interop.Target) ([]byte, error) {
	r, err := launcher.New(t)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("#!/bin/bash\n" + r.BashComments())
	for _, option := range options(r) {
		fmt.Fprintf(&b, "#SBATCH --%s\n", option)
	}
	b.WriteString("# Set --time, and add --partition and --account if your cluster needs them.\n\n")
	if r.IsPlanc() {
		writePlanc(&b)
	} else {
		writeTrainer(&b, r)
	}
	return []byte(b.String()), nil
}

// options are those of sbatch. The job has one task per node, which starts a process or a goroutine for each GPU.
func options(r *launcher.Run) []string {
	out := []string{"job-name=" + r.Name, fmt.Sprintf("nodes=%d", r.Nodes), "ntasks-per-node=1"}
	if r.HasGPUs {
		out = append(out, fmt.Sprintf("gpus-per-node=%d", r.Devices))
	}
	switch {
	case r.IsWhole:
		out = append(out, "exclusive")
	case r.Cores > 0:
		out = append(out, fmt.Sprintf("cpus-per-task=%d", r.Cores))
	}
	return append(out, "time=24:00:00", fmt.Sprintf("signal=TERM@%d", signalSeconds), "requeue", "open-mode=append",
		"output=%x-%j.log")
}

// srun is how each node's task is started. It may use all CPUs of the allocation: without the option, SLURM since 22.05
// gives a step one CPU per task.
const srun = `srun --cpus-per-task="$SLURM_CPUS_ON_NODE" --cpu-bind=none`

// writePlanc writes the commands that start planc's binary, and act on its exit code (docs/cli.md).
func writePlanc(b *strings.Builder) {
	fmt.Fprintf(b, `# %d seconds before the time limit, SIGTERM makes ./train save a checkpoint and exit with 75.
code=0
%s ./train || code=$?
case $code in
75) scontrol requeue "$SLURM_JOB_ID" ;; # stopped with a checkpoint: continue there
1) # failed: start again from the last checkpoint, at most %d times
	[ "${SLURM_RESTART_COUNT:-0}" -ge %[3]d ] || scontrol requeue "$SLURM_JOB_ID" ;;
esac
exit "$code"
`, signalSeconds, srun, maxFailures)
}

// writeTrainer writes the commands that start another trainer by torchrun.
func writeTrainer(b *strings.Builder, r *launcher.Run) {
	fmt.Fprintf(b, "# %d seconds before the time limit, SIGTERM asks the trainer to save a checkpoint, if it handles "+
		"it.\n", signalSeconds)
	perNode := fmt.Sprintf("--nproc-per-node=%d", r.Devices)
	if r.Nodes == 1 {
		fmt.Fprintf(b, "%s %s\n", srun, r.TorchrunLine("", "--standalone", perNode))
		return
	}
	command := r.TorchrunLine(`--rdzv-id="$SLURM_JOB_ID" --rdzv-endpoint="$first:29400"`, "--rdzv-backend=c10d",
		fmt.Sprintf("--nnodes=%d", r.Nodes), perNode)
	fmt.Fprintf(b, "first=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n%s \\\n\t%s\n", srun,
		command)
}
