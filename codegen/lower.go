package codegen

import (
	"slices"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/runtime/program"
)

// lower converts the IR program to the tables that the runtime reads. It must be called after the functions have been
// generated, because generating them registers the groups.
func (g *generator) lower() program.Program {
	p := g.p
	out := program.Program{
		Name: g.Job, Hash: g.Hash, Elem: elemOf(g.arithmetic()), Types: g.stateTypes(),
		Predict: g.Predict, Model: g.Model, Settings: g.Settings,
		Mesh: g.lowerMesh(), Params: g.lowerParams(), Stream: p.Stream, Batch: g.lowerBatch(),
		Tokens:             g.group(p.Begin.Nodes[0].Attr.Axes),
		Loss:               g.group(g.update(ir.OpLossReduce).Attr.Axes),
		World:              g.group(g.update(ir.OpGradNorm).Attr.Axes),
		Optim:              optimizers[p.Recipe.Optimizer],
		Dropout:            g.drops(),
		StochasticRounding: p.Recipe.StochasticRounding,
		Experts:            g.lowerExperts(),
		Attentions:         g.attention,
	}
	for i := range p.Stages {
		out.Stages = append(out.Stages, g.lowerStage(&p.Stages[i]))
	}
	for _, atoms := range g.list { // last, because the calls of g.group above add groups
		out.Groups = append(out.Groups, program.Group{Axes: axisNames(atoms)})
	}
	return out
}

var optimizers = map[string]program.OptimizerKind{"adamw": program.AdamW, "adam": program.Adam, "sgd": program.SGD}

// elemOf returns the runtime's name of an element type.
func elemOf(e ir.Elem) program.Elem {
	return map[ir.Elem]program.Elem{ir.F32: program.F32, ir.F64: program.F64, ir.BF16: program.BF16,
		ir.F16: program.F16}[e]
}

// stateTypes returns the element types of compute, parameters, gradients and optimizer state. It returns the zero value
// if all of them are the same type.
func (g *generator) stateTypes() program.Types {
	p := g.p.Plan.Precision
	if p == ir.FullPrecision(g.arithmetic()) {
		return program.Types{}
	}
	return program.Types{Compute: elemOf(p.Compute), Params: elemOf(p.Params), Grads: elemOf(p.Grads),
		Reduce: elemOf(p.Reduce), Master: elemOf(p.Master), Moments: elemOf(p.Moments)}
}

func axisNames(axes []ir.Axis) (out []string) {
	for _, a := range axes {
		out = append(out, string(a))
	}
	return out
}

func (g *generator) lowerMesh() (out []program.Axis) {
	for _, a := range g.p.Mesh.Atoms {
		out = append(out, program.Axis{Name: string(a.Name), Size: a.Size})
	}
	return out
}

func (g *generator) lowerParams() (out []program.Param) {
	for _, s := range g.p.Model.Segments {
		for _, w := range s.Forward.Weights() {
			if w.Param.Tied == "" {
				out = append(out, g.lowerParam(s, w))
			}
		}
	}
	return out
}

func (g *generator) lowerParam(s *ir.Segment, w *ir.Value) program.Param {
	out := program.Param{Name: s.Name + "." + w.Name, Layers: s.Count, Places: g.places(s, w), Decay: w.Param.Decay,
		Init: program.Init{Kind: initKinds[w.Param.Init], First: w.Param.First, Zero: w.Param.Zero}}
	if s.Numbered() {
		out.Name = s.Name + ".{layer}." + w.Name
	}
	if w.Param.Init == "normal" {
		out.Init.Std = w.Param.Std
	}
	for _, e := range w.Type.Dims {
		out.Dims = append(out.Dims, program.Dim{Name: string(e.Dim), Size: e.Size,
			Axes: axisNames(g.p.Mesh.Expand(e.Axes))})
	}
	if w.Param.Balance {
		out.Choices = choices(s.Forward)
	}
	return out
}

var initKinds = map[string]program.InitKind{"zeros": program.Zeros, "ones": program.Ones, "normal": program.Normal}

// places returns a parameter's location in its layer's run: first its own, then those of the parameters tied to it.
func (g *generator) places(s *ir.Segment, w *ir.Value) (out []program.Place) {
	add := func(segment, param string) {
		if slot, ok := g.p.Slot(segment, param); ok {
			out = append(out, program.Place{Segment: g.segmentID(segment), Class: slot.Class, Offset: slot.Offset})
		}
	}
	add(s.Name, w.Name)
	for _, o := range g.p.Model.Segments {
		for _, t := range o.Forward.Weights() {
			if t.Param.Tied == s.Name+"."+w.Name {
				add(o.Name, t.Name)
			}
		}
	}
	return out
}

// lowerSegment returns a segment without its functions.
func (g *generator) lowerSegment(s *ir.Segment) program.Segment {
	out := program.Segment{Name: s.Name, Input: len(s.Backward.Outputs) > 0, Output: len(s.Forward.Outputs) > 0}
	if g.p.Uses(s) && s.Weights != nil {
		out.Gradient = g.p.KeepsGradient(s.Name)
	}
	for _, r := range g.runs(s) {
		out.Refs = append(out.Refs, program.Ref{Segment: r.segment, Class: r.class})
	}
	for _, w := range g.written(s) {
		ref, offset := g.ref(s, w.Name)
		out.FirstWrites = append(out.FirstWrites, program.FirstWrite{Ref: ref, Offset: offset,
			Elems: w.Type.LocalElems(g.p.Mesh)})
	}
	return out
}

func (g *generator) lowerStage(s *ir.Stage) program.Stage {
	out := program.Stage{Gather: s.Gather, Scatter: s.Scatter, Schedule: program.ScheduleText(s.Schedule),
		Arena: g.lowerArena(s), Inputs: g.lowerInputs(s)}
	for _, c := range s.Chunks {
		chunk := program.Chunk{Index: c.Index, Offset: c.Offset, Size: c.Size, Buffers: c.Buffers}
		for _, r := range c.Runs {
			chunk.Runs = append(chunk.Runs, program.LayerRun{Segment: g.segmentID(r.Segment), From: r.From,
				Count: r.Count, Offset: r.Offset, Stride: r.Stride, Remat: r.Remat, Split: r.Split, Every: r.Every,
				Inner: r.Inner})
		}
		out.Chunks = append(out.Chunks, chunk)
	}
	for _, b := range s.Buckets {
		out.Buckets = append(out.Buckets, g.lowerBucket(b))
	}
	return out
}

func (g *generator) lowerBucket(b ir.Bucket) program.Bucket {
	c := g.p.Classes[b.Class]
	out := program.Bucket{Class: b.Class, Offset: b.Offset, Elems: b.Elems, State: b.State,
		Reduce: g.group(c.Reduce), Sum: g.group(c.Replicas), Shard: g.group(c.Shard),
		Params: b.Params(g.p.Plan), Grads: b.Grads(g.p.Plan),
		ShardedGrads: c.Each, ShardedParams: c.Fetch, SharedByEnds: c.Ends,
		ReplicatedOver: axisNames(append(slices.Clone(c.Repeat), g.p.Mesh.Expand(c.Copies())...))}
	for _, p := range b.Pieces {
		out.Pieces = append(out.Pieces, program.Piece{Segment: g.segmentID(p.Segment), Layer: p.Layer,
			Offset: p.Offset})
	}
	return out
}

// lowerArena returns the layout of a stage's arena. On a CPU, the arena ends with the rank's scratch region.
func (g *generator) lowerArena(s *ir.Stage) program.Arena {
	out := program.Arena{Size: s.ArenaBytes()}
	regions := map[string]*program.Region{ir.RegionParams: &out.Params, ir.RegionGrads: &out.Grads,
		ir.RegionMaster: &out.Master, ir.RegionMoment1: &out.Moment1, ir.RegionMoment2: &out.Moment2,
		ir.RegionActivations: &out.Activations, ir.RegionWorkspace: &out.Workspace, ir.RegionComm: &out.Comm,
		ir.RegionBatch: &out.Batch, ir.RegionLogits: &out.Logits}
	for _, r := range s.Arena {
		*regions[r.Name] = program.Region{Offset: r.Offset, Size: r.Size}
	}
	if n := g.p.Scratch(); n > 0 && !g.gpu() {
		out.Scratch = program.Region{Offset: out.Size, Size: n}
		out.Size += n
	}
	return out
}

// lowerInputs returns where a stage's batch inputs begin, in bytes from the start of the arena.
func (g *generator) lowerInputs(s *ir.Stage) (out program.Inputs) {
	fields := map[string]*int{ir.Tokens: &out.Tokens, ir.Labels: &out.Labels, ir.Mask: &out.Mask, ir.Types: &out.Types,
		ir.Pixels: &out.Pixels}
	for _, in := range g.p.BatchInputs() {
		*fields[in.Name] = s.Region(ir.RegionBatch).Offset + in.Offset
	}
	return out
}

// lowerBatch returns what the data loader fills. All inputs are [batch, seq]; pixels have a dimension for the patch,
// too.
func (g *generator) lowerBatch() program.BatchLayout {
	in, plan := g.p.BatchInputs(), &g.p.Plan
	rows, seq := in[0].Type.Local(g.p.Mesh)[0], in[0].Type.Dims[1]
	out := program.BatchLayout{MicroBatch: rows, MicroBatches: plan.MicroBatches, SeqLen: seq.Size, Replicas: plan.DP,
		GlobalBatch: rows * plan.MicroBatches * plan.DP}
	if g.p.Mesh.Has("dp") {
		out.ReplicaAxes = axisNames(g.p.Mesh.Expand([]ir.Axis{"dp"}))
	}
	if len(seq.Axes) > 0 {
		out.SeqAxes = axisNames(g.p.Mesh.Expand(seq.Axes))
		if isZigzag(seq) {
			out.Zigzag = g.p.Mesh.Ranks(seq.Axes[:1])
		}
	}
	for _, x := range in {
		out.Types = out.Types || x.Name == ir.Types
		if patch, ok := x.Type.Extent(ir.Patch); ok {
			out.Patch = patch.Size
		}
	}
	return out
}

// lowerExperts returns the runtime's settings for MoE layers; the zero value if the model has none.
func (g *generator) lowerExperts() (out program.Experts) {
	routed, aux := false, false
	for _, s := range g.p.Model.Segments {
		for _, n := range s.Forward.Nodes {
			routed = routed || n.Op == ir.OpDispatch
			aux = aux || n.Op == ir.OpAccumulate && n.Attr.Into == ir.IntoAux
		}
	}
	if routed {
		out = program.Experts{Copies: max(g.p.Plan.ETP, 1), Aux: aux}
	}
	return out
}
