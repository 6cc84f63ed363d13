package planner

import (
	"fmt"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/runtime/amount"
)

// openNodes is the largest number of nodes that is tried if the job does not say how many there may be.
const openNodes = 2048

// hasOpenNodeCount reports whether the job leaves the number of nodes to an objective with a goal: neither the job nor
// its cluster file says how many there are, and there is a network to connect them.
func (s *sizeSearch) hasOpenNodeCount() bool {
	ref, c := s.question.Job.Cluster, s.question.Hardware
	return s.goal.TokensPerS > 0 && ref.Nodes == 0 && ref.Count == 0 && c.Nodes == 1 && len(c.Network) > 0 && !c.IsCPU()
}

// findMost doubles the number of nodes until a plan reaches the goal, and takes that as the most that there may be;
// tryAll then finds the fewest. For cost and energy it allows twice as many, because with memory to spare a plan may
// do without what it did to fit. If no number reaches the goal, the error says how close the fastest comes.
func (s *sizeSearch) findMost() error {
	per := s.question.FullNode()
	for n := 1; n <= openNodes; n *= 2 {
		s.goal.Available = n * per
		_, found, err := s.fastestOn(s.goal.Available, s.limit)
		if found != nil && s.goal.Kind != spec.Devices {
			s.goal.Available = min(2*n, openNodes) * per
		}
		if err != nil || found != nil {
			return err
		}
	}
	fastest, devices := 0.0, 0
	for n := openNodes; n >= 1; n /= 2 {
		limit := func(*costmodel.Cluster) float64 { return s.stepTokens() / max(fastest, 1e-9) }
		_, found, err := s.fastestOn(n*per, limit)
		if err != nil {
			return err
		}
		if found != nil && found.TokensPerS > fastest {
			fastest, devices = found.TokensPerS, n*per
		}
	}
	q := s.question
	if devices == 0 {
		s.goal.Available = per
		return nil // nothing fits; the search on one node says why
	}
	return &NoPlanError{Message: fmt.Sprintf("none of %d, %d, ... %d %s reaches %s tokens/s with %s on %s: %d "+
		"reach %s; "+
		"with --nodes N each number of nodes up to N is looked at",
		per, 2*per, openNodes*per, devicesWord(q.Hardware), amount.Short(s.goal.TokensPerS), q.Config.Name,
		q.Hardware.Name, devices, amount.Short(fastest))}
}
