package search

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/price"
)

// NoPlanCode is reported for a job for which no plan fits. Exit 3.
//
// Example:
//
//	cluster: {node: t4, nodes: 1}
const NoPlanCode ir.Code = "NoPlan"

// NoPlan is the error that no plan fits.
type NoPlan struct {
	Nearest Priced // the plan that exceeds memory least
	NoFit   NoFit
	Counts  Counts
	Changes []Change // changes under which a plan fits, the cheapest first
}

// Change is a change of the job under which a plan fits.
type Change struct {
	Set     map[string]any // fields of the job and their values; nil removes a field
	Best    Priced
	Cluster *costmodel.Cluster // the cluster with the change
}

// PricePerHour returns the cost per hour of the change's cluster, in whole nodes; 0 if the cluster has no price.
func (c Change) PricePerHour() float64 {
	return c.Cluster.Node.PricePerHour * float64(c.Cluster.Nodes)
}

// Args returns the change as arguments of planc: "--set cluster.nodes=4".
func (c Change) Args() string { return strings.Join(c.Words(), " ") }

// Words returns the arguments, each with its --set.
func (c Change) Words() (words []string) {
	for _, k := range slices.Sorted(maps.Keys(c.Set)) {
		v := "null"
		if c.Set[k] != nil {
			v = fmt.Sprint(c.Set[k])
		}
		words = append(words, "--set "+k+"="+v)
	}
	return words
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

// noPlan returns the error that nothing fits, with the changes that help.
func (s changeFinder) noPlan(sp *planSpace, counts Counts) *NoPlan {
	near := s.nearest(sp, nil)
	return &NoPlan{Nearest: near, NoFit: noFitOf(near), Counts: counts, Changes: s.changes()}
}

// noFitOf returns by how much a plan does not fit.
func noFitOf(p Priced) NoFit {
	return NoFit{OverBytes: p.Predict.MemoryBytes.Over(), Part: p.Predict.MemoryBytes.Largest(), Stage: p.Stage}
}

// nearest returns the plan that exceeds memory least; of equal ones the fastest, then the first.
func (s *searcher) nearest(sp *planSpace, k *filter) Priced {
	if k == nil {
		k = &filter{}
	}
	var families []*spaceFamily
	for _, f := range sp.families {
		if k.family == nil || k.family(f) {
			families = append(families, f)
		}
	}
	slices.SortStableFunc(families, func(a, b *spaceFamily) int {
		return cmp.Compare(s.MinBytes(sp.problem, &a.Family), s.MinBytes(sp.problem, &b.Family))
	})
	n := &nearest{s: s}
	for _, f := range families {
		if n.found && s.MinBytes(sp.problem, &f.Family)-s.ArenaCapacity() > n.over {
			break
		}
		n.family(sp, f, k)
	}
	return s.Priced(&n.best.Candidate)
}

// nearest is the plan so far that exceeds memory least.
type nearest struct {
	s     *searcher
	best  *member
	over  int
	found bool
}

// family examines a family's plans, those that may exceed memory least first.
func (n *nearest) family(sp *planSpace, f *spaceFamily, k *filter) {
	var ms []*member
	for _, b := range n.s.branchesOf(sp.problem, f) {
		if k.recompute != nil && !k.recompute(b.recompute.Kind) {
			continue
		}
		n.s.boundBranch(sp.problem, b)
		if n.found && b.overBytes > n.over {
			continue
		}
		for m := range n.s.members(sp.problem, b) {
			if k.member == nil || k.member(&m) {
				ms = append(ms, &m)
			}
		}
	}
	slices.SortStableFunc(ms, func(a, b *member) int { return cmp.Compare(a.OverBytes, b.OverBytes) })
	for _, m := range ms {
		n.try(m)
	}
}

// try examines a member.
func (n *nearest) try(m *member) {
	switch {
	case !n.found || m.OverBytes < n.over:
	case m.OverBytes > n.over:
		return
	default:
		a, b := n.s.StepTime(&m.Candidate), n.s.StepTime(&n.best.Candidate)
		if a > b*(1+price.Tie) || a >= b*(1-price.Tie) && m.index > n.best.index {
			return
		}
	}
	n.best, n.over, n.found = m, m.OverBytes, true
}
