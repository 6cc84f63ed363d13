package ir

import (
	"slices"
	"strings"
)

// Context parallelism splits seq over cp in every region. Only attention needs all keys of a query. cp_kind selects how
// it gets them: gather all-gathers K and V on each rank; heads moves all positions of some heads to each rank, and
// back; ring attends to the keys of one rank after the other.

// IsContext reports whether the axis is cp or a part of it.
func (a Axis) IsContext() bool {
	a = a.Plain()
	return a == "cp" || a == "cp_kv" || a == "cp_rep"
}

// ContextKinds are the values of cp_kind.
var ContextKinds = []string{"none", "gather", "heads", "ring"}

// ContextRules are the rules for cp_kind and cp.
var ContextRules = []PlanRule{
	{"cp_kind", "cp_kind must be none if cp is 1, and only then", func(p *Plan) bool {
		return (p.CP == 1) == (p.CPKind == "none")
	}},
	{"cp_kind", "cp_kind must be none, gather, heads or ring", func(p *Plan) bool {
		return slices.Contains(ContextKinds, p.CPKind)
	}},
	{"cp_kind", "a ring covers all of cp: ep must take all of cp or none of it", func(p *Plan) bool {
		return p.CPKind != "ring" || !p.CutsContext()
	}},
}

// CutsContext reports whether experts take a part of cp, which then consists of two axes. A ring supports only one.
func (p Plan) CutsContext() bool {
	_, cp, _, err := p.ExpertParts()
	return err == nil && cp > 1 && cp < p.CP
}

// contexts returns the axes that split seq over cp. gather and ring split it in zigzag order, so that ranks have equal
// causal work. heads does not need this, because each rank has all positions of its heads.
func (p Plan) contexts(m Mesh) []Axis {
	switch {
	case !m.Has("cp"):
		return nil
	case p.CPKind != "heads" && m.atomSize("cp") > 0:
		return []Axis{Axis("cp").Zigzag()}
	}
	return []Axis{"cp"}
}

// coreLayout returns the layout of attention itself, nil if it is that of its projections, heads.
func (p Plan) coreLayout(m Mesh, heads Layout) Layout {
	if !m.Has("cp") {
		return nil
	}
	core := Layout{Batch: heads[Batch], Seq: heads[Seq], Head: heads[Head], Group: heads[Group]}
	switch p.CPKind {
	case "ring":
		core[KSeq] = core[Seq]
	case "heads":
		core[Seq] = nil
		core[Head], core[Group] = slices.Concat(core[Head], have(m, "cp_kv")), slices.Concat(core[Group],
			have(m, "cp_rep"))
	default:
		return nil
	}
	return core
}

// have returns the axes that the mesh has.
func have(m Mesh, axes ...Axis) []Axis {
	return slices.DeleteFunc(axes, func(a Axis) bool { return !m.Has(a) })
}

// headContexts returns the number of ways in which cp splits the K/V heads of a rank: cp, or the number of heads if
// that is smaller. The rest of cp splits the queries of each head.
func (p Plan) headContexts(kvHeads int) int { return min(p.CP, max(1, kvHeads/p.TP)) }

// sharedReplicas returns how many dp ranks share one copy of the state, if zero_group is smaller than the number of
// replicas. Axes of the replica group that vary faster than dp belong to the group as a whole.
func (p Plan) sharedReplicas() int {
	if p.Zero == 0 || p.ZeroGroup <= 1 || p.ZeroGroup >= p.Replicas() {
		return 1
	}
	order := strings.Split(p.AxisOrder, ",")
	if slices.Index(order, "cp") < slices.Index(order, "dp") {
		return max(1, p.ZeroGroup/p.CP)
	}
	return p.ZeroGroup
}
