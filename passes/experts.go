package passes

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// keepRegions removes the layouts of the experts' regions from programs without experts.
func keepRegions(p *ir.Program) {
	for _, s := range p.Model.Segments {
		for _, n := range s.Forward.Nodes {
			if n.Region == ir.Dispatch || n.Region == ir.Experts {
				return
			}
		}
	}
	delete(p.Layouts, ir.Dispatch)
	delete(p.Layouts, ir.Experts)
}

// placesFor sets the number of slots of a function's experts for the tokens of a micro-batch.
func placesFor(f *ir.Func, plan ir.Plan) {
	for _, n := range f.Nodes {
		if n.Op != ir.OpDispatch || !n.Attr.Round {
			continue
		}
		Resize(f, ir.SlotDim, Places(n, plan, plan.MicroBatch*plan.DP))
		return
	}
}

// Places returns the number of slots per expert in a dispatch, if a micro-batch of all replicas has this many
// sequences.
func Places(n *ir.Node, plan ir.Plan, sequences int) int {
	plan.MicroBatch = sequences / plan.DP
	seq, _ := n.Args[1].Type.Extent(ir.Seq)
	choices, _ := n.Args[1].Type.Extent(ir.Choice)
	experts, _ := n.Outs[0].Type.Extent(ir.Expert)
	return plan.ExpertSlots(seq.Size, experts.Size, choices.Size)
}

// Ops of a function that are marked Round form one loop. It runs once for each round that the tokens need, each time on
// the tokens that have slots in that round. Results of ops that return to tokens are summed over the rounds. All other
// values belong to one round; they are not saved for backward, which recomputes them.

// carries reports whether an op's result is summed over rounds.
func carries(n *ir.Node) bool {
	return n.Attr.Round && (n.Op == ir.OpCombine || n.Op == ir.OpCollect)
}

// ofRound reports whether a value belongs to one round.
func ofRound(v *ir.Value) bool { return v.Def != nil && v.Def.Attr.Round && !carries(v.Def) }

// gatherRounds makes the ops of a function's rounds adjacent. Ops between them that do not depend on the rounds move
// before them, the others behind them.
func gatherRounds(f *ir.Func) {
	first, last := roundsOf(f)
	if first < 0 {
		return
	}
	var before, rounds, after []*ir.Node
	late := map[*ir.Value]bool{}
	for _, n := range f.Nodes[first : last+1] {
		depends := slices.ContainsFunc(n.Args, func(a *ir.Value) bool { return late[a] })
		switch {
		case n.Attr.Round:
			rounds = append(rounds, n)
			for _, a := range n.Args {
				if late[a] && !slices.ContainsFunc(rounds, func(r *ir.Node) bool {
					return slices.Contains(r.Outs, a)
				}) {
					panic("passes: a round waits for " + a.Name + ", which is computed after it")
				}
			}
		case depends:
			after = append(after, n)
		default:
			before = append(before, n)
			continue
		}
		for _, o := range n.Outs {
			late[o] = true
		}
	}
	f.Nodes = slices.Concat(f.Nodes[:first], before, rounds, after, f.Nodes[last+1:])
}

// roundsOf returns the indices of the first and the last op of the rounds, -1 if there are none.
func roundsOf(f *ir.Func) (first, last int) {
	first, last = -1, -1
	for i, n := range f.Nodes {
		if n.Attr.Round {
			last = i
			if first < 0 {
				first = i
			}
		}
	}
	return first, last
}

// countRounds inserts the op that counts a function's rounds before them. All ranks that take part in a collective of
// the rounds must run the same number.
func countRounds(p *ir.Program, f *ir.Func) {
	gatherRounds(f)
	first, last := roundsOf(f)
	if first < 0 {
		return
	}
	var axes []ir.Axis
	var index *ir.Value
	var places int
	for _, n := range f.Nodes[first : last+1] {
		if n.Op.Comm() {
			axes = append(axes, p.Mesh.Expand(n.Attr.Axes)...)
		}
		if n.Op == ir.OpDispatch {
			slots, _ := n.Outs[0].Type.Extent(ir.SlotDim)
			index, places = n.Args[1], slots.Size/p.Mesh.Ranks(slots.Axes)
		}
	}
	count := &ir.Node{Op: ir.OpRounds, Args: []*ir.Value{index}, Attr: ir.Attr{Axes: majorFirst(p.Mesh, axes),
		Max: places}, Region: ir.Dispatch, From: index.Name}
	f.Nodes = slices.Insert(f.Nodes, first, count)
}
