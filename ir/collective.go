package ir

import "slices"

// Collective is one communication of a rank, for pricing and tracing.
type Collective struct {
	Op        Op     // all_reduce, reduce_scatter, all_gather, all_to_all, shift, send or receive
	Axes      []Axis // of its group, the major axis first
	Bytes     int    // size of the whole buffer: a rank's operand, or the gathered result of an all_gather
	FirstLast bool   // only the first and the last rank of the group take part
	Numbers   bool   // of one or two numbers, not of a tensor
}

// Ranks returns the number of ranks that take part.
func (c *Collective) Ranks(m Mesh) int {
	if c.FirstLast {
		return 2
	}
	return m.Ranks(c.Axes)
}

// Collective returns the node's communication, if it has one.
func (n *Node) Collective(m Mesh) (Collective, bool) {
	c := Collective{Op: n.Op, Axes: n.Attr.Axes, FirstLast: n.Attr.FirstLast}
	switch n.Op {
	case OpAllReduce, OpReduceScatter, OpAllToAll, OpShift:
		c.Bytes = n.Args[0].Type.LocalBytes(m)
	case OpAllGather:
		c.Bytes = n.Outs[0].Type.LocalBytes(m)
	case OpCountTokens, OpLossReduce, OpRounds: // one f64
		c.Op, c.Bytes, c.Numbers = OpAllReduce, F64.Size(), true
	case OpGradNorm: // the sum of squares, and whether a loss is not finite
		c.Op, c.Bytes, c.Numbers = OpAllReduce, 2*F64.Size(), true
	default:
		return c, false
	}
	if n.Op == OpShift { // the bytes determine the price; the distance does not matter
		c.Axes = Plain(c.Axes)
	}
	return c, len(c.Axes) > 0
}

// Messages returns what a rank of a stage receives from and sends to other stages in an action: the block's input in
// forward, its gradient in backward. Both have the stream's size, which sequence parallelism shards. Consecutive chunks
// on the same stage (zb-v) send nothing.
func (p *Program) Messages(stage int, a Action) []Collective {
	if a.Kind != Forward && a.Kind != Backward {
		return nil
	}
	at := p.Stages[stage].Chunks[a.Chunk].Index
	from, to := at-1, at+1
	if a.Kind == Backward {
		from, to = to, from
	}
	var out []Collective
	for _, m := range []struct {
		op    Op
		other int
	}{{OpReceive, from}, {OpSend, to}} {
		if m.other >= 0 && m.other < p.Plan.PP*p.Plan.VPP && p.Plan.StageOf(m.other) != stage {
			out = append(out, Collective{Op: m.op, Axes: []Axis{"pp"}, Bytes: p.Stream})
		}
	}
	return out
}

// CommunicatorKind is what the members of a communicator exchange.
type CommunicatorKind int

// The kinds.
const (
	TensorCommunicator CommunicatorKind = iota // collectives of tensors
	NumberCommunicator                         // collectives of single numbers, such as the loss
	EndsCommunicator                           // collectives of the first and the last stage, for tied parameters
	PipeCommunicator                           // messages from one stage to a neighbour
)

// Communicator is a group of ranks for which the runtime opens a communicator of its own, such as NCCL's.
type Communicator struct {
	Kind     CommunicatorKind
	Axes     []Axis // atoms in which the members differ
	Messages bool   // the members of a collective also send to each other: all-to-all, shifts
}

// GroupCommunicators returns the communicators of groups of ranks, which all stages have, given the collectives of the
// layers' functions: first those of functions and of the step's end, then those of bucket jobs. It reads the program's
// mesh and classes only.
func (p *Program) GroupCommunicators(calls []Collective) []Communicator {
	replicas := have(p.Mesh, "dp", "cp")
	var groups, buckets communicators
	for i := range calls {
		groups.addCall(p.Mesh, &calls[i])
	}
	for _, axes := range [][]Axis{replicas, append(have(p.Mesh, "pp"), replicas...), atomNames(p.Mesh)} {
		groups.add(p.Mesh, Communicator{Kind: NumberCommunicator, Axes: axes})
	}
	for _, c := range p.Classes {
		for _, axes := range [][]Axis{c.Reduce, c.Shard, c.Copies()} {
			buckets.add(p.Mesh, Communicator{Axes: axes})
		}
	}
	return append(groups, buckets...)
}

// StageCommunicators returns the communicators of a stage with others.
func (p *Program) StageCommunicators(stage int) (out []Communicator) {
	if JoinsEnds(p, stage) {
		out = append(out, Communicator{Kind: EndsCommunicator, Axes: []Axis{"pp"}})
	}
	for range Pipes(&p.Plan)[stage] {
		out = append(out, Communicator{Kind: PipeCommunicator, Axes: []Axis{"pp"}})
	}
	return out
}

// JoinsEnds reports whether a stage is the first or the last of a program, and they have tied parameters.
func JoinsEnds(p *Program, stage int) bool {
	return (stage == 0 || stage == p.Plan.PP-1) &&
		slices.ContainsFunc(p.Classes, func(c Class) bool { return c.TiedStages })
}

// WorldCommunicator returns the communicator of all ranks, from which the runtime splits all others. Nothing is sent
// over it.
func WorldCommunicator(m Mesh) Communicator {
	return Communicator{Kind: NumberCommunicator, Axes: atomNames(m)}
}

// Communicators returns the communicators of a rank of a stage of a compiled program.
func Communicators(p *Program, stage int) []Communicator {
	var calls []Collective
	for _, s := range p.Model.Variants() {
		for _, f := range s.Funcs() {
			for _, n := range f.Nodes {
				if c, ok := n.Collective(p.Mesh); ok {
					calls = append(calls, c)
				}
			}
		}
	}
	return append(p.GroupCommunicators(calls), p.StageCommunicators(stage)...)
}

// communicators are different groups of ranks.
type communicators []Communicator

func (l *communicators) addCall(m Mesh, c *Collective) {
	kind := TensorCommunicator
	if c.Numbers {
		kind = NumberCommunicator
	}
	l.add(m, Communicator{kind, c.Axes, c.Op == OpAllToAll || c.Op == OpShift})
}

// add adds a communicator, or its use to the one that has the same members.
func (l *communicators) add(m Mesh, c Communicator) {
	c.Axes = atomsInOrder(m, c.Axes)
	if m.Ranks(c.Axes) < 2 {
		return
	}
	i := slices.IndexFunc(*l, func(o Communicator) bool { return slices.Equal(o.Axes, c.Axes) })
	if i < 0 {
		*l = append(*l, c)
		return
	}
	o := &(*l)[i]
	o.Kind, o.Messages = min(o.Kind, c.Kind), o.Messages || c.Messages
}

// atomsInOrder returns the atoms of axes in the mesh's order.
func atomsInOrder(m Mesh, axes []Axis) []Axis {
	atoms := m.Expand(axes)
	var out []Axis
	for _, a := range m.Atoms {
		if slices.Contains(atoms, a.Name) {
			out = append(out, a.Name)
		}
	}
	return out
}

func atomNames(m Mesh) (out []Axis) {
	for _, a := range m.Atoms {
		out = append(out, a.Name)
	}
	return out
}

// Pipes returns the number of each stage's connections with other stages. Each border between chunks on different
// stages has one for activations and one for gradients.
func Pipes(p *Plan) []int {
	out := make([]int, p.PP)
	for chunk := range p.PP*p.VPP - 1 {
		from, to := p.StageOf(chunk), p.StageOf(chunk+1)
		if from != to {
			out[from] += 2
			out[to] += 2
		}
	}
	return out
}
