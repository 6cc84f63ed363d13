package shell

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// Launch is a command that starts a Python program on several devices.
type Launch struct {
	Command *Command
	// Nodes and PerNode are the nodes and the processes of each; 0 if the command does not say it. Total is the number
	// of processes.
	Nodes, PerNode, Total int
	// Program is the word of the program: a file that ends in .py, or a module after -m. Its index is Start-1.
	Program string
	// Start is the index of the first argument of the program.
	Start int
	// Options are the launchers' own options that say how many processes run.
	Options []LaunchOption
}

// LaunchOption is an option of a launcher: "--nnodes" of torchrun.
type LaunchOption struct {
	Name  string
	Value Word
	Pos   ir.Pos
	// Unknown is set if the value is needed and not known.
	Unknown *Unknown
	// Counts is what the value is the number of; Number is 0 if that is not known.
	Counts Counted
	Number int
}

// Counted is what an option or a variable of a launcher counts.
type Counted string

// All things that launchers count.
const (
	Nodes   Counted = "nodes"
	PerNode Counted = "devices per node"
	Total   Counted = "devices"
)

// launchNames maps the options of launchers to what they count. The values of all of them are numbers of processes or
// nodes. Options whose meaning differs between launchers are not in it.
var launchNames = map[string]Counted{
	"--nproc_per_node": PerNode, "--nproc-per-node": PerNode, "--ntasks-per-node": PerNode,
	"--gpus-per-node": PerNode, "--num_gpus": PerNode, "--tasks-per-node": PerNode,
	"--nnodes": Nodes, "--num_nodes": Nodes, "--nodes": Nodes, "--num_machines": Nodes,
	"--ntasks": Total, "--num_processes": Total,
}

// shortNames are single-dash options, by launcher.
var shortNames = map[string]map[string]Counted{
	"srun":   {"-N": Nodes, "-n": Total},
	"mpirun": {"-np": Total, "-n": Total, "-N": PerNode},
}

// Offset returns the byte offset of the command in the script; -1 if the command is not in the script.
func (l *Launch) Offset() int {
	for i := range l.Command.Words {
		w := &l.Command.Words[i]
		for j := range w.Pieces {
			if r := w.Pieces[j].via; r != nil {
				return r.span.Start
			}
			if w.Pieces[j].Span != (Span{}) {
				return w.Pieces[j].Span.Start
			}
		}
	}
	return -1
}

// Launches returns the commands that run a Python program.
func (s *Script) Launches() (out []Launch) {
	for i := range s.Commands {
		l := Launch{Command: &s.Commands[i]}
		if s.readLaunch(&l) {
			out = append(out, l)
		}
	}
	return out
}

// readLaunch reads a command up to the program's name. It returns false if the command runs no Python program.
func (s *Script) readLaunch(l *Launch) bool {
	words := l.Command.Words
	short := map[string]Counted{}
	for i := range words {
		text := words[i].Text()
		base := text[strings.LastIndexByte(text, '/')+1:]
		if names := shortNames[base]; names != nil {
			short = names
		}
		if strings.HasSuffix(text, ".py") || strings.HasSuffix(s.Shown(&words[i]), ".py") {
			l.Program, l.Start = s.Shown(&words[i]), i+1
			return l.count()
		}
		isModule := text == "-m" && i+1 < len(words) && !isLauncher(words[i+1].Text())
		if isModule && i > 0 {
			l.Program, l.Start = words[i+1].Text(), i+2
			return l.count()
		}
		s.readLaunchOption(l, i, short)
	}
	return false
}

// isLauncher reports whether a module starts other programs.
func isLauncher(module string) bool {
	return module == "torch.distributed.launch" || module == "torch.distributed.run" ||
		strings.HasPrefix(module, "accelerate")
}

// readLaunchOption reads the option at a word, if it counts processes.
func (s *Script) readLaunchOption(l *Launch, i int, short map[string]Counted) {
	words := l.Command.Words
	name, _, hasValue := strings.Cut(words[i].Text(), "=")
	if launchNames[name] == "" && short[name] == "" {
		return
	}
	o := LaunchOption{Name: name, Pos: s.Pos(&words[i]), Counts: cmp.Or(short[name], launchNames[name])}
	switch {
	case hasValue:
		o.Value = words[i].cut(len(name)+1, len(words[i].Text()))
	case i+1 < len(words):
		o.Value = words[i+1]
	default:
		return
	}
	o.Unknown = o.Value.Unknown()
	l.Options = append(l.Options, o)
}

// count sets the numbers of nodes and processes.
func (l *Launch) count() bool {
	for i := range l.Options {
		o := &l.Options[i]
		text := o.Value.Text()
		if _, largest, isRange := strings.Cut(text, ":"); isRange { // torchrun's --nnodes 1:4
			text = largest
		}
		n, err := strconv.Atoi(text)
		if o.Unknown != nil || err != nil || n < 1 {
			continue
		}
		o.Number = n
		switch o.Counts {
		case Nodes:
			l.Nodes = n
		case PerNode:
			l.PerNode = n
		case Total:
			l.Total = n
		}
	}
	switch {
	case l.Nodes > 0 && l.PerNode > 0:
		l.Total = l.Nodes * l.PerNode
	case l.PerNode > 0 && !l.hasOption(Total) && !l.hasOption(Nodes):
		l.Nodes, l.Total = 1, l.PerNode
	case l.Total > 0 && l.Nodes > 0 && l.Total%l.Nodes == 0:
		l.PerNode = l.Total / l.Nodes
	}
	return true
}

// hasOption reports whether an option of a kind is given, even if its value is not known.
func (l *Launch) hasOption(kind Counted) bool {
	return slices.ContainsFunc(l.Options, func(o LaunchOption) bool { return o.Counts == kind })
}

// Directive is an #SBATCH line of a script.
type Directive struct {
	Name, Value string // --nodes, 4
	Line        int
	Variables   []string // those that Slurm sets for it: SLURM_NNODES
}

// Directives returns the #SBATCH lines of a script for which Slurm sets variables.
func Directives(source []byte) (out []Directive) {
	number := 0
	for text := range bytes.Lines(source) {
		line := string(text)
		number++
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "#SBATCH")
		if !ok {
			if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
				continue
			}
			break // sbatch reads directives only in front of the first command
		}
		fields := strings.FieldsFunc(rest, func(r rune) bool { return r == ' ' || r == '=' || r == '\t' })
		for i := 1; i < len(fields); i++ {
			name, value := fields[i-1], fields[i]
			if directiveNames[name] != nil {
				out = append(out, Directive{name, gpuCount(name, value), number, directiveNames[name]})
			}
		}
	}
	return out
}

// gpuCount returns the number of GPUs in the value of an option that counts GPUs by their type: 8 of gpu:8, gpu:a100:8
// and a100:8. Values of other options stay.
func gpuCount(name, value string) string {
	if name == "--gres" && strings.HasPrefix(value, "gpu:") || name == "--gpus-per-node" {
		return value[strings.LastIndexByte(value, ':')+1:]
	}
	return value
}

// directiveNames are the variables that Slurm sets for each directive.
var directiveNames = map[string][]string{
	"--nodes": {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}, "-N": {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"},
	"--ntasks-per-node": {"SLURM_NTASKS_PER_NODE"},
	"--gpus-per-node":   {"SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"},
	"--gres":            {"SLURM_GPUS_ON_NODE"},
	"--ntasks":          {"SLURM_NTASKS", "SLURM_NPROCS"}, "-n": {"SLURM_NTASKS", "SLURM_NPROCS"},
}
