package ir

import (
	"slices"
	"strings"
)

// Context parallelism splits seq over cp in every region. Only attention needs all keys of a query, and how it gets
// them is cp_kind: gather joins K and V on each rank; heads gives each rank all positions of some heads instead, and
// back; ring attends to the share of one rank after the other.

// IsContext tells whether the axis is cp or a part of it.
func (a Axis) IsContext() bool {
	a = a.Plain()
	return a == "cp" || a == "cp_kv" || a == "cp_rep"
}

// ContextKinds are the values of cp_kind.
var ContextKinds = []string{"none", "gather", "heads", "ring"}

// ContextRules say which cp_kind goes with cp.
var ContextRules = []PlanRule{
	{"cp_kind", "cp_kind is none where cp is 1, and only there", func(p *Plan) bool {
		return (p.CP == 1) == (p.CPKind == "none")
	}},
	{"cp_kind", "cp_kind is none, gather, heads or ring", func(p *Plan) bool {
		return slices.Contains(ContextKinds, p.CPKind)
	}},
	{"cp_kind", "a ring goes over all of cp: ep takes no part of it but the whole", func(p *Plan) bool {
		return p.CPKind != "ring" || !p.CutsContext()
	}},
}

// CutsContext tells whether experts take a part of cp, which then is two axes: a ring knows the turns of one.
func (p Plan) CutsContext() bool {
	_, cp, _, err := p.ExpertParts()
	return err == nil && cp > 1 && cp < p.CP
}

// contexts are the axes that split seq over cp. gather and ring have it in zigzag order, so that causal ranks have
// equal work; heads need not, since each rank has all positions of its heads.
func (p Plan) contexts(m Mesh) []Axis {
	switch {
	case !m.Has("cp"):
		return nil
	case p.CPKind != "heads" && m.atomSize("cp") > 0:
		return []Axis{Axis("cp").Zigzag()}
	}
	return []Axis{"cp"}
}

// coreLayout is the map of attention itself, where it is not that of its projections; heads is theirs.
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

// have are the axes that the mesh has.
func have(m Mesh, axes ...Axis) []Axis {
	return slices.DeleteFunc(axes, func(a Axis) bool { return !m.Has(a) })
}

// headContexts is how many ways cp splits the K/V heads that a rank has: all cp of them, or as many as there are. The
// rest of cp splits the queries of each.
func (p Plan) headContexts(kvHeads int) int { return min(p.CP, max(1, kvHeads/p.TP)) }

// sharedReplicas is how many dp ranks share one copy of the state, where zero_group is a part of all replicas: of those
// of the replica group that vary faster than dp, all do.
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
