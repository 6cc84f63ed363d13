package runtime

import (
	"fmt"
	"slices"
	"strings"
)

// Line is one rank's view of those that communicate with each other, in an order that is the same for all of them. On a
// device it is a communicator.
type Line struct {
	Name      string
	Ranks     []int // in the order of the members; none where the rank has no part in it
	IsPipe    bool  // messages go from the first to the last; else what is joined is of all
	SameStage bool  // all are of one stage, so that what they join lies at one place of their arenas
}

// Lines are the program's, for the rank: by name the same on every rank, and in the same order. Those of groups come
// first, then those of buckets' jobs, then the ends of the pipeline and what lies between its stages.
func (r *Rank) Lines() []Line {
	p := r.Program
	var out []Line
	for i, g := range p.Groups {
		out = append(out, r.line(MainLine(i), g.Axes))
	}
	var atoms [][]string
	ends := false
	for i := range p.Stages {
		for j := range p.Stages[i].Buckets {
			b := &p.Stages[i].Buckets[j]
			atoms = append(atoms, p.atoms(b.Reduce), p.atoms(b.Shard), p.sumOnly(b))
			ends = ends || b.SharedByEnds
		}
	}
	for i, a := range atoms {
		if p.size(a) > 1 && !slices.ContainsFunc(atoms[:i], func(b []string) bool { return slices.Equal(a, b) }) {
			out = append(out, r.line(overlapLine(a), a))
		}
	}
	if ends {
		out = append(out, r.between(endsLine, 0, len(p.Stages)-1))
	}
	return append(out, r.pipes()...)
}

// MainLine is the name of the line between the ranks of one of the program's groups.
func MainLine(group int) string { return fmt.Sprintf("group %d", group) }

// overlapLine is the name of the line of buckets' jobs over some atoms.
func overlapLine(atoms []string) string { return "buckets over " + strings.Join(atoms, "·") }

// endsLine is the name of the line between the ends of the pipeline.
const endsLine = "ends"

// sumOnly are the atoms of Sum that Shard lacks.
func (p *Program) sumOnly(b *Bucket) []string { return axesNotIn(p.atoms(b.Sum), p.atoms(b.Shard)) }

// line is that of the ranks that differ from this one in the atoms only.
func (r *Rank) line(name string, atoms []string) Line {
	ranks, _, err := r.Program.mesh().Members(r.ID, atoms)
	check(err)
	return Line{Name: name, Ranks: ranks, SameStage: !slices.Contains(atoms, stageAxis)}
}

// between is the line between this rank's peers of two stages.
func (r *Rank) between(name string, from, to int) Line {
	if s := r.Coord[stageAxis]; s != from && s != to {
		return Line{Name: name}
	}
	ranks := []int{r.peer(from), r.peer(to)}
	return Line{Name: name, Ranks: slices.Compact(ranks)}
}

// pipes are the lines between chunks.
func (r *Rank) pipes() (out []Line) {
	stages := r.Program.stagesOf()
	for i := range len(stages) - 1 {
		out = append(out, r.between(pipeName(activations, i, i+1), stages[i], stages[i+1]),
			r.between(pipeName(gradients, i+1, i), stages[i+1], stages[i]))
	}
	for i := range out {
		out[i].IsPipe = true
	}
	return out
}

// What passes between chunks.
const (
	activations = "activations"
	gradients   = "gradients"
)

// pipeName is the name of what passes from a chunk to another.
func pipeName(kind string, from, to int) string {
	return fmt.Sprintf("%s of chunk %d for chunk %d", kind, from, to)
}
