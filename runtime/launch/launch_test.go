package launch

import (
	"strings"
	"testing"
)

func lookupIn(text string) func(string) (string, bool) {
	m := map[string]string{}
	for _, f := range strings.Fields(text) {
		name, value, _ := strings.Cut(f, "=")
		m[name] = value
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

// What launchers set, as they set it, and what it means for a program.
func TestResolve(t *testing.T) {
	torchrun := "LOCAL_RANK=1 RANK=5 WORLD_SIZE=8 LOCAL_WORLD_SIZE=4 GROUP_RANK=1 MASTER_ADDR=h0 MASTER_PORT=1234 " +
		"TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=2"
	slurm := "SLURM_JOB_ID=9123456 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=3 SLURM_LOCALID=1 " +
		"SLURM_NODEID=1 SLURM_STEP_NODELIST=gpu[03-04]"
	for _, c := range []struct {
		name, env string
		flags     Flags
		ranks     int
		want      Launch
	}{
		{"alone", "", Flags{}, 8, Launch{Processes: 1, Ranks: 8, Count: 8}},
		{"one process", "WORLD_SIZE=1 RANK=0", Flags{}, 8, Launch{Processes: 1, Ranks: 8, Count: 8}},
		{"a batch script", "SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_JOB_ID=3", Flags{}, 8, Launch{Processes: 1,
			Ranks: 8, Count: 8}},
		{"torchrun", torchrun, Flags{}, 8, Launch{"torchrun", 8, 5, 8, 5, 1, 1, "h0:1234", "", "none 2 ", false}},
		{"its store has the port", torchrun + " TORCHELASTIC_USE_AGENT_STORE=True", Flags{}, 8, Launch{"torchrun", 8,
			5, 8, 5, 1, 1, "h0:1235", "torchrun's own store", "none 2 ", false}},
		{"a port by hand", torchrun + " TORCHELASTIC_USE_AGENT_STORE=True", Flags{Port: "77"}, 8, Launch{"torchrun", 8,
			5, 8, 5, 1, 1, "h0:77", "", "none 2 ", false}},
		{"within srun", torchrun + " " + slurm, Flags{}, 8, Launch{"torchrun", 8, 5, 8, 5, 1, 1, "h0:1234", "",
			"none 2 ", false}},
		{"one a node", "RANK=1 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=h0", Flags{}, 16,
			Launch{"torchrun", 2, 1, 16, 8, 8, 0, "h0:29500", "", "  ", false}},
		{"all on one machine", "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost", Flags{}, 2,
			Launch{"torchrun", 2, 1, 2, 1, 1, 1, "localhost:29500", "", "  ", true}},
		{"PyTorchJob", "RANK=1 WORLD_SIZE=2 MASTER_ADDR=h0 MASTER_PORT=23456", Flags{}, 16, Launch{"torchrun", 2, 1,
			16, 8, 8, 0, "h0:23456", "", "  ", false}},
		{"srun", slurm, Flags{}, 4, Launch{"srun", 4, 3, 4, 3, 1, 1, "gpu03:18456", "", "9123456 0  ", false}},
		{"srun, one a node", "SLURM_JOB_ID=12 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 SLURM_LOCALID=0 " +
			"SLURM_STEP_TASKS_PER_NODE=1(x2) SLURM_STEP_NODELIST=a,b[1-2]", Flags{}, 8,
			Launch{"srun", 2, 1, 8, 4, 4, 0, "a:15012", "", "12   ", false}},
		{"mpirun", "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_LOCAL_RANK=1 " +
			"OMPI_COMM_WORLD_LOCAL_SIZE=2", Flags{}, 2,
			Launch{"mpirun", 2, 1, 2, 1, 1, 1, "127.0.0.1:29500", "", " ", true}},
		{"Intel MPI", "PMI_SIZE=2 PMI_RANK=1 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=1 MASTER_ADDR=x", Flags{}, 2,
			Launch{"mpirun", 2, 1, 2, 1, 1, 1, "x:29500", "", "", false}},
		{"flags", "", Flags{Nodes: "2", NodeRank: "1", Addr: "h0"}, 16, Launch{"--nnodes", 2, 1, 16, 8, 8, 0,
			"h0:29500", "", "", true}},
		{"an array of jobs", "SLURM_ARRAY_TASK_ID=3 SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_NODEID=0 LSB_JOBINDEX=2",
			Flags{}, 8, Launch{Processes: 1, Ranks: 8, Count: 8}},
		{"one pod", "JOB_COMPLETION_INDEX=0", Flags{Nodes: "1"}, 8, Launch{Processes: 1, Ranks: 8, Count: 8}},
		{"Kubeflow, one pod", "JOB_COMPLETION_INDEX=0 PET_NNODES=1 PET_NODE_RANK=0", Flags{}, 8, Launch{Processes: 1,
			Ranks: 8, Count: 8}},
		{"one of each", "LWS_GROUP_SIZE=1 LWS_WORKER_INDEX=0 FLUX_JOB_SIZE=1 FLUX_TASK_RANK=0 SM_HOSTS=[\"algo-1\"] " +
			"AWS_BATCH_JOB_NUM_NODES=1", Flags{}, 8, Launch{Processes: 1, Ranks: 8, Count: 8}},
		{"an indexed job, by flags", "JOB_COMPLETION_INDEX=1", Flags{Nodes: "2", NodeRank: "1", Addr: "h0"}, 16,
			Launch{"--nnodes", 2, 1, 16, 8, 8, 0, "h0:29500", "", "", true}},
		{"Kubeflow", "PET_NNODES=2 PET_NODE_RANK=1 PET_NPROC_PER_NODE=8 PET_MASTER_ADDR=h0 PET_MASTER_PORT=29400",
			Flags{}, 16, Launch{"--nnodes", 2, 1, 16, 8, 8, 0, "h0:29400", "", "", true}},
	} {
		got, err := Resolve(c.flags, c.ranks, lookupIn(c.env))
		if err != nil || *got != c.want {
			t.Errorf("%s: %+v, %v\nwant %+v", c.name, got, err, c.want)
		}
	}
}

// What contradicts itself or the program is refused, and named.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		env   string
		flags Flags
		want  string
	}{
		{"WORLD_SIZE=4 RANK=0 LOCAL_RANK=0 LOCAL_WORLD_SIZE=4 MASTER_ADDR=h", Flags{},
			"WORLD_SIZE=4, by torchrun: it has started 4 processes, but the program has 8 ranks; start 8,"},
		{"WORLD_SIZE=3 RANK=0 MASTER_ADDR=h", Flags{},
			"WORLD_SIZE=3, by torchrun: it has started 3 processes, but the program has 8 ranks"},
		{"WORLD_SIZE=16 RANK=0 MASTER_ADDR=h", Flags{}, "it has started 16 processes, but the program has 8 ranks"},
		{"WORLD_SIZE=8", Flags{}, "RANK, the number of this one, is not set"},
		{"WORLD_SIZE=8 RANK=8", Flags{}, "RANK=8, but with WORLD_SIZE=8 it must be from 0 to 7"},
		{"WORLD_SIZE=8 RANK=x", Flags{}, "RANK=x: must be a number"},
		{"WORLD_SIZE=8 RANK=1", Flags{}, "set MASTER_ADDR"},
		{"WORLD_SIZE=8 RANK=1 MASTER_ADDR=h MASTER_PORT=70000", Flags{}, "the master port is 70000"},
		{"WORLD_SIZE=8 RANK=1 MASTER_ADDR=h", Flags{Nodes: "2"}, "leave the flags out"},
		{"OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_RANK=1", Flags{}, "mpirun -x MASTER_ADDR=HOST"},
		{"", Flags{NodeRank: "1"}, "need --nnodes"},
		{"", Flags{Nodes: "2"}, "set --node-rank to the number"},
		{"", Flags{Nodes: "2", NodeRank: "2", Addr: "h"}, "--node-rank 2: with --nnodes 2 it must be from 0 to 1"},
		{"", Flags{Nodes: "3", NodeRank: "0", Addr: "h"}, "--nnodes 3: the program's 8 ranks"},
		{"", Flags{Nodes: "2", NodeRank: "0"}, "set --master-addr to the address"},
		{"", Flags{Nodes: "2", NodeRank: "0", PerNode: "8", Addr: "h"}, "are 16 ranks, but the program has 8"},
		{"", Flags{Nodes: "1:4", NodeRank: "0"}, "--nnodes 1:4: must be a number"},
	} {
		if l, err := Resolve(c.flags, 8, lookupIn(c.env)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: %+v, %v\nwant %s", c.env, c.flags, l, err, c.want)
		}
	}
}

func TestFirstHost(t *testing.T) {
	for list, want := range map[string]string{
		"a": "a", "a,b": "a", "n[01-04,7]": "n01", "n[3,5],m1": "n3", "x,n[1-2]": "x", "n[1-2]-ib": "n1-ib",
		"r[1-2]n[3-4]": "r1n3", "n[": "", "": "",
	} {
		if got := firstHost(list); got != want {
			t.Errorf("%s: %q, want %q", list, got, want)
		}
	}
}

// Each variable that says that this process is one of several is refused by its name if nothing else gives the launch,
// and the value that a process alone has is not.
func TestUnobeyed(t *testing.T) {
	many := map[evidence]string{size: "2", position: "1", index: "0",
		hosts: `{"cluster":{"worker":["a:1","b:1"]},"task":{"type":"worker","index":0}}`}
	one := map[evidence]string{size: "1", position: "0", hosts: `["algo-1"]`}
	for _, m := range markers {
		_, err := Resolve(Flags{}, 8, lookupIn(m.name+"="+many[m.says]))
		want := m.name + "=" + printable(many[m.says]) + " (" + m.by + ") says that this process is one of several"
		if err == nil || !strings.HasPrefix(err.Error(), want) || m.source == "" {
			t.Errorf("%s: %v\nwant %s", m.name, err, want)
		}
		if v, ok := one[m.says]; ok {
			if l, err := Resolve(Flags{}, 8, lookupIn(m.name+"="+v)); err != nil || *l != *Alone(8) {
				t.Errorf("%s=%s: %+v, %v", m.name, v, l, err)
			}
		}
	}
	// torchrun in each pod, of one node each
	_, err := Resolve(Flags{}, 8, lookupIn("WORLD_SIZE=1 RANK=0 JOB_COMPLETION_INDEX=3"))
	want := "JOB_COMPLETION_INDEX=3 (a Kubernetes Indexed Job) says that this process is one of several, but not how " +
		"many there are and where process 0 runs: " +
		"add --nnodes N --node-rank $JOB_COMPLETION_INDEX --master-addr HOST, or --nnodes 1 if this process is " +
		"the only one"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	if _, err := Resolve(Flags{}, 8, lookupIn("WORLD_SIZE=\x1b[2J")); err == nil ||
		strings.Contains(err.Error(), "\x1b") {
		t.Errorf("a terminal's escape is quoted raw: %q", err)
	}
}
