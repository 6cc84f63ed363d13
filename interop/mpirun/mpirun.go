// Package mpirun writes a bash script that starts a run with Open MPI's mpirun.
package mpirun

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/launcher"
)

// Format is the script. It is only exported.
var Format = interop.Format{
	Name:  "mpirun",
	Title: "a script that calls mpirun of Open MPI",
	Tool:  "mpirun",
	Write: write,
	Ext:   ".sh",
}

// write returns the script. mpirun starts a process for each GPU.
func write(t *interop.Target) ([]byte, error) {
	r, err := launcher.New(t)
	if err != nil {
		return nil, err
	}
	if err := r.CheckProcesses("mpirun"); err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("#!/bin/bash\n" + r.BashComments())
	hosts, master := "", "127.0.0.1"
	if r.Nodes > 1 {
		fmt.Fprintf(&b, "# HOSTFILE lists %d nodes, one a line: NAME slots=%d\n"+
			"HOSTFILE=${HOSTFILE:-hostfile}\n", r.Nodes, r.Devices)
		hosts, master = ` --hostfile "$HOSTFILE"`, `$(awk 'NF && $1 !~ /^#/ { print $1; exit }' "$HOSTFILE")`
	}
	fmt.Fprintf(&b, "export MASTER_ADDR=%s MASTER_PORT=29500\n", master)
	fmt.Fprintf(&b, "exec mpirun -np %d%s --map-by ppr:%d:node --bind-to none -x MASTER_ADDR -x MASTER_PORT \\\n\t%s\n",
		r.Nodes*r.Devices, hosts, r.Devices, process(r))
	return []byte(b.String()), nil
}

// rankVariables sets the variables of PyTorch to those of Open MPI.
const rankVariables = `RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE ` +
	`LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK LOCAL_WORLD_SIZE=$OMPI_COMM_WORLD_LOCAL_SIZE exec "$@"`

// process returns the command of a process. planc's binary reads Open MPI's variables itself.
func process(r *launcher.Run) string {
	if r.IsPlanc() {
		return launcher.Bash(r.Words()...)
	}
	return fmt.Sprintf("bash -c '%s' bash \\\n\t%s", rankVariables, launcher.Bash(r.Words()...))
}
