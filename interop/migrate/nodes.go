package migrate

import (
	"cmp"
	"fmt"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/shell"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/planner"
)

// readOnNodes reads files with the options of [interop.Options.On].
func readOnNodes(files []interop.File, name string, o interop.Options) (*Source, error) {
	s, err := Read(files, name, o)
	if err == nil {
		s.TakeNodes(o)
	}
	return s, err
}

// nodesOf returns the number of nodes of a launcher that does not say the number of devices.
func nodesOf(l *shell.Launch) (c interop.NodeCount) {
	if o, why := l.NodesAlone(); o != nil {
		c = interop.NodeCount{N: o.Number, Name: o.Name, Pos: o.Pos, Why: why}
	}
	return c
}

// otherNodes notes that the files start another number of devices than the job has, unless the format's keys of a plan
// say the number.
func otherNodes(s *Source, q *planner.Question, plan ir.Plan) []string {
	nodes, perNode := q.Hardware.Nodes, q.Hardware.Node.Devices
	name, pos := s.devicesFrom()
	all := s.valuesOf(q, plan)
	isWritten := has(all, name) || has(all, s.Nodes.Name)
	if s.Devices == 0 || s.DevicesPerNode == 0 || isWritten || s.Devices == nodes*perNode {
		return nil
	}
	return []string{fmt.Sprintf("%s starts %d × %d devices, and the job has %d × %d: the plan is that of the job, and "+
		"the file keeps its own", cmp.Or(pos.File, s.Main()), s.Devices/s.DevicesPerNode, s.DevicesPerNode, nodes,
		perNode)}
}
