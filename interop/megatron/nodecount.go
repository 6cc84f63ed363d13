package megatron

import (
	"strconv"

	"github.com/planc-dev/planc/interop"
)

// readNodes reads the number of nodes from the launcher if the script does not say the number of devices. If the
// devices of a node are those of the cluster, the keys of the launcher say how many devices that are.
func (src *source) readNodes(l *launcherEnv) {
	if src.launcher == nil || src.devices > 0 {
		return
	}
	option, why := src.launcher.NodesAlone()
	switch {
	case option != nil:
		src.nodes = interop.NodeCount{N: option.Number, Name: option.Name, Pos: option.Pos, Why: why}
	case len(src.launcher.Options) == 0 && src.launcher.Nodes > 1: // ms-swift
		src.nodes = interop.NodeCount{N: src.launcher.Nodes, Name: nodesVariable, Why: perNodeVariable +
			" is not in the script", Pos: src.script.At(max(0, src.launcher.Offset()))}
	}
	if src.nodes.N == 0 || l.options.Nodes > 0 || l.options.Devices == 0 {
		return
	}
	for i := range src.launch {
		if k := &src.launch[i]; k.Pos == src.nodes.Pos && k.Name == src.nodes.Name {
			k.Use, k.Note, k.As = interop.Taken, "", []string{"devices: " + strconv.Itoa(l.options.Devices)}
		}
	}
}
