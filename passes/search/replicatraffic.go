package search

import (
	"cmp"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// StateMoves returns what replicas communicate of parameters and gradients in a step of a plan, on the stage with the
// most bytes. It has an entry per kind of collective: Count is their number, and Bytes their sum.
func StateMoves(p *Problem, plan ir.Plan) ([]Traffic, error) {
	s, err := newSearcher(p)
	if err != nil {
		return nil, err
	}
	t := s.tables(plan)
	var best []Traffic
	most := -1
	for stage := range t.Stages {
		moves, sum := replicaTraffic(stateTraffic(t, stage), t.Mesh), 0
		for _, m := range moves {
			sum += m.Bytes
		}
		if sum > most {
			best, most = moves, sum
		}
	}
	return best, nil
}

// stateTraffic returns a stage's collectives in a step, except those of its layers' functions.
func stateTraffic(t *tables, stage int) []Traffic {
	w := walker{l: newLedger(t.Mesh), p: t.Program, st: &t.Stages[stage], stage: stage,
		run: func(*ir.Segment, ir.ActionKind) {
		}}
	w.walk()
	return w.l.list()
}

// replicaTraffic adds up the collectives of buckets over replicas by kind. It skips those of single numbers, the loss
// and the norm.
func replicaTraffic(all []Traffic, m ir.Mesh) []Traffic {
	const number = 8
	var axes []ir.Axis
	for _, a := range []ir.Axis{"dp", "cp"} {
		if m.Has(a) {
			axes = append(axes, a)
		}
	}
	replicas := m.Expand(axes)
	of := map[ir.Op]Traffic{}
	for _, t := range all {
		outside := slices.ContainsFunc(strings.Split(t.Axes, "@"), func(a string) bool {
			return !slices.Contains(replicas, ir.Axis(a))
		})
		if outside || t.Bytes <= number {
			continue
		}
		sum := of[t.Op]
		of[t.Op] = Traffic{Op: t.Op, Axes: "dp", Ranks: m.Ranks(replicas), Bytes: sum.Bytes + t.Bytes*t.Count,
			Count: sum.Count + t.Count}
	}
	var out []Traffic
	for _, t := range of {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b Traffic) int { return cmp.Compare(a.Op, b.Op) })
	return out
}
