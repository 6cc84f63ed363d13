package launch

import (
	"fmt"
	"strconv"
	"strings"
)

// Launch is a process's place among those that run a program together.
type Launch struct {
	By        string // torchrun, srun, mpirun or --nnodes; "" for a process alone
	Processes int    // all of them
	Process   int    // this one's number
	Ranks     int    // of the program
	First     int    // this process's first rank
	Count     int    // how many ranks it has
	Local     int    // number of its first rank on the node
	Addr      string // host and port where process 0 is found; "" for a process alone
	Taken     string // who listens at MASTER_PORT, so that Addr is the port behind it
	Run       string // what tells this launch from others at the same place, before and after
	Here      bool   // Addr is what all processes were given: "localhost" in it is this machine alone
}

// Alone is the launch of one process.
func Alone(ranks int) *Launch { return &Launch{Processes: 1, Ranks: ranks, Count: ranks} }

// Flags are those of the command line, "" where they are not given. They are torchrun's.
type Flags struct{ Nodes, NodeRank, PerNode, Addr, Port string }

// Defaults of torchrun.
const (
	defaultAddr = "127.0.0.1"
	defaultPort = "29500"
)

// Resolve is the launch of a program of so many ranks. lookup is [os.LookupEnv]. Its error says which flags and
// variables are wrong, and what would be right; it is an [*Unobeyed] if a launcher says that there are several
// processes and no more.
func Resolve(f Flags, ranks int, lookup func(string) (string, bool)) (*Launch, error) {
	e := &env{lookup: lookup}
	flags := e.flags(f)
	found := e.launcher()
	switch {
	case found != nil && (f.Nodes != "" || f.NodeRank != "" || f.PerNode != ""):
		return nil, fmt.Errorf("--nnodes, --node-rank and --nproc-per-node are for processes that no launcher "+
			"starts, and %s=%s says that %s started this one; leave the flags out",
			found.sizeName, found.size, found.by)
	case found == nil && flags.Nodes == "":
		if f != (Flags{}) {
			return nil, fmt.Errorf("--node-rank, --nproc-per-node, --master-addr and --master-port want --nnodes, " +
				"the number of machines that the program is started on")
		}
		if err := e.unobeyed(); err != nil {
			return nil, err
		}
		return Alone(ranks), nil
	case found == nil:
		return flags.launch(ranks)
	}
	l, err := found.launch(ranks)
	if err != nil || l.Processes == 1 {
		return l, err
	}
	return l, found.meets(e, l, f)
}

// launch is one process a node.
func (f Flags) launch(ranks int) (*Launch, error) {
	n, err := count("--nnodes ", f.Nodes, 1)
	if err != nil {
		return nil, err
	}
	if n == 1 {
		return Alone(ranks), nil
	}
	if f.NodeRank == "" {
		return nil, fmt.Errorf("--nnodes %d: --node-rank says which of them this is, 0 to %d", n, n-1)
	}
	node, err := count("--node-rank ", f.NodeRank, 0)
	switch {
	case err != nil:
		return nil, err
	case node >= n:
		return nil, fmt.Errorf("--node-rank %d: of --nnodes %d the numbers are 0 to %d", node, n, n-1)
	case ranks%n != 0:
		return nil, fmt.Errorf("--nnodes %d: the program has %d ranks, as many on each node; compile it for a "+
			"multiple of %d", n, ranks, n)
	}
	l := &Launch{By: "--nnodes", Processes: n, Process: node, Ranks: ranks, First: node * (ranks / n),
		Count: ranks / n, Here: true}
	if f.PerNode != "" && f.PerNode != "auto" && f.PerNode != "gpu" {
		each, err := count("--nproc-per-node ", f.PerNode, 1)
		if err != nil {
			return nil, err
		}
		if each*n != ranks {
			return nil, fmt.Errorf("--nproc-per-node %d on --nnodes %d are %d ranks, and the program has %d; compile "+
				"it for %d devices, or leave --nproc-per-node out",
				each, n, each*n, ranks, each*n)
		}
	}
	if f.Addr == "" {
		return nil, fmt.Errorf("--nnodes %d: --master-addr says where node 0 is found", n)
	}
	l.Addr, err = place(f.Addr, or(f.Port, defaultPort), 0)
	return l, err
}

// count reads a number that is at least least. name is what stands before it: "--nnodes " or "RANK=".
func count(name, text string, least int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > 1<<20 {
		return 0, fmt.Errorf("%s%s: it is a number of at least %d", name, printable(text), least)
	}
	return n, nil
}

// place is host and port, so many behind the one that is named.
func place(host, port string, behind int) (string, error) {
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n+behind > 65535 {
		return "", fmt.Errorf("the master port is %s; a port is a number of 1 to 65535 (MASTER_PORT or --master-port)",
			port)
	}
	if strings.Contains(host, ":") { // an address of IPv6
		host = "[" + strings.Trim(host, "[]") + "]"
	}
	return fmt.Sprintf("%s:%d", host, n+behind), nil // package net would be in programs that do without
}

// or is the first text that says something.
func or(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
