package migrate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir/spec"
)

// Files that say a number of nodes and not the devices of one train on all devices of so many nodes, with a note.
func TestNodesWithoutDevicesAreWholeNodes(t *testing.T) {
	const end = ": planc takes all 8 devices of each node; if the run uses fewer, give --nodes "
	const program = " pretrain_gpt.py --num-layers 8 --micro-batch-size 1 --global-batch-size 64\n"
	for _, c := range []struct {
		file  string
		data  string
		nodes int
		note  string
	}{
		{"la.yaml", "trainer:\n  num_nodes: 2\n  devices: auto\n  strategy: fsdp\n", 2,
			"la.yaml:2:14: trainer.num_nodes is 2, and trainer.devices is auto" + end + "2 --devices N"},
		{"la.yaml", "trainer:\n  num_nodes: 2\n  devices: -1\n  strategy: fsdp\n", 2,
			"la.yaml:2:14: trainer.num_nodes is 2, and trainer.devices is -1" + end + "2 --devices N"},
		{"la.yaml", "trainer:\n  num_nodes: 2\n  strategy: fsdp\n", 2,
			"la.yaml:2:14: trainer.num_nodes is 2, and trainer.devices is missing" + end + "2 --devices N"},
		{"accelerate.yaml", "distributed_type: MULTI_GPU\nnum_machines: 2\n", 2,
			"accelerate.yaml:2:15: num_machines is 2, and num_processes is missing" + end + "2 --devices N"},
		{"accelerate.yaml", "distributed_type: MULTI_GPU\nnum_machines: 2\nnum_processes: -1\n", 2,
			"accelerate.yaml:2:15: num_machines is 2, and num_processes is -1" + end + "2 --devices N"},
		{"run.sh", "torchrun --nnodes 4" + program, 4, "run.sh:1:10: --nnodes is 4, and torchrun starts 1 process on " +
			"each node without --nproc_per_node" + end + "4 --devices N"},
		{"run.sh", "torchrun --nnodes 4 --nproc_per_node gpu" + program, 4,
			"run.sh:1:10: --nnodes is 4, and --nproc_per_node is gpu" + end + "4 --devices N"},
		{"run.sh", "torchrun --nnodes 4 --nproc_per_node ${GPUS}" + program, 4,
			"run.sh:1:10: --nnodes is 4, and the value of --nproc_per_node is not in the script" + end +
				"4 --devices N"},
		{"run.sh", "torchrun --nnodes 4 --nproc_per_node $(nvidia-smi -L | wc -l)" + program, 4,
			"run.sh:1:10: --nnodes is 4, and the value of --nproc_per_node is not in the script" + end +
				"4 --devices N"},
		{"run.sh", "srun -N 4 python" + program, 4,
			"run.sh:1:6: -N is 4, and no option says the processes of a node" + end + "4 --devices N"},
		{"swift.sh", "NNODES=2 megatron sft --micro_batch_size 1 --global_batch_size 32 --max_length 4096\n", 2,
			"swift.sh:1:10: NNODES is 2, and NPROC_PER_NODE is not in the script" + end + "2 --devices N"},
	} {
		s, err := ReadFor([]interop.File{{Name: c.file, Data: []byte(c.data)}}, "", interop.Options{}, noFiles,
			[]spec.Override{spec.SetFlag("cluster.node=dgx-h100")})
		if err != nil {
			t.Errorf("%s: %v", c.data, err)
			continue
		}
		if s.Devices != 8*c.nodes || s.DevicesPerNode != 8 {
			t.Errorf("%s: %d devices, %d of a node", c.data, s.Devices, s.DevicesPerNode)
		}
		var got []string
		for _, n := range s.Notes {
			got = append(got, n.String())
		}
		if diff := cmp.Diff([]string{c.note}, got); diff != "" {
			t.Errorf("%s: %s", c.data, diff)
		}
	}
}

// A script that starts a configuration says the number of nodes, too; numbers that the user gives replace it.
func TestNodesOfAStarter(t *testing.T) {
	files := []interop.File{{Name: "run.sh", Data: []byte("torchrun --nnodes=2 train.py --deepspeed ds.json\n")},
		{Name: "ds.json", Data: []byte(`{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}}`)}}
	for cluster, want := range map[string]int{"cluster.node=dgx-h100": 16, "cluster=4xdgx-h100": 0} {
		s, err := ReadFor(files, "", interop.Options{}, noFiles, []spec.Override{spec.SetFlag(cluster)})
		if err != nil {
			t.Fatal(err)
		}
		if s.Devices != want {
			t.Errorf("%s: the files say %d devices; want %d", cluster, s.Devices, want)
		}
	}
}

// The key that says the number of machines is used, and no number replaces it that nobody gave.
func TestMachinesWithoutProcessesAreTaken(t *testing.T) {
	file := interop.File{Name: "accelerate.yaml", Data: []byte("distributed_type: MULTI_GPU\nnum_machines: 2\n")}
	s, err := ReadFor([]interop.File{file}, "", interop.Options{}, noFiles,
		[]spec.Override{spec.SetFlag("cluster.node=dgx-h100")})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range s.Keys {
		if k.Name == "num_machines" && (k.Use != interop.Taken || k.Note != "") {
			t.Errorf("num_machines: %s, %q", k.Use, k.Note)
		}
	}
}

// A script of a configuration whose lines end in CR LF is refused, and not taken for a file of another training.
func TestWindowsLinesOfAStarter(t *testing.T) {
	files := []interop.File{{Name: "run.sh", Data: []byte("torchrun train.py --deepspeed ds.json\r\n")},
		{Name: "ds.json", Data: []byte(`{"train_micro_batch_size_per_gpu": 1}`)}}
	const want = "run.sh:1:38: this line ends in CR LF, as on Windows, and bash takes the CR as a part of the " +
		`command: remove it from all lines with sed -i 's/\r$//' run.sh [BadScript]`
	for _, given := range [][]interop.File{files, files[:1]} {
		_, err := Read(given, "", interop.Options{})
		if err == nil || err.Error() != want {
			t.Errorf("%d files: %v", len(given), err)
		}
	}
}

// An export notes that the user's script starts another number of devices than the job has, and keeps its own. Formats
// whose keys say the number get the job's.
func TestExportNotesOtherNodes(t *testing.T) {
	const end = ", and the job has 2 × 8: the plan is that of the job, and the file keeps its own"
	const program = " pretrain_gpt.py --num-layers 8 --micro-batch-size 1 --global-batch-size 128\n"
	const toml = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\n"
	for _, c := range []struct{ format, name, data, other, want string }{
		{"megatron", "run.sh", "torchrun --nnodes 4 --nproc_per_node 8" + program, "",
			"run.sh starts 4 × 8 devices" + end},
		{"megatron", "run.sh", "NNODES=${SLURM_NNODES:-4}\ntorchrun --nnodes $NNODES --nproc_per_node 8" + program, "",
			"run.sh starts 4 × 8 devices" + end},
		{"megatron", "run.sh", "#SBATCH --nodes=4\nsrun torchrun --nnodes $SLURM_NNODES" + program, "",
			"run.sh starts 4 × 8 devices" + end},
		{"megatron", "run.sh", "torchrun --nnodes 2 --nproc_per_node 8" + program, "", ""},
		{"megatron", "run.sh", "torchrun --nnodes $NNODES" + program, "", ""},
		{"swift", "run.sh", "NNODES=4 NPROC_PER_NODE=8 megatron sft --micro_batch_size 1 --global_batch_size 128\n", "",
			"run.sh starts 4 × 8 devices" + end},
		{"torchtitan", "job.toml", toml, "torchrun --nnodes=4 --nproc_per_node=8 -m torchtitan.train " +
			"--job.config_file job.toml\n", "start.sh starts 4 × 8 devices" + end},
		{"torchtitan", "job.toml", toml, "", ""},
		{"lightning", "la.yaml", "trainer:\n  num_nodes: 4\n  devices: auto\n  strategy: fsdp\n", "", ""},
		{"accelerate", "acc.yaml", "distributed_type: FSDP\nnum_machines: 4\nnum_processes: 32\n", "", ""},
	} {
		f, err := FormatOf(c.format)
		if err != nil {
			t.Fatal(err)
		}
		files := []interop.File{{Name: c.name, Data: []byte(c.data)}}
		if c.other != "" {
			files = append(files, interop.File{Name: "start.sh", Data: []byte(c.other)})
		}
		q := question(t, "cluster.nodes=2", "train.global_batch=128", "train.engine="+f.Engine)
		s, err := readLike(f, q, files, interop.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.data, err)
			continue
		}
		if got := strings.Join(otherNodes(s, q, decide(t, q)), "\n"); got != c.want {
			t.Errorf("%s: %q", c.data, got)
		}
	}
}

// A script that does not say its devices gets a note that one node is taken, unless flags say the number.
func TestOneNodeIsNoted(t *testing.T) {
	const program = "pretrain_gpt.py --num-layers 8 --micro-batch-size 1 --global-batch-size 64\n"
	const assumed = ": planc takes one node with 8; if the run uses another number, give --nodes N"
	for _, c := range []struct{ script, sets, note string }{
		{"python " + program, "cluster.node=dgx-h100",
			"run.sh:1:1: the number of devices is not in the file" + assumed},
		{"torchrun --nproc_per_node $GPUS --nnodes $NODES " + program, "cluster.node=dgx-h100",
			"run.sh:1:1: the number of devices is not in the file (--nproc_per_node and --nnodes have no value here)" +
				assumed},
		{"torchrun --nproc_per_node 8 --nnodes $NODES " + program, "cluster.node=dgx-h100", "run.sh:1:1: the number " +
			"of devices is not in the file (--nnodes has no value here)" + assumed},
		{"torchrun --nproc_per_node 8 " + program, "cluster.node=dgx-h100", ""},
		{"python " + program, "cluster=2xdgx-h100", ""},
	} {
		s, err := ReadFor([]interop.File{{Name: "run.sh", Data: []byte(c.script)}}, "", interop.Options{}, noFiles,
			overrides(c.sets))
		if err != nil {
			t.Errorf("%s: %v", c.script, err)
			continue
		}
		note := ""
		for _, n := range s.Notes {
			note += n.String()
		}
		if note != c.note {
			t.Errorf("%s:\n%q, want\n%q", c.script, note, c.note)
		}
	}
}

// --set cluster=NAME says the kind of node, as --cluster does: the number of devices is the file's.
func TestClusterKeepsTheDevicesOfTheFile(t *testing.T) {
	for _, c := range []struct {
		set   string
		nodes int
	}{{"cluster=dgx-h100", 2}, {"cluster.node=dgx-h100", 2}, {"cluster=4xdgx-h100", 4},
		{"cluster={node: dgx-h100, nodes: 3}", 3}} {
		s := source(t, strings.Replace(text, "devices = 8", "devices = 16", 1))
		q, err := s.Question(noFiles, overrides(c.set)...)
		if err != nil {
			t.Fatal(err)
		}
		if q.Hardware.Nodes != c.nodes {
			t.Errorf("%s: %d nodes, want %d", c.set, q.Hardware.Nodes, c.nodes)
		}
	}
}
