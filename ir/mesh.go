package ir

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Atom is a sub-axis that is not divided further: Size consecutive values of a rank's coordinate.
type Atom struct {
	Name Axis
	Size int
}

// NamedAxis is an axis as a product of atoms, the fastest-varying first.
type NamedAxis struct {
	Name  Axis
	Atoms []Axis
}

// Mesh is one ordered list of ranks, divided into atoms (the fastest-varying first), and the axes that are products of
// atoms.
//
// It prints as "tp.0=2 tp.1=2 dp=4 : tp=tp.0*tp.1 ep=tp.1*dp". An atom is an axis with the atom's name.
type Mesh struct {
	Atoms []Atom
	Axes  []NamedAxis // those that are not atoms
	// each rank's part of a padded dim is rounded up to a multiple of this number; 0: it is not. The text does not show
	// it, because a program's recipe does.
	VocabMultiple int
}

// View is one way to factor the ranks: axes and sizes, the fastest-varying first.
type View []Atom

// NewMesh refines views of the same ranks into common atoms. An axis that needs several atoms keeps its name, and its
// atoms are called axis.0, axis.1, ... after the first view that has them. Axes of size 1 are dropped. It fails if the
// views' cumulative sizes do not divide each other.
func NewMesh(views ...View) (Mesh, error) {
	cuts := []int{1}
	for _, v := range views {
		n := 1
		for _, a := range v {
			n *= a.Size
			cuts = append(cuts, n)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	for i := 1; i < len(cuts); i++ {
		if cuts[i]%cuts[i-1] != 0 {
			return Mesh{}, fmt.Errorf("axes do not nest: one ends after %d ranks, another after %d", cuts[i-1], cuts[i])
		}
	}
	m := Mesh{Atoms: make([]Atom, len(cuts)-1)}
	for i := range m.Atoms {
		m.Atoms[i].Size = cuts[i+1] / cuts[i]
	}
	for _, v := range views {
		m.addView(v, cuts)
	}
	return m, nil
}

// addView names the atoms of each axis of v that have no name yet, and records which axes are products of them.
func (m *Mesh) addView(v View, cuts []int) {
	n := 1
	for _, a := range v {
		lo, hi := slices.Index(cuts, n), slices.Index(cuts, n*a.Size)
		n *= a.Size
		if hi <= lo {
			continue
		}
		var atoms []Axis
		for i := lo; i < hi; i++ {
			if m.Atoms[i].Name == "" {
				m.Atoms[i].Name = a.Name
				if hi-lo > 1 {
					m.Atoms[i].Name = a.Name + Axis("."+strconv.Itoa(i-lo))
				}
			}
			atoms = append(atoms, m.Atoms[i].Name)
		}
		if len(atoms) > 1 || atoms[0] != a.Name {
			m.Axes = append(m.Axes, NamedAxis{a.Name, atoms})
		}
	}
}

// Product adds an axis that is a product of atoms, the fastest-varying first.
func (m *Mesh) Product(name Axis, atoms ...Axis) {
	m.Axes = append(m.Axes, NamedAxis{name, atoms})
}

func (m Mesh) String() string {
	if len(m.Atoms) == 0 {
		return "1"
	}
	var parts []string
	for _, a := range m.Atoms {
		parts = append(parts, fmt.Sprintf("%s=%d", a.Name, a.Size))
	}
	if len(m.Axes) > 0 {
		parts = append(parts, ":")
	}
	for _, a := range m.Axes {
		parts = append(parts, string(a.Name)+"="+joinAxes(a.Atoms, "*"))
	}
	return strings.Join(parts, " ")
}

// ParseMesh reads the text that Mesh.String prints.
func ParseMesh(s string) (Mesh, error) {
	var m Mesh
	if s == "1" {
		return m, nil
	}
	atoms, axes, _ := strings.Cut(s, " :")
	for _, f := range strings.Fields(atoms) {
		name, size, _ := strings.Cut(f, "=")
		n, err := strconv.Atoi(size)
		if err != nil || n < 2 || strconv.Itoa(n) != size || checkName(name) != nil || m.known(Axis(name)) {
			return m, fmt.Errorf("mesh: %q must be a new name=size, with a size of at least 2", f)
		}
		m.Atoms = append(m.Atoms, Atom{Axis(name), n})
	}
	if len(m.Atoms) == 0 {
		return m, fmt.Errorf("mesh: must be 1, or name=size for each axis")
	}
	if m.tooLarge() {
		return m, fmt.Errorf("mesh: has more than %d ranks", maxRanks)
	}
	for _, f := range strings.Fields(axes) {
		name, prod, _ := strings.Cut(f, "=")
		if checkName(name) != nil || m.known(Axis(name)) {
			return m, fmt.Errorf("mesh: %q must be a new name=atom*atom", f)
		}
		na := NamedAxis{Name: Axis(name)}
		for _, a := range splitAxes(prod, "*") {
			if m.atomSize(a) == 0 || slices.Contains(na.Atoms, a) {
				return m, fmt.Errorf("mesh: %q: unknown or repeated atom %q", f, a)
			}
			na.Atoms = append(na.Atoms, a)
		}
		m.Axes = append(m.Axes, na)
	}
	return m, nil
}

// maxRanks keeps products of sizes far from overflow.
const maxRanks = 1 << 24

func (m Mesh) tooLarge() bool {
	n := 1
	for _, a := range m.Atoms {
		if a.Size > maxRanks/n {
			return true
		}
		n *= a.Size
	}
	return false
}

func (m Mesh) known(a Axis) bool {
	a = a.Plain()
	return m.atomSize(a) > 0 || slices.ContainsFunc(m.Axes, func(n NamedAxis) bool { return n.Name == a })
}

func (m Mesh) atomSize(a Axis) int {
	for _, x := range m.Atoms {
		if x.Name == a {
			return x.Size
		}
	}
	return 0
}

// Has reports whether the mesh has the axis. Axes of size 1 do not exist.
func (m Mesh) Has(a Axis) bool { return m.known(a) }

// Expand replaces axes by their atoms, without labels, the fastest-varying first. Lists of axes start with the major
// one, so the last axis of the list comes first.
func (m Mesh) Expand(axes []Axis) []Axis {
	if len(axes) == 0 {
		return nil
	}
	out := make([]Axis, 0, len(m.Atoms))
	for i := len(axes) - 1; i >= 0; i-- {
		if a := axes[i].Plain(); m.atomSize(a) > 0 {
			out = append(out, a)
		} else {
			out = append(out, m.expand(a)...)
		}
	}
	return out
}

func (m Mesh) expand(a Axis) []Axis {
	a = a.Plain()
	if m.atomSize(a) > 0 {
		return []Axis{a}
	}
	for _, n := range m.Axes {
		if n.Name == a {
			return n.Atoms
		}
	}
	panic(fmt.Sprintf("ir: mesh %v has no axis %q", m, a))
}

// Ranks returns the product of the axes' sizes.
func (m Mesh) Ranks(axes []Axis) int {
	n := 1
	for _, a := range axes {
		a = a.Plain()
		if size := m.atomSize(a); size > 0 {
			n *= size
			continue
		}
		for _, x := range m.expand(a) {
			n *= m.atomSize(x)
		}
	}
	return n
}

// Width returns the number of a dim's elements that one rank holds, including padding: ceil(size / ranks). For a padded
// dim this is rounded up to a multiple of VocabMultiple, unless a rank would then hold only padding.
func (m Mesh) Width(d *Extent) int {
	ranks := m.Ranks(d.Axes)
	n := (d.Size + ranks - 1) / ranks
	if m.VocabMultiple == 0 || !d.Dim.Padded() {
		return n
	}
	if wide := (n + m.VocabMultiple - 1) / m.VocabMultiple * m.VocabMultiple; (ranks-1)*wide < d.Size {
		return wide
	}
	return n
}

// Size returns the number of ranks.
func (m Mesh) Size() int {
	n := 1
	for _, a := range m.Atoms {
		n *= a.Size
	}
	return n
}
