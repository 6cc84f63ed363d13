package program

import (
	"fmt"
	"slices"
)

// StageAxis is the atom of the mesh whose coordinate is a rank's stage.
const StageAxis = "pp"

// AxisSize returns the size of an atom of the mesh.
func (p *Program) AxisSize(name string) int {
	i := slices.IndexFunc(p.Mesh, func(a Axis) bool { return a.Name == name })
	if i < 0 {
		panic(fmt.Sprintf("runtime: the mesh %v has no axis %q", p.Mesh, name))
	}
	return p.Mesh[i].Size
}

// Ranks returns the number of ranks along some atoms.
func (p *Program) Ranks(atoms []string) int {
	n := 1
	for _, a := range atoms {
		n *= p.AxisSize(a)
	}
	return n
}

// MeshSize returns the number of ranks of the mesh.
func (p *Program) MeshSize() int {
	n := 1
	for _, a := range p.Mesh {
		n *= a.Size
	}
	return n
}

// Atoms returns the atoms of a group; none for -1.
func (p *Program) Atoms(group int) []string {
	if group < 0 {
		return nil
	}
	return p.Groups[group].Axes
}

// SumOnly returns the atoms of a bucket's Sum that are not in its Shard.
func (p *Program) SumOnly(b *Bucket) []string { return AtomsNotIn(p.Atoms(b.Sum), p.Atoms(b.Shard)) }

// AtomsNotIn returns the elements of a that are not in b.
func AtomsNotIn(a, b []string) (out []string) {
	for _, x := range a {
		if !slices.Contains(b, x) {
			out = append(out, x)
		}
	}
	return out
}

// ChunkStages returns the stage of each chunk of the model.
func (p *Program) ChunkStages() []int {
	n := 0
	for i := range p.Stages {
		n += len(p.Stages[i].Chunks)
	}
	out := make([]int, n)
	for i := range p.Stages {
		for _, c := range p.Stages[i].Chunks {
			out[c.Index] = i
		}
	}
	return out
}

// Along returns the number of the rank at a coordinate along atoms, the first varying fastest, and how many ranks are
// along them.
func (p *Program) Along(coord map[string]int, atoms []string) (n, ranks int) {
	ranks = 1
	for _, a := range atoms {
		n += coord[a] * ranks
		ranks *= p.AxisSize(a)
	}
	return n, ranks
}
