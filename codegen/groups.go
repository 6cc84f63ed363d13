package codegen

import (
	"fmt"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// groupTable numbers the groups of ranks that a file names, in the order of their first use.
type groupTable struct {
	mesh ir.Mesh
	at   map[string]int // index in list, by the joined atoms
	list [][]ir.Axis

	tensors, numbers map[int]bool // groups that have collectives of tensors, and of single numbers
	messages         map[int]bool // groups whose members send to each other
}

// index returns the index of the group over axes, -1 if they split nothing.
func (t *groupTable) index(axes []ir.Axis) int {
	if len(axes) == 0 {
		return -1
	}
	atoms := t.mesh.Expand(axes)
	key := fmt.Sprint(atoms)
	i, ok := t.at[key]
	if !ok {
		i = len(t.list)
		t.at[key] = i
		t.list = append(t.list, atoms)
	}
	return i
}

// code returns the constant of a group.
func (t *groupTable) code(axes []ir.Axis) jen.Code {
	i := t.index(axes)
	if i < 0 {
		return jen.Lit(-1)
	}
	return jen.Id(groupName(t.list[i]))
}

// record records a use of a group, in one of the table's maps.
func (t *groupTable) record(use *map[int]bool, axes []ir.Axis) {
	if *use == nil {
		*use = map[int]bool{}
	}
	(*use)[t.index(axes)] = true
}

// number records a collective of single numbers over a group, and returns the group's index.
func (t *groupTable) number(axes []ir.Axis) int {
	t.record(&t.numbers, axes)
	return t.index(axes)
}

func groupName(atoms []ir.Axis) string {
	s := "group"
	for _, a := range atoms {
		s += title(string(a))
	}
	return s
}

// declare writes the constants of the groups.
func (t *groupTable) declare(f *jen.File) {
	if len(t.list) == 0 {
		return
	}
	f.Comment("Groups of ranks. Their members differ in the named axes.")
	f.Const().DefsFunc(func(d *jen.Group) {
		for i, atoms := range t.list {
			d.Id(groupName(atoms)).Op("=").Lit(i)
		}
	})
}
