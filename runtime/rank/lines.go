package rank

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/runtime/program"
)

// Line is one rank's view of a group of ranks that communicate, in the same order on all of them. On a device it is a
// communicator.
type Line struct {
	Name      string
	Ranks     []int // in the order of the members; none if the rank is not a member
	IsPipe    bool  // messages go from the first member to the last; else it is for collectives
	SameStage bool  // all members are of one stage, so that buffers have the same offsets in their arenas
	Messages  bool  // the members also send to each other
	Numbers   bool  // collectives of single numbers only
}

// Lines returns the program's lines for the rank. Names and order are the same on every rank: first the lines of
// groups, then those of bucket jobs, then the line between the first and the last stage, then those between its stages.
func (r *Rank) Lines() []Line {
	p := r.Program
	var out []Line
	for i, g := range p.Groups {
		if !g.Tensors && !g.Numbers {
			continue
		}
		l := lineOf(r, MainLine(i), g.Axes)
		l.Messages, l.Numbers = g.Messages, !g.Tensors
		out = append(out, l)
	}
	var atoms [][]string
	hasTied := false
	for i := range p.Stages {
		for j := range p.Stages[i].Buckets {
			b := &p.Stages[i].Buckets[j]
			atoms = append(atoms, p.Atoms(b.Reduce), p.Atoms(b.Shard), p.SumOnly(b))
			hasTied = hasTied || b.TiedStages
		}
	}
	for i, a := range atoms {
		if p.Ranks(a) > 1 && !slices.ContainsFunc(atoms[:i], func(b []string) bool { return slices.Equal(a, b) }) {
			out = append(out, lineOf(r, overlapLine(a), a))
		}
	}
	if hasTied {
		out = append(out, lineBetween(r, firstLastLine, 0, len(p.Stages)-1))
	}
	return append(out, pipeLines(r)...)
}

// MainLine returns the name of the line of one of the program's groups.
func MainLine(group int) string { return fmt.Sprintf("group %d", group) }

// overlapLine returns the name of the line of bucket jobs over some atoms.
func overlapLine(atoms []string) string { return "buckets over " + strings.Join(atoms, "·") }

// firstLastLine is the name of the line between the first and the last stage.
const firstLastLine = "first_last"

// lineOf returns the line of the ranks that differ from this one only in the atoms.
func lineOf(r *Rank, name string, atoms []string) Line {
	ranks, _, err := r.Program.CommMesh().Members(r.ID, atoms)
	Check(err)
	return Line{Name: name, Ranks: ranks, SameStage: !slices.Contains(atoms, program.StageAxis)}
}

// lineBetween returns the line between this rank's peers on two stages.
func lineBetween(r *Rank, name string, from, to int) Line {
	if s := r.Coord[program.StageAxis]; s != from && s != to {
		return Line{Name: name}
	}
	ranks := []int{peerOf(r, from), peerOf(r, to)}
	return Line{Name: name, Ranks: slices.Compact(ranks)}
}

// pipeLines returns the lines between chunks.
func pipeLines(r *Rank) (out []Line) {
	stages := r.Program.ChunkStages()
	for i := range len(stages) - 1 {
		out = append(out, lineBetween(r, pipeName(activations, i, i+1), stages[i], stages[i+1]),
			lineBetween(r, pipeName(gradients, i+1, i), stages[i+1], stages[i]))
	}
	for i := range out {
		out[i].IsPipe = true
	}
	return out
}

// Kinds of messages between chunks.
const (
	activations = "activations"
	gradients   = "gradients"
)

// pipeName returns the name of the pipe from one chunk to another.
func pipeName(kind string, from, to int) string {
	return fmt.Sprintf("%s of chunk %d for chunk %d", kind, from, to)
}
