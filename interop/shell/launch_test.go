package shell

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Slurm sets variables for all options of an #SBATCH line. Options that count GPUs may name their type.
func TestDirectives(t *testing.T) {
	source := "#!/bin/bash\n#SBATCH --nodes=4 --ntasks-per-node 8\n# a comment\n#SBATCH --gres=gpu:h100:8\n" +
		"#SBATCH --gpus-per-node=a100:4 --time=1:00:00\n#SBATCH --gres=gpu:2\nsrun python train.py\n" +
		"#SBATCH --nodes=1\n"
	got := map[string]string{}
	for _, d := range Directives([]byte(source)) {
		got[d.Name] += d.Value + ";"
	}
	want := map[string]string{"--nodes": "4;", "--ntasks-per-node": "8;", "--gres": "8;2;", "--gpus-per-node": "4;"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// If the number of nodes is not known, the processes of a node say nothing about the number of devices.
func TestUnknownNodes(t *testing.T) {
	for _, line := range []string{"srun -N $NODES --ntasks-per-node 8 python train.py",
		"torchrun --nnodes $NODES --nproc_per_node 8 train.py", "mpirun -np $TASKS -N 8 python train.py"} {
		launches := Eval("run.sh", []byte(line), nil).Launches()
		if len(launches) != 1 || launches[0].Total != 0 || launches[0].PerNode != 8 {
			t.Errorf("%s: %+v, want 8 processes of a node and no total", line, launches)
		}
	}
}
