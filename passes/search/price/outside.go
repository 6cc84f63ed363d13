package price

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
)

// axisOrder is the order of axes for which communicators are counted, so that a plan's memory does not depend on its
// order.
const axisOrder = "tp,cp,dp,pp"

// communicatorKey identifies plans with the same communicators, except for the number of their pipes. The layout
// covers the degrees that a layer's functions depend on.
type communicatorKey struct {
	layout            *stateLayout
	dp, pp, zeroGroup int
}

// communicatorMemory is the memory of a plan's communicators on a rank's GPU, in bytes.
type communicatorMemory struct {
	groups int // all communicators of groups of ranks, which every stage has
	pipe   int // one connection with a neighbouring stage
	ends   int // of the first and the last stage; 0 unless they have tied parameters
}

// ofStage returns the bytes on a rank of a stage.
func (c communicatorMemory) ofStage(st *splitStage) int {
	sum := c.groups + st.pipes*c.pipe
	if st.isEnd {
		sum += c.ends
	}
	return sum
}

// communicators returns the communicators of a plan under a sharding with a state layout. Only planc's own runtime on
// GPUs has any.
func (s *memoryPricer) communicators(plan *ir.Plan, shard space.Sharding, st *stateLayout) communicatorMemory {
	if !s.ownGPU {
		return communicatorMemory{}
	}
	k := communicatorKey{st, plan.DP, plan.PP, shard.Group}
	c, known := s.communicatorCache[k]
	if !known {
		sharded := *plan
		sharded.Zero, sharded.ZeroGroup = shard.Zero, shard.Group
		c = s.measureCommunicators(sharded, st.prog.Classes)
		s.communicatorCache[k] = c
	}
	return c
}

// measureCommunicators computes the bytes of a plan's communicators.
func (s *memoryPricer) measureCommunicators(plan ir.Plan, classes []ir.Class) (out communicatorMemory) {
	plan.AxisOrder = axisOrder
	mesh, err := plan.Mesh(s.dims.KVHeads, s.problem.Recipe.VocabMultiple)
	if err != nil {
		panic(fmt.Sprintf("price: a legal plan has no mesh: %v: %v", plan, err))
	}
	bytesOf := func(c *ir.Communicator) int { return int(s.problem.Cluster.CommunicatorBytes(mesh, c)) }
	p := ir.Program{Plan: plan, Mesh: mesh, Classes: classes}
	groups := p.GroupCommunicators(s.base(unrecomputed(plan)).calls.on(mesh))
	if world := ir.WorldCommunicator(mesh); mesh.Ranks(world.Axes) > 1 {
		groups = append(groups, world)
	}
	for i := range groups {
		out.groups += bytesOf(&groups[i])
	}
	if plan.PP > 1 {
		out.pipe = bytesOf(&ir.Communicator{Kind: ir.PipeCommunicator, Axes: []ir.Axis{"pp"}})
	}
	if ir.JoinsEnds(&p, 0) {
		out.ends = bytesOf(&ir.Communicator{Kind: ir.EndsCommunicator, Axes: []ir.Axis{"pp"}})
	}
	return out
}

// communicatorCalls are the collectives of a profile's functions and of sampling that may differ in their
// communicators.
type communicatorCalls []linearComm

// communicatorCalls returns the calls of a profile without recomputation, which has those of all variants.
func (p *profile) communicatorCalls() (out communicatorCalls) {
	for _, v := range p.prog.Model.Segments {
		if v.Logits == nil {
			continue
		}
		for _, n := range v.Logits.Nodes {
			if c, ok := n.Collective(p.prog.Mesh); ok {
				out = append(out, linearComm{collective: c, kind: ofSampling})
			}
		}
	}
	for i := range p.segs {
		for _, f := range p.segs[i].functions() {
			for _, c := range f.comms {
				if !slices.ContainsFunc(out, c.hasCommunicatorOf) {
					out = append(out, c)
				}
			}
		}
	}
	return out
}

// hasCommunicatorOf reports whether a call of the same profile uses the same communicator in the same way.
func (l *linearComm) hasCommunicatorOf(o linearComm) bool {
	return l.kind == o.kind && l.collective.Op == o.collective.Op && l.collective.Numbers == o.collective.Numbers
}

// ofSampling is the kind of collectives that are not a profile's.
const ofSampling = -1

// on returns the collectives on a mesh.
func (l communicatorCalls) on(m ir.Mesh) []ir.Collective {
	out := make([]ir.Collective, len(l))
	for i := range l {
		c := &l[i]
		out[i] = c.collective
		out[i].Axes = c.group.axesOn(m, c.collective.Axes)
	}
	return out
}

// libraryAttentions returns the attention of a program's forward passes that a library may compute. That of the
// gradients has the same shapes.
func libraryAttentions(p *ir.Program) (out []ir.LibraryAttention) {
	for _, v := range p.Model.Segments {
		for _, n := range v.Forward.Nodes {
			if a, ok := ir.LibraryAttentionOf(n, p.Mesh); ok && !slices.Contains(out, a) {
				out = append(out, a)
			}
		}
	}
	return out
}

// attentionWorkspace returns the bytes of the workspace that a library needs for attention at a micro-batch. All
// attention uses the same.
func (b *baseProfile) attentionWorkspace(micro int) (largest int) {
	for _, a := range b.attentions {
		largest = max(largest, int(costmodel.AttentionWorkspace(a, micro)))
	}
	return largest
}

// fp8Copies returns the bytes of the FP8 copies of the operands of the largest matmul. All matmuls use the same.
func (p *profile) fp8Copies(micro int) (largest int) {
	if !p.prog.Plan.Precision.FP8 {
		return 0
	}
	for i := range p.segs {
		for _, f := range p.segs[i].functions() {
			for j := range f.ops {
				o := &f.ops[j]
				largest = max(largest, int(o.at.FP8+float64(micro-1)*o.slope.FP8))
			}
		}
	}
	return largest
}
