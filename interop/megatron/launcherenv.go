package megatron

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/shell"
	"github.com/planc-dev/planc/ir"
)

// launcherVariables are what launchers and their users set for a script, and what each counts. torchrun, Slurm and
// Kubeflow set the first of each line; the others are names that scripts take from their environment.
var launcherVariables = map[string]shell.Counted{
	"PET_NNODES": shell.Nodes, "SLURM_NNODES": shell.Nodes, "SLURM_JOB_NUM_NODES": shell.Nodes,
	"NNODES": shell.Nodes, "NODES": shell.Nodes, "NUM_NODES": shell.Nodes, "N_NODES": shell.Nodes,

	"PET_NPROC_PER_NODE": shell.PerNode, "LOCAL_WORLD_SIZE": shell.PerNode, "SLURM_GPUS_ON_NODE": shell.PerNode,
	"SLURM_GPUS_PER_NODE": shell.PerNode, "SLURM_NTASKS_PER_NODE": shell.PerNode,
	"GPUS_PER_NODE": shell.PerNode, "NPROC_PER_NODE": shell.PerNode, "NUM_GPUS_PER_NODE": shell.PerNode,

	worldSize: shell.Total, "SLURM_NTASKS": shell.Total, "SLURM_NPROCS": shell.Total,
}

// worldSize is the number of processes for torchrun, and the number of nodes for Kubeflow's PyTorchJob.
const worldSize = "WORLD_SIZE"

// launcherEnv has the variables that a script has from its launcher.
type launcherEnv struct {
	directives []shell.Directive
	options    interop.Options
	counts     map[shell.Counted]int // that the user gives; 0 if they are not given
}

func newLauncherEnv(script []byte, o interop.Options) *launcherEnv {
	l := &launcherEnv{directives: shell.Directives(script), options: o, counts: map[shell.Counted]int{}}
	if o.Nodes > 0 && o.DevicesPerNode > 0 {
		l.counts = map[shell.Counted]int{shell.Nodes: o.Nodes, shell.PerNode: o.DevicesPerNode,
			shell.Total: o.Nodes * o.DevicesPerNode}
	}
	return l
}

// define returns the variables of the script: those that the user defines, those that follow from the numbers that the
// user gives, and those of the #SBATCH lines. isKubeflow says that WORLD_SIZE is the number of nodes.
func (l *launcherEnv) define(isKubeflow bool) map[string]string {
	out := l.own()
	for name, kind := range launcherVariables {
		if isKubeflow && name == worldSize {
			kind = shell.Nodes
		}
		if n := l.counts[kind]; n > 0 {
			out[name] = strconv.Itoa(n)
		}
	}
	maps.Copy(out, l.options.Define)
	return out
}

// own returns the variables that the #SBATCH lines and the user's definitions give.
func (l *launcherEnv) own() map[string]string {
	out := map[string]string{}
	for _, d := range l.directives {
		for _, name := range d.Variables {
			out[name] = d.Value
		}
	}
	maps.Copy(out, l.options.Define)
	return out
}

// isNodesForTotal reports whether a script takes WORLD_SIZE for the number of nodes: with the number of devices in it,
// the launcher starts as many nodes.
func (l *launcherEnv) isNodesForTotal(src *source) bool {
	_, isDefined := l.options.Define[worldSize]
	nodes, total := l.counts[shell.Nodes], l.counts[shell.Total]
	return src.launcher != nil && !isDefined && nodes != total && src.launcher.Nodes == total
}

// compare notes what in a script contradicts the numbers that the user gives.
func (l *launcherEnv) compare(src *source, file string) {
	for _, d := range l.directives {
		l.note(src, ir.Pos{File: file, Line: d.Line, Column: 1}, "#SBATCH "+d.Name, launcherVariables[d.Variables[0]],
			atoi(d.Value))
	}
	for _, name := range slices.Sorted(maps.Keys(launcherVariables)) {
		if w, ok := src.script.Variable(name); ok {
			l.compareVariable(src, name, &w)
		}
	}
	if src.launcher == nil {
		return
	}
	for i := range src.launcher.Command.Env {
		a := &src.launcher.Command.Env[i]
		l.compareVariable(src, a.Name, &a.Value)
	}
	for i := range src.launcher.Options {
		o := &src.launcher.Options[i]
		isGiven := o.Unknown != nil && l.counts[o.Counts] > 0
		if l.note(src, src.script.Pos(&o.Value), o.Name, o.Counts, o.Number) || isGiven {
			src.replaced(o, "the command line of planc says "+count(l.counts[o.Counts], o.Counts))
		}
	}
	slices.SortStableFunc(src.notes, func(a, b interop.Note) int {
		return cmp.Or(strings.Compare(a.Pos.File, b.Pos.File), a.Pos.Line-b.Pos.Line, a.Pos.Column-b.Pos.Column)
	})
}

// compareVariable notes a variable whose value contradicts the user's numbers.
func (l *launcherEnv) compareVariable(src *source, name string, w *shell.Word) {
	n := atoi(w.Text())
	kind := launcherVariables[name]
	isKubeflow := name == worldSize && n == l.counts[shell.Nodes]
	if kind != "" && w.Unknown() == nil && !isKubeflow {
		l.note(src, src.script.Pos(w), name, kind, n)
	}
}

// count returns a number with what it counts: "1 node".
func count(n int, kind shell.Counted) string {
	if n == 1 {
		return "1 " + strings.Replace(string(kind), "s", "", 1)
	}
	return fmt.Sprintf("%d %s", n, kind)
}

// note adds a note if a number differs from the one that the user gives, and reports whether it does. One note is
// enough for each place.
func (l *launcherEnv) note(src *source, pos ir.Pos, name string, kind shell.Counted, n int) bool {
	given := l.counts[kind]
	if given == 0 || n == 0 || n == given {
		return false
	}
	for i := range src.notes {
		if src.notes[i].Pos == pos {
			return true
		}
	}
	src.notes = append(src.notes, interop.Note{Pos: pos, Text: fmt.Sprintf("%s is %d, and the command line of planc "+
		"says %s: planc takes %d; change the script, too", name, n, count(given, kind), given)})
	return true
}

// replaced says in the key of a launcher's option that the user gives another number.
func (src *source) replaced(o *shell.LaunchOption, why string) {
	for i := range src.launch {
		if k := &src.launch[i]; k.Pos == o.Pos && k.Name == o.Name {
			k.Use, k.As, k.Note = interop.NoEffect, nil, why
		}
	}
}
