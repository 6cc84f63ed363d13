// Package torchrun writes a bash script that starts a run with PyTorch's torchrun.
package torchrun

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/launcher"
)

// Format is the script. It is only exported.
var Format = interop.Format{
	Name:  "torchrun",
	Title: "a script that calls torchrun",
	Tool:  "torchrun",
	Write: write,
	Ext:   ".sh",
}

// write returns the script. On several nodes, MASTER_ADDR must name one of them; torchrun's rendezvous numbers the
// nodes.
func write(t *interop.Target) ([]byte, error) {
	r, err := launcher.New(t)
	if err != nil {
		return nil, err
	}
	if err := r.CheckProcesses("torchrun"); err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("#!/bin/bash\n" + r.BashComments())
	if r.Nodes == 1 {
		command := r.TorchrunLine("", "--standalone", fmt.Sprintf("--nproc-per-node=%d", r.Devices))
		fmt.Fprintf(&b, "exec %s\n", command)
		return []byte(b.String()), nil
	}
	fmt.Fprintf(&b, "# Start this script on each of the %d nodes, with MASTER_ADDR set to the name of one of them.\n",
		r.Nodes)
	command := r.TorchrunLine(`--rdzv-endpoint="$MASTER_ADDR:29400"`, "--rdzv-id="+r.Name, "--rdzv-backend=c10d",
		fmt.Sprintf("--nnodes=%d", r.Nodes), fmt.Sprintf("--nproc-per-node=%d", r.Devices))
	fmt.Fprintf(&b, ": \"${MASTER_ADDR:?must be the name of one of the nodes}\"\nexec %s\n", command)
	return []byte(b.String()), nil
}
