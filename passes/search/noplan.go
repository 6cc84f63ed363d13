package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// NoPlanCode is the code of a job for which no plan fits.
//
// Example:
//
//	cluster: {node: t4, nodes: 1}
const NoPlanCode ir.Code = "NoPlan"

// NoPlan is the error that no plan fits.
type NoPlan struct {
	Nearest Priced // lacks least
	NoFit   NoFit
	Counts  Counts
	Changes []Change // that would fit, the cheapest first
}

// Change is a change of the job under which a plan fits.
type Change struct {
	Set  map[string]any // fields of the job and their values; nil removes one
	Best Priced
}

// Args are the change as arguments of planc: "--set cluster.nodes=4".
func (c Change) Args() string {
	var args []string
	for _, k := range slices.Sorted(maps.Keys(c.Set)) {
		v := "null"
		if c.Set[k] != nil {
			v = fmt.Sprint(c.Set[k])
		}
		args = append(args, "--set "+k+"="+v)
	}
	return strings.Join(args, " ")
}

func (e *NoPlan) Error() string {
	m := e.Nearest.Predict.MemoryBytes
	var b strings.Builder
	fmt.Fprintf(&b, "no plan fits: the nearest, %v, needs %v of %v usable: %v over [%s]", e.Nearest.Plan,
		costmodel.Bytes(m.Total), costmodel.Bytes(m.Capacity), costmodel.Bytes(m.Over()), NoPlanCode)
	for _, c := range e.Changes {
		fmt.Fprintf(&b, "\n  would fit: %s: %v, %v a step", c.Args(),
			costmodel.Bytes(c.Best.Predict.MemoryBytes.Total), c.Best.Predict.StepS)
	}
	return b.String()
}

// noPlan explains that nothing fits.
func (s *searcher) noPlan(plans []ir.Plan, counts Counts) *NoPlan {
	near := s.nearest(plans)
	m := near.Predict.MemoryBytes
	e := &NoPlan{Nearest: near, NoFit: NoFit{OverBytes: m.Over(), Part: m.Largest()}, Counts: counts}
	for _, try := range s.changes() {
		if best, ok := try.run(); ok {
			e.Changes = append(e.Changes, Change{try.set, best})
		}
	}
	return e
}

// trial is a change that may help.
type trial struct {
	set     map[string]any
	problem Problem
}

func (t *trial) run() (Priced, bool) {
	s, err := newSearcher(&t.problem)
	if err != nil {
		return Priced{}, false
	}
	plans, err := t.problem.space()
	if err != nil {
		return Priced{}, false
	}
	best, _, found := s.best(plans)
	return best, found
}

// changes are the changes to try, the cheapest first: pins given up, all of them at once; then, if the cluster has a
// network, more nodes.
func (s *searcher) changes() []trial {
	var ts []trial
	if len(s.problem.Pins) > 0 {
		t := trial{set: map[string]any{}, problem: *s.problem}
		for _, k := range s.problem.Pins.names() {
			t.set["plan."+k] = nil
		}
		t.problem.Pins = nil
		ts = append(ts, t)
	}
	c := s.problem.Cluster
	if len(c.Network) == 0 {
		return ts
	}
	for factor := 2; factor <= 16; factor *= 2 {
		more := *c
		more.Nodes = c.Nodes * factor
		t := trial{set: map[string]any{"cluster.nodes": more.Nodes}, problem: *s.problem}
		t.problem.Cluster = &more
		ts = append(ts, t)
	}
	return ts
}
