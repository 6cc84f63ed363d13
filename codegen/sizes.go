package codegen

import (
	"fmt"

	"github.com/planc-dev/planc/ir"
)

// sizes counts the elements of tensors on one rank of a mesh.
type sizes struct{ mesh ir.Mesh }

// count is the number of local elements of some dims.
func (s sizes) count(dims []ir.Extent) int {
	return ir.Type{Dims: dims}.LocalElems(s.mesh)
}

// rowsCols splits a type into what comes before the dims of inner, and these.
func (s sizes) rowsCols(t, inner ir.Type) (rows, cols int) {
	cols = s.count(inner.Dims)
	return s.count(t.Dims) / cols, cols
}

// around is the number of local elements before a dim, its local size, and the elements after it.
func (s sizes) around(t ir.Type, d ir.Dim) (outer, size, inner int) {
	for i, x := range t.Dims {
		if x.Dim == d {
			return s.count(t.Dims[:i]), s.count(t.Dims[i : i+1]), s.count(t.Dims[i+1:])
		}
	}
	panic(fmt.Sprintf("codegen: %v has no dim %s", t, d))
}

// tokenGroups returns the number of groups of tokens on the rank, which are those of the tally's dims, and the elements
// of x in each.
func (s sizes) tokenGroups(x, tally ir.Type) (groups, each int) {
	groups = s.count(tally.Dims[:len(tally.Dims)-1])
	return groups, s.count(x.Dims) / groups
}

// dimIndex returns the index of a dim in a type.
func dimIndex(t ir.Type, d ir.Dim) int {
	for i, x := range t.Dims {
		if x.Dim == d {
			return i
		}
	}
	panic("codegen: " + t.String() + " has no dim " + string(d))
}
