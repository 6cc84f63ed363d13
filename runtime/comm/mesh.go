package comm

import (
	"fmt"
	"slices"
)

// Axis is an atom of a mesh: a coordinate with Size values.
type Axis struct {
	Name string
	Size int
}

// Mesh numbers ranks by coordinates, the first axis varying fastest.
type Mesh []Axis

// Size returns the number of ranks.
func (m Mesh) Size() int {
	n := 1
	for _, a := range m {
		n *= a.Size
	}
	return n
}

// Coord returns a rank's coordinate on every axis, in the mesh's order.
func (m Mesh) Coord(rank int) []int {
	c := make([]int, len(m))
	for i, a := range m {
		c[i] = rank % a.Size
		rank /= a.Size
	}
	return c
}

// stride returns the distance in ranks of one step along axis i.
func (m Mesh) stride(i int) int { return m[:i].Size() }

// Index returns the position of an axis.
func (m Mesh) Index(name string) (int, error) {
	i := slices.IndexFunc(m, func(a Axis) bool { return a.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("comm: no axis %q in mesh %v", name, []Axis(m))
	}
	return i, nil
}

// Members returns the ranks that differ from rank only in the coordinates of atoms, and rank's own index among them.
// They are ordered by the mixed-radix number of those coordinates, the first listed atom varying fastest.
func (m Mesh) Members(rank int, atoms []string) (ranks []int, me int, err error) {
	base, coord := rank, m.Coord(rank)
	ranks = []int{0}
	radix := 1
	for _, name := range atoms {
		i, err := m.Index(name)
		if err != nil {
			return nil, 0, err
		}
		step, at := m.stride(i), len(ranks)
		for c := 1; c < m[i].Size; c++ {
			for _, r := range ranks[:at] {
				ranks = append(ranks, r+c*step)
			}
		}
		base -= coord[i] * step
		me += coord[i] * radix
		radix *= m[i].Size
	}
	for i := range ranks {
		ranks[i] += base
	}
	return ranks, me, nil
}
