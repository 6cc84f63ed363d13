package launch

import (
	"fmt"
	"strconv"
	"strings"
)

// Launch is the position of a process among those that run a program together.
type Launch struct {
	By         string // torchrun, srun, mpirun or --nnodes; "" for a process alone
	Processes  int    // number of processes
	Process    int    // number of this process
	Ranks      int    // number of ranks of the program
	First      int    // this process's first rank
	Count      int    // number of ranks of this process
	Local      int    // number of its first rank within the node
	Addr       string // host and port of process 0; "" for a process alone
	PortUser   string // what listens at MASTER_PORT, if Addr is the port after it
	Run        string // distinguishes this launch from earlier and later ones at the same address
	SharedAddr bool   // all processes were given Addr, so that "localhost" in it means this machine
}

// Alone returns the launch of a single process.
func Alone(ranks int) *Launch { return &Launch{Processes: 1, Ranks: ranks, Count: ranks} }

// Flags holds the command line's flags, which are torchrun's. A flag that is not given is "".
type Flags struct{ Nodes, NodeRank, PerNode, Addr, Port string }

// Defaults of torchrun.
const (
	defaultAddr = "127.0.0.1"
	defaultPort = "29500"
)

// Resolve returns the launch for a program with a number of ranks. lookup is [os.LookupEnv]. Its error says which flags
// and variables are wrong and what is allowed. It is an [*UnsupportedLauncher] if a launcher says only that there are
// several processes.
func Resolve(f Flags, ranks int, lookup func(string) (string, bool)) (*Launch, error) {
	e := &env{lookup: lookup}
	flags := e.flags(f)
	found := e.launcher()
	switch {
	case found != nil && (f.Nodes != "" || f.NodeRank != "" || f.PerNode != ""):
		return nil, fmt.Errorf("--nnodes, --node-rank and --nproc-per-node are only for processes that no launcher "+
			"starts, but %s=%s says that %s started this one; leave the flags out",
			found.sizeName, found.size, found.by)
	case found == nil && flags.Nodes == "":
		if f != (Flags{}) {
			return nil, fmt.Errorf("--node-rank, --nproc-per-node, --master-addr and --master-port need --nnodes, " +
				"the number of machines that the program is started on")
		}
		if err := e.unsupported(); err != nil {
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
	return l, found.findAddr(e, l, f)
}

// launch returns the launch with one process per node.
func (f Flags) launch(ranks int) (*Launch, error) {
	n, err := count("--nnodes ", f.Nodes, 1)
	if err != nil {
		return nil, err
	}
	if n == 1 {
		return Alone(ranks), nil
	}
	if f.NodeRank == "" {
		return nil, fmt.Errorf("--nnodes %d: set --node-rank to the number of this machine, 0 to %d", n, n-1)
	}
	node, err := count("--node-rank ", f.NodeRank, 0)
	switch {
	case err != nil:
		return nil, err
	case node >= n:
		return nil, fmt.Errorf("--node-rank %d: with --nnodes %d it must be from 0 to %d", node, n, n-1)
	case ranks%n != 0:
		return nil, fmt.Errorf("--nnodes %d: the program's %d ranks cannot be divided evenly; compile it for a "+
			"multiple of %d", n, ranks, n)
	}
	l := &Launch{By: "--nnodes", Processes: n, Process: node, Ranks: ranks, First: node * (ranks / n),
		Count: ranks / n, SharedAddr: true}
	if f.PerNode != "" && f.PerNode != "auto" && f.PerNode != "gpu" {
		each, err := count("--nproc-per-node ", f.PerNode, 1)
		if err != nil {
			return nil, err
		}
		if each*n != ranks {
			return nil, fmt.Errorf("--nproc-per-node %d on --nnodes %d are %d ranks, but the program has %d; compile "+
				"it for %d devices, or leave --nproc-per-node out",
				each, n, each*n, ranks, each*n)
		}
	}
	if f.Addr == "" {
		return nil, fmt.Errorf("--nnodes %d: set --master-addr to the address of machine 0", n)
	}
	l.Addr, err = address(f.Addr, firstNonEmpty(f.Port, defaultPort), 0)
	return l, err
}

// count parses a number of at least least. name is its prefix in messages: "--nnodes " or "RANK=".
func count(name, text string, least int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > 1<<20 {
		return 0, fmt.Errorf("%s%s: must be a number of at least %d", name, printable(text), least)
	}
	return n, nil
}

// address returns host:port, with a port number that is behind ports after the given one.
func address(host, port string, behind int) (string, error) {
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n+behind > 65535 {
		return "", fmt.Errorf("the master port is %s; it must be a number from 1 to 65535 (MASTER_PORT or "+
			"--master-port)",
			port)
	}
	if strings.Contains(host, ":") { // an address of IPv6
		host = "[" + strings.Trim(host, "[]") + "]"
	}
	return fmt.Sprintf("%s:%d", host, n+behind), nil // without package net, which CPU programs do not link
}

// firstNonEmpty returns the first text that is not empty.
func firstNonEmpty(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
