package launch

import (
	"cmp"
	"fmt"
)

// launcher is a program that starts processes, and the variables that it sets. Of several names, the first that is set
// counts.
type launcher struct {
	by                           string
	size, rank, local, localSize []string // number of processes, and position of this one
	run                          []string // together they identify a launch and its attempt
}

// launchers is in order of priority: a launcher that runs inside another comes first. Open MPI's
// OMPI_COMM_WORLD_NODE_RANK is not a node number. srun's variables are those of a step, because in a batch script the
// job's variables are set although nothing was launched.
var launchers = []launcher{
	{"torchrun", []string{"WORLD_SIZE"}, []string{"RANK"}, []string{"LOCAL_RANK"}, []string{"LOCAL_WORLD_SIZE"},
		[]string{"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
	{"mpirun", []string{"OMPI_COMM_WORLD_SIZE"}, []string{"OMPI_COMM_WORLD_RANK"},
		[]string{"OMPI_COMM_WORLD_LOCAL_RANK"}, []string{"OMPI_COMM_WORLD_LOCAL_SIZE"},
		[]string{"PMIX_NAMESPACE"}},
	{"srun", []string{"SLURM_STEP_NUM_TASKS"}, []string{"SLURM_PROCID"}, []string{"SLURM_LOCALID"},
		[]string{"SLURM_STEP_TASKS_PER_NODE"},
		[]string{"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"}},
	{"mpirun", []string{"PMI_SIZE"}, []string{"PMI_RANK", "PMIX_RANK"}, []string{"MPI_LOCALRANKID", "PMI_LOCAL_RANK"},
		[]string{"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"}, nil},
}

// LauncherVariable returns the variable by which a launcher says that it has started several processes, with its
// launcher: "WORLD_SIZE=8 (torchrun)"; "" if there is none.
func LauncherVariable(lookup func(string) (string, bool)) string {
	f := (&env{lookup: lookup}).launcher()
	if f == nil {
		return ""
	}
	return fmt.Sprintf("%s=%s (%s)", f.sizeName, printable(f.size), f.by)
}

// env is the environment.
type env struct{ lookup func(string) (string, bool) }

// get returns the first of some variables that is set, and its name.
func (e *env) get(names ...string) (value, name string) {
	for _, n := range names {
		if v, ok := e.lookup(n); ok && v != "" {
			return v, n
		}
	}
	return "", ""
}

func (e *env) value(names ...string) string {
	v, _ := e.get(names...)
	return v
}

// flags completes the command line's flags from PET_ variables, as torchrun does. Kubeflow's trainer sets them.
func (e *env) flags(f Flags) Flags {
	f.Nodes = firstNonEmpty(f.Nodes, e.value("PET_NNODES"))
	if f.Nodes == "" {
		return f
	}
	return Flags{f.Nodes, firstNonEmpty(f.NodeRank, e.value("PET_NODE_RANK")), firstNonEmpty(f.PerNode,
		e.value("PET_NPROC_PER_NODE")),
		firstNonEmpty(f.Addr, e.value("PET_MASTER_ADDR", "MASTER_ADDR")), firstNonEmpty(f.Port,
			e.value("PET_MASTER_PORT", "MASTER_PORT"))}
}

// launcherEnv is a launcher that has started this process, with the values of its variables.
type launcherEnv struct {
	*launcher
	by, size, sizeName, rank, rankName, local, localName, localSize, run string
}

// launcher returns the launcher of this process; nil if there is none.
func (e *env) launcher() *launcherEnv {
	for i := range launchers {
		l := &launchers[i]
		f := &launcherEnv{launcher: l, by: l.by}
		f.size, f.sizeName = e.get(l.size...)
		if f.size == "" || f.size == "1" {
			continue
		}
		f.rank, f.rankName = e.get(l.rank...)
		f.local, f.localName = e.get(l.local...)
		f.localSize = e.value(l.localSize...)
		for _, name := range l.run {
			f.run += e.value(name) + " "
		}
		return f
	}
	return nil
}

// launch returns the process's position.
func (f *launcherEnv) launch(ranks int) (*Launch, error) {
	n, err := count(f.sizeName+"=", f.size, 1)
	if err != nil {
		return nil, err
	}
	if f.rank == "" {
		return nil, fmt.Errorf("%s=%s says that %s has started %d processes, but %s, the number of "+
			"this one, is not set",
			f.sizeName, f.size, f.by, n, f.launcher.rank[0])
	}
	process, err := count(f.rankName+"=", f.rank, 0)
	if err != nil {
		return nil, err
	}
	if process >= n {
		return nil, fmt.Errorf("%s=%d, but with %s=%d it must be from 0 to %d", f.rankName, process,
			f.sizeName, n, n-1)
	}
	local := 0
	if f.local != "" {
		local, err = count(f.localName+"=", f.local, 0)
		if err != nil {
			return nil, err
		}
	}
	each := ranks / n
	switch {
	case n*each != ranks || each > 1 && !f.oneANode(local):
		return nil, fmt.Errorf("%s=%d, by %s: it has started %d processes, but the program has %d ranks; start "+
			"%[5]d, one for each rank, or one on each node, "+
			"or compile the program for %[2]d devices", f.sizeName, n, f.by, n, ranks)
	case each > 1:
		local = 0
	}
	return &Launch{By: f.by, Processes: n, Process: process, Ranks: ranks, First: process * each, Count: each,
		Local: local, Run: f.run}, nil
}

// oneANode reports whether each node has one process, as far as the launcher says.
func (f *launcherEnv) oneANode(local int) bool {
	// SLURM: 1(x4)
	return local == 0 && (f.localSize == "" || f.localSize == "1" || len(f.localSize) > 2 && f.localSize[:2] == "1(")
}

// findAddr sets the address of process 0.
func (f *launcherEnv) findAddr(e *env, l *Launch, flags Flags) (err error) {
	host, port, behind := firstNonEmpty(flags.Addr, e.value("MASTER_ADDR")), firstNonEmpty(flags.Port,
		e.value("MASTER_PORT")), 0
	if flags.Port == "" && e.value("TORCHELASTIC_USE_AGENT_STORE") == "True" {
		behind, l.PortUser = 1, "torchrun's own store"
	}
	l.SharedAddr = flags.Addr != "" || f.localSize == f.size // PyTorchJob gives localhost to process 0 alone
	switch {
	case host != "":
	case f.by == "srun":
		list := e.value("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
		host = firstHost(list)
		if host == "" {
			return fmt.Errorf("SLURM_STEP_NODELIST=%s names no node; set MASTER_ADDR to the address of process 0", list)
		}
	case f.localSize == f.size:
		host = defaultAddr
	default:
		return fmt.Errorf("%s does not say where process 0 runs; set MASTER_ADDR to its node (%s)", f.by,
			f.example())
	}
	if port == "" && f.by == "srun" {
		port = slurmPort(e.value("SLURM_JOB_ID", "SLURM_JOBID"))
	}
	l.Addr, err = address(host, cmp.Or(port, defaultPort), behind)
	return err
}

// example shows how to pass a variable through the launcher.
func (f *launcherEnv) example() string {
	if f.sizeName == "OMPI_COMM_WORLD_SIZE" {
		return "mpirun -x MASTER_ADDR=HOST"
	}
	return "or start with --master-addr HOST"
}
