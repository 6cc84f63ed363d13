package shell

import (
	"path"
	"slices"
	"strings"
)

// NodesAlone returns the option that says the number of nodes of a launcher that does not say how many processes run,
// and why it does not; nil if there is no such option, or if the command says the processes.
func (l *Launch) NodesAlone() (nodes *LaunchOption, why string) {
	if l.Total > 0 || l.Nodes == 0 {
		return nil, ""
	}
	why = "no option says the processes of a node"
	if l.isTorchrun() {
		why = "torchrun starts 1 process on each node without --nproc_per_node"
	}
	for i := range l.Options {
		switch o := &l.Options[i]; {
		case o.Counts == Nodes && o.Number > 0:
			nodes = o
		case o.Counts == Nodes:
		case o.Unknown != nil:
			why = "the value of " + o.Name + " is not in the script"
		default:
			why = o.Name + " is " + o.Value.Text()
		}
	}
	return nodes, why
}

// isTorchrun reports whether torchrun, or the module of that program, is part of the command.
func (l *Launch) isTorchrun() bool {
	return slices.ContainsFunc(l.Command.Words, func(w Word) bool {
		text := w.Text()
		return path.Base(text) == "torchrun" || strings.HasPrefix(text, "torch.distributed.")
	})
}
