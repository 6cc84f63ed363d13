package codegen

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/runtime/program"
)

// lowering converts an IR program to the tables that the runtime reads.
type lowering struct {
	Input
	parameters
	groups *groupTable
	used   *declarations // what the functions use
}

// program returns the tables without those of the segments. It comes after the functions, which register groups.
func (l *lowering) program() program.Program {
	p := l.p
	out := program.Program{
		Name: l.Job, Hash: l.Hash, Elem: elemOf(arithmetic(l.p)), Types: l.stateTypes(),
		Predict: l.Predict, Model: l.Model, Settings: l.Settings,
		Mesh: l.mesh(), Params: l.params(), Stream: p.Stream,
		PrepostReceives: p.Recipe.ReceiveBuffer(p.Plan.PP, p.Stream) > 0, Batch: l.batch(),
		Tokens:             l.groups.number(p.Begin.Nodes[0].Attr.Axes),
		Loss:               l.groups.number(l.update(ir.OpLossReduce).Attr.Axes),
		World:              l.groups.number(l.update(ir.OpGradNorm).Attr.Axes),
		Optim:              optimizers[p.Recipe.Optimizer],
		Dropout:            l.drops(),
		StochasticRounding: p.Recipe.StochasticRounding,
		Experts:            l.experts(),
		Attentions:         l.used.attention,
	}
	for i := range p.Stages {
		out.Stages = append(out.Stages, l.stage(&p.Stages[i]))
	}
	for i, atoms := range l.groups.list { // last, because the calls of l.groups.index above add groups
		out.Groups = append(out.Groups, program.Group{Axes: axisNames(atoms), Tensors: l.groups.tensors[i],
			Numbers: l.groups.numbers[i], Messages: l.groups.messages[i]})
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
func (l *lowering) stateTypes() program.Types {
	p := l.p.Plan.Precision
	if p == ir.FullPrecision(arithmetic(l.p)) {
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

func (l *lowering) mesh() (out []program.Axis) {
	for _, a := range l.p.Mesh.Atoms {
		out = append(out, program.Axis{Name: string(a.Name), Size: a.Size})
	}
	return out
}

func (l *lowering) params() (out []program.Param) {
	for _, s := range l.p.Model.Segments {
		for _, w := range s.Forward.Weights() {
			switch {
			case w.Param.Tied != "":
			case len(w.Param.Sides) > 0:
				out = append(out, l.sides(s, w)...)
			default:
				out = append(out, l.param(s, w))
			}
		}
	}
	return out
}

// sides returns the parameters that lie side by side in one.
func (l *lowering) sides(s *ir.Segment, w *ir.Value) (out []program.Param) {
	at := slices.IndexFunc(w.Type.Dims, func(e ir.Extent) bool { return e.Dim == ir.Side })
	side, row := w.Type.SideSizes(l.p.Mesh)
	for _, v := range ir.SideParams(w) {
		x := l.param(s, &ir.Value{Name: v.Name, Type: v.Type, Param: w.Param})
		if at > 0 {
			x.Dims[at].Pitch = row
		}
		for _, p := range l.places(s, w) {
			p.Offset += v.First * side
			x.Places = append(x.Places, p)
		}
		out = append(out, x)
	}
	return out
}

func (l *lowering) param(s *ir.Segment, w *ir.Value) program.Param {
	out := program.Param{Name: s.Name + "." + w.Name, Layers: s.Count, Places: l.places(s, w), Decay: w.Param.Decay,
		LRMultiplier: w.Param.LRMultiplier,
		Init:         program.Init{Kind: initKinds[w.Param.Init], First: w.Param.First, Zero: w.Param.Zero}}
	if s.Numbered() {
		out.Name = s.Name + ".{layer}." + w.Name
	}
	if w.Param.Init == "normal" {
		out.Init.Std = w.Param.Std
	}
	for _, e := range w.Type.Dims {
		d := program.Dim{Name: string(e.Dim), Size: e.Size, Axes: axisNames(l.p.Mesh.Expand(e.Axes))}
		if e.Dim.Padded() && l.p.Mesh.VocabMultiple > 0 {
			d.Width = l.p.Mesh.Width(&e)
		}
		out.Dims = append(out.Dims, d)
	}
	if w.Param.Balance {
		out.Choices = choices(s.Forward)
	}
	return out
}

var initKinds = map[string]program.InitKind{"zeros": program.Zeros, "ones": program.Ones, "normal": program.Normal}

// places returns a parameter's location in its layer's run: first its own, then those of the parameters tied to it.
func (l *lowering) places(s *ir.Segment, w *ir.Value) (out []program.Place) {
	add := func(segment, param string) {
		if slot, ok := l.p.Slot(segment, param); ok {
			out = append(out, program.Place{Segment: l.segmentID(segment), Class: slot.Class, Offset: slot.Offset})
		}
	}
	add(s.Name, w.Name)
	for _, o := range l.p.Model.Segments {
		for _, t := range o.Forward.Weights() {
			if t.Param.Tied == s.Name+"."+w.Name {
				add(o.Name, t.Name)
			}
		}
	}
	return out
}

// segments returns the segments without their functions.
func (l *lowering) segments() (out []program.Segment) {
	for i, s := range l.p.Model.Segments {
		out = append(out, l.segment(s))
		out[i].GEMMs = l.used.gemms[i]
	}
	return out
}

// segment returns a segment without its functions.
func (l *lowering) segment(s *ir.Segment) program.Segment {
	out := program.Segment{Name: s.Name, Input: len(s.Backward.Outputs) > 0, Output: len(s.Forward.Outputs) > 0}
	if l.p.Uses(s) && s.Weights != nil {
		out.Gradient = l.p.KeepsGradient(s.Name)
	}
	for _, r := range l.runs(s) {
		out.Refs = append(out.Refs, program.Ref{Segment: r.segment, Class: r.class})
	}
	for _, w := range l.written(s) {
		ref, offset := l.ref(s, w.Name)
		out.FirstWrites = append(out.FirstWrites, program.FirstWrite{Ref: ref, Offset: offset,
			Elems: w.Type.LocalElems(l.p.Mesh)})
	}
	return out
}

func (l *lowering) stage(s *ir.Stage) program.Stage {
	out := program.Stage{Gather: s.Gather, Scatter: s.Scatter, Schedule: program.ScheduleText(s.Schedule),
		Arena: l.arena(s), Inputs: l.inputs(s)}
	for _, c := range s.Chunks {
		chunk := program.Chunk{Index: c.Index, Offset: c.Offset, Size: c.Size, Buffers: c.Buffers}
		for _, r := range c.Runs {
			chunk.Runs = append(chunk.Runs, program.LayerRun{Segment: l.segmentID(r.Segment), From: r.From,
				Count: r.Count, Offset: r.Offset, Stride: r.Stride, Remat: r.Remat, Split: r.Split, Every: r.Every,
				Inner: r.Inner})
		}
		out.Chunks = append(out.Chunks, chunk)
	}
	for _, b := range s.Buckets {
		out.Buckets = append(out.Buckets, l.bucket(b))
	}
	return out
}

func (l *lowering) bucket(b ir.Bucket) program.Bucket {
	c := l.p.Classes[b.Class]
	out := program.Bucket{Class: b.Class, Offset: b.Offset, Elems: b.Elems, State: b.State,
		Reduce: l.groups.index(c.Reduce), Sum: l.groups.index(c.Replicas), Shard: l.groups.index(c.Shard),
		Params: b.Params(l.p.Plan), Grads: b.Grads(l.p.Plan),
		ShardedGrads: c.ShardedGrads, ShardedParams: c.ShardedParams, TiedStages: c.TiedStages,
		ReplicatedOver: axisNames(append(slices.Clone(c.Repeat), l.p.Mesh.Expand(c.Copies())...))}
	for _, p := range b.Pieces {
		out.Pieces = append(out.Pieces, program.Piece{Segment: l.segmentID(p.Segment), Layer: p.Layer,
			Offset: p.Offset})
	}
	return out
}

// arena returns the layout of a stage's arena. On a CPU, the arena ends with the rank's scratch region.
func (l *lowering) arena(s *ir.Stage) program.Arena {
	out := program.Arena{Size: s.ArenaBytes()}
	regions := map[string]*program.Region{ir.RegionParams: &out.Params, ir.RegionGrads: &out.Grads,
		ir.RegionMaster: &out.Master, ir.RegionMoment1: &out.Moment1, ir.RegionMoment2: &out.Moment2,
		ir.RegionActivations: &out.Activations, ir.RegionWorkspace: &out.Workspace, ir.RegionComm: &out.Comm,
		ir.RegionBatch: &out.Batch, ir.RegionLogits: &out.Logits}
	for _, r := range s.Arena {
		*regions[r.Name] = program.Region{Offset: r.Offset, Size: r.Size}
	}
	if n := l.p.Scratch(); n > 0 && !l.Target.gpu() {
		out.Scratch = program.Region{Offset: out.Size, Size: n}
		out.Size += n
	}
	return out
}

// inputs returns where a stage's batch inputs begin, in bytes from the start of the arena.
func (l *lowering) inputs(s *ir.Stage) (out program.Inputs) {
	fields := map[string]*int{ir.Tokens: &out.Tokens, ir.Labels: &out.Labels, ir.Mask: &out.Mask, ir.Types: &out.Types,
		ir.Pixels: &out.Pixels, ir.Starts: &out.Starts, ir.Ends: &out.Ends}
	for _, in := range l.p.BatchInputs() {
		*fields[in.Name] = s.Region(ir.RegionBatch).Offset + in.Offset
	}
	return out
}

// batch returns what the data loader fills. All inputs are [batch, seq]; pixels have a dimension for the patch,
// too.
func (l *lowering) batch() program.BatchLayout {
	in, plan := l.p.BatchInputs(), &l.p.Plan
	rows, seq := in[0].Type.Local(l.p.Mesh)[0], in[0].Type.Dims[1]
	out := program.BatchLayout{MicroBatch: rows, MicroBatches: plan.MicroBatches, SeqLen: seq.Size, Replicas: plan.DP,
		GlobalBatch: rows * plan.MicroBatches * plan.DP}
	if l.p.Mesh.Has("dp") {
		out.ReplicaAxes = axisNames(l.p.Mesh.Expand([]ir.Axis{"dp"}))
	}
	if len(seq.Axes) > 0 {
		out.SeqAxes = axisNames(l.p.Mesh.Expand(seq.Axes))
		if isZigzag(seq) {
			out.Zigzag = l.p.Mesh.Ranks(seq.Axes[:1])
		}
	}
	for _, x := range in {
		out.Types = out.Types || x.Name == ir.Types
		out.Documents = out.Documents || x.Name == ir.Starts
		if patch, ok := x.Type.Extent(ir.Patch); ok {
			out.Patch = patch.Size
		}
	}
	return out
}

// experts returns the runtime's settings for MoE layers; the zero value if the model has none.
func (l *lowering) experts() (out program.Experts) {
	routed, aux := false, false
	for _, s := range l.p.Model.Segments {
		for _, n := range s.Forward.Nodes {
			routed = routed || n.Op == ir.OpDispatch
			aux = aux || n.Op == ir.OpAccumulate && n.Attr.Into == ir.IntoAux
		}
	}
	if routed {
		out = program.Experts{Copies: max(l.p.Plan.ETP, 1), Aux: aux}
	}
	return out
}

// update returns the node of the step's update that executes op.
func (l *lowering) update(op ir.Op) *ir.Node {
	for _, n := range l.p.Stages[0].Update.Nodes {
		if n.Op == op {
			return n
		}
	}
	panic(fmt.Sprintf("codegen: the step's end has no %v", op))
}

// drops reports whether the model has dropout.
func (l *lowering) drops() bool {
	for _, s := range l.p.Model.Segments {
		if slices.ContainsFunc(s.Forward.Nodes, func(n *ir.Node) bool { return n.Attr.Drop > 0 }) {
			return true
		}
	}
	return false
}

// choices returns the number of experts per token in a function.
func choices(f *ir.Func) int {
	for _, n := range f.Nodes {
		if n.Op == ir.OpRoute {
			return n.Outs[1].Type.Dims[len(n.Outs[1].Type.Dims)-1].Size
		}
	}
	panic("codegen: no router in " + f.Name)
}
