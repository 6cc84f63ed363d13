package main

import (
	"fmt"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/runtime/amount"
)

// openNodes is up to how many nodes are looked at where the job does not say how many there may be.
const openNodes = 2048

// open tells whether the job leaves the number of nodes to an objective with a goal: neither it nor its cluster's file
// says one, and there is a network to join them by.
func (s *aiming) open() bool {
	ref, c := s.job.Cluster, s.job.cluster
	return s.doc.TokensPerS > 0 && ref.Nodes == 0 && ref.Count == 0 && c.Nodes == 1 && len(c.Network) > 0 && !c.IsCPU()
}

// bound doubles the nodes until a plan reaches the goal: so many there may be, of which all then finds the fewest. Of
// cost and energy there may be twice as many, since with room to spare a plan may do without what it did to fit. Where
// none reaches it, bound says how far the most come.
func (s *aiming) bound() error {
	per, most := s.job.fullNode(), 0.0
	at := 0
	for n := 1; n <= openNodes; n *= 2 {
		s.doc.Of = n * per
		_, found, err := s.look(s.doc.Of, s.limit)
		if found != nil && s.doc.Kind != spec.Devices {
			s.doc.Of = min(2*n, openNodes) * per
		}
		if err != nil || found != nil {
			return err
		}
	}
	for n := openNodes; n >= 1; n /= 2 { // what it would be at best
		limit := func(*costmodel.Cluster) float64 { return s.stepTokens() / max(most, 1e-9) }
		if _, found, err := s.look(n*per, limit); err != nil {
			return err
		} else if found != nil && found.TokensPerS > most {
			most, at = found.TokensPerS, n*per
		}
	}
	j := s.job
	if at == 0 {
		s.doc.Of = per
		return nil // the search on one node says what is short
	}
	return &noFitError{message: fmt.Sprintf("none of %d, %d, ... %d %s reaches %s tokens/s with %s on %s: %d "+
		"reach %s; "+
		"with --nodes N each number of nodes up to N is looked at",
		per, 2*per, openNodes*per, devicesWord(j.cluster), amount.Short(s.doc.TokensPerS), j.Config.Name,
		j.cluster.Name, at, amount.Short(most))}
}
