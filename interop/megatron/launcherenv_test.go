package megatron

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
)

// onFour are the numbers of --nodes 4 --devices 8.
var onFour = interop.Options{Nodes: 4, DevicesPerNode: 8, Devices: 32}

// trainer starts a program with a batch size.
const trainer = " pretrain_gpt.py --num-layers 8 --micro-batch-size 1 --global-batch-size "

// Variables that launchers set have the values that the user's numbers give, unless the user defines them.
func TestVariablesOfLaunchersFollowTheNumberOfNodes(t *testing.T) {
	defined := onFour
	defined.Define = map[string]string{"NNODES": "2"}
	for _, c := range []struct {
		name, script string
		o            interop.Options
		batch        string
		devices      int
	}{
		{"NNODES", "torchrun --nnodes $NNODES --nproc_per_node $GPUS_PER_NODE" + trainer +
			"$((NNODES*GPUS_PER_NODE))", onFour, "32", 32},
		{"a default", "NNODES=${NNODES:-1}\ntorchrun --nnodes $NNODES --nproc_per_node ${NPROC_PER_NODE:-2}" + trainer +
			"$((NNODES*2))", onFour, "8", 32},
		{"Slurm", "#SBATCH --nodes=2\nsrun -N $SLURM_NNODES python" + trainer + "$SLURM_NTASKS", onFour, "32", 0},
		{"WORLD_SIZE of torchrun", "torchrun --nproc_per_node 8" + trainer + "$((WORLD_SIZE*2))", onFour, "64", 8},
		{"WORLD_SIZE of Kubeflow", "NNODES=${WORLD_SIZE:-1}\ntorchrun --nnodes $NNODES --nproc_per_node 8" + trainer +
			"$((WORLD_SIZE*2))", onFour, "8", 32},
		{"a definition", "torchrun --nnodes $NNODES --nproc_per_node 8" + trainer + "$NNODES", defined, "2", 16},
		{"no numbers", "#SBATCH --nodes=2\ntorchrun --nnodes $SLURM_NNODES --nproc_per_node 8" + trainer +
			"$SLURM_NNODES", interop.Options{}, "2", 16},
	} {
		im, err := Import([]interop.File{textFile("run.sh", c.script)}, c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := values(im)["train.global_batch"]; got != c.batch || im.Devices != c.devices {
			t.Errorf("%s: batch %s, %d devices; want %s, %d", c.name, got, im.Devices, c.batch, c.devices)
		}
	}
}

// Numbers of a script that contradict the user's are noted once, each at its place.
func TestContradictoryNumbersAreNoted(t *testing.T) {
	one := interop.Options{Nodes: 1, DevicesPerNode: 1, Devices: 1}
	defined := onFour
	defined.Define = map[string]string{"NNODES": "2"}
	for _, c := range []struct {
		name, script string
		o            interop.Options
		want         []string
	}{
		{"an option", "torchrun --nnodes 2 --nproc_per_node 8" + trainer + "64", onFour,
			[]string{"run.sh:1:19: --nnodes is 2, and the command line of planc says 4 nodes: planc takes 4; change " +
				"the script, too"}},
		{"a variable", "NNODES=2\nWORLD_SIZE=$((NNODES*8))\ntorchrun --nnodes $NNODES --nproc_per_node 8" + trainer +
			"$WORLD_SIZE", onFour,
			[]string{"run.sh:1:8: NNODES is 2, and the command line of planc says 4 nodes: planc takes 4; change the " +
				"script, too", "run.sh:2:12: WORLD_SIZE is 16, and the command line of planc says 32 devices: planc " +
				"takes 32; change the script, too"}},
		{"a directive", "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gres=gpu:a100:4\nsrun python" + trainer + "64",
			onFour,
			[]string{"run.sh:2:1: #SBATCH --nodes is 2, and the command line of planc says 4 nodes: planc takes 4; " +
				"change the script, too", "run.sh:3:1: #SBATCH --gres is 4, and the command line of planc says 8 " +
				"devices per node: planc takes 8; change the script, too"}},
		{"one of each", "torchrun --nnodes 2 --nproc_per_node 8" + trainer + "64", one,
			[]string{"run.sh:1:19: --nnodes is 2, and the command line of planc says 1 node: planc takes 1; change " +
				"the script, too", "run.sh:1:38: --nproc_per_node is 8, and the command line of planc says 1 device " +
				"per node: planc takes 1; change the script, too"}},
		{"a definition", "torchrun --nnodes $NNODES --nproc_per_node 8" + trainer + "64", defined,
			[]string{"run.sh:1:19: --nnodes is 2, and the command line of planc says 4 nodes: planc takes 4; " +
				"change the script, too"}},
		{"the same", "NNODES=4\ntorchrun --nnodes $NNODES --nproc_per_node 8" + trainer + "64", onFour, nil},
		{"no numbers", "torchrun --nnodes 2 --nproc_per_node 8" + trainer + "64", interop.Options{}, nil},
	} {
		im, err := Import([]interop.File{textFile("run.sh", c.script)}, c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for _, n := range im.Notes {
			got = append(got, n.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		for _, k := range im.Keys {
			isReplaced := k.Note == "the command line of planc says 4 nodes"
			if k.Name == "--nnodes" && isReplaced != (strings.Join(got, "") != "" && c.o.Nodes == 4) && c.o.Nodes != 1 {
				t.Errorf("%s: %+v", c.name, k)
			}
		}
	}
}
