package passes

import (
	"fmt"

	"github.com/planc-dev/planc/ir"
)

// BucketLine is the alignment of parameters in elements: 64 bytes, or 32 in a 16-bit type.
const BucketLine = 16

// A bucket is full at a quarter of the parameters, so that three quarters of the reduction can overlap backward. It has
// at least 64 Ki elements, below which latency dominates, and at most 8 Mi (32 MB in f32; DDP's default is 25 MB).
// Layers are not divided, so a bucket can exceed its limit by up to a layer.
const minBucket, maxBucket = 64 << 10, 8 << 20

// bucket lays parameters out flat, in the order in which backward computes their gradients: class by class, and in a
// class layer by layer from the last. It divides each class into buckets, and writes the functions for the start and
// end of a step: what runs before the first micro-batch, and what runs on each bucket after the last.
func bucket(p *ir.Program) error {
	sizes := layoutSlots(p)
	for i := range p.Stages {
		b := &bucketer{p: p, stage: &p.Stages[i], sizes: sizes}
		total := 0
		for class := range p.Classes {
			b.layers(class, func(_ string, _, n int) { total += n })
		}
		b.limit = BucketLimit(total)
		for class := range p.Classes {
			b.class(class)
		}
		stageFuncs(p, b.stage)
	}
	p.Begin = Begin(p)
	return nil
}

// Begin returns the function that runs before the first micro-batch.
func Begin(p *ir.Program) *ir.Func {
	replicas := majorFirst(p.Mesh, replicaAxes(p.Mesh, ir.Type{}))
	return &ir.Func{Name: ir.BeginName, Nodes: []*ir.Node{
		{Op: ir.OpCountTokens, Attr: ir.Attr{Axes: replicas}, Region: ir.Update}}}
}

// ClassSizes returns a function for the number of elements that a layer of a segment has of a class, as buckets count
// them. It needs pass zero.
func ClassSizes(p *ir.Program) func(segment string, class int) int {
	sizes := layoutSlots(p)
	return func(segment string, class int) int { return sizes[chunkKey{segment, class}] }
}

// BucketLimit returns the smallest size of a bucket of a stage with this many elements, unless its class ends before.
func BucketLimit(elems int) int { return min(max(elems/4, minBucket), maxBucket) }

// StageFuncs writes a stage's functions over its buckets.
func StageFuncs(p *ir.Program, s *ir.Stage) { stageFuncs(p, s) }

// BucketOwners returns the multiple to which the size of a class's buckets is padded: whole lines for each owner's
// part.
func BucketOwners(p *ir.Program, class int) int {
	return p.Mesh.Ranks(p.Classes[class].Shard) * BucketLine
}

// chunkKey identifies the run of one class in a layer of a segment.
type chunkKey struct {
	segment string
	class   int
}

// layoutSlots gives each parameter its offset in its layer's run, and returns the runs' sizes in elements. Parameters
// with weight decay come first: adjacent parameters with the same decay share a launch of the optimizer.
func layoutSlots(p *ir.Program) map[chunkKey]int {
	sizes := map[chunkKey]int{}
	for _, decay := range []bool{true, false} {
		for i := range p.Slots {
			s := &p.Slots[i]
			if p.Model.Segment(s.Segment).Forward.Value(s.Param).Param.Decay != decay {
				continue
			}
			k := chunkKey{s.Segment, s.Class}
			s.Offset = sizes[k]
			sizes[k] = RoundUp(s.Offset+s.Elems, BucketLine)
		}
	}
	return sizes
}

// RoundUp returns the smallest multiple of to that is at least n.
func RoundUp(n, to int) int { return (n + to - 1) / to * to }

// bucketer divides the classes of a stage into buckets.
type bucketer struct {
	p      *ir.Program
	stage  *ir.Stage
	sizes  map[chunkKey]int
	limit  int
	offset int // in the flat space
	state  int // in this rank's moments
}

// layers calls f for each layer of the stage that has parameters of a class, in the order of backward.
func (b *bucketer) layers(class int, f func(segment string, layer, elems int)) {
	for i := len(b.stage.Chunks) - 1; i >= 0; i-- {
		runs := b.stage.Chunks[i].Runs
		for j := len(runs) - 1; j >= 0; j-- {
			n := b.sizes[chunkKey{runs[j].Segment, class}]
			for layer := runs[j].From + runs[j].Count - 1; layer >= runs[j].From && n > 0; layer-- {
				f(runs[j].Segment, layer, n)
			}
		}
	}
}

func (b *bucketer) class(class int) {
	k := ir.Bucket{Class: class, Offset: b.offset}
	b.layers(class, func(segment string, layer, n int) {
		k.Pieces = append(k.Pieces, ir.Piece{Segment: segment, Layer: layer, Offset: k.Offset + k.Elems})
		k.Elems += n
		if k.Elems >= b.limit || b.p.Classes[class].ShardedGrads {
			k = b.close(k)
		}
	})
	if k.Elems > 0 {
		b.close(k)
	}
}

// close pads the bucket so that each owner's part is whole lines, and starts the next one.
func (b *bucketer) close(k ir.Bucket) ir.Bucket {
	owners := b.p.Mesh.Ranks(b.p.Classes[k.Class].Shard)
	k.Elems = RoundUp(k.Elems, owners*BucketLine)
	k.State = b.state
	b.stage.Buckets = append(b.stage.Buckets, k)
	b.offset += k.Elems
	b.state += k.Elems / owners
	return ir.Bucket{Class: k.Class, Offset: b.offset}
}

// stageFuncs writes a stage's functions over buckets.
func stageFuncs(p *ir.Program, s *ir.Stage) {
	gather, scatter := &updater{p: p, s: s, f: &ir.Func{Name: ir.GatherParamsName}},
		&updater{p: p, s: s, f: &ir.Func{Name: ir.ScatterGradsName}}
	for i, b := range s.Buckets {
		if c := p.Classes[b.Class]; c.ShardedParams {
			gather.gather(i)
		}
		if c := p.Classes[b.Class]; c.ShardedGrads {
			g, dim := scatter.gradient(i)
			g = scatter.cast(i, g, ".cast", p.Plan.Precision.Reduce)
			g = scatter.comm(g, ir.OpReduceScatter, ir.Attr{Dim: dim, Axes: c.Shard, Monoid: ir.Sum, Bucket: i})
			scatter.cast(i, g, ".back", p.Plan.Precision.Grads)
		}
	}
	if len(gather.f.Nodes) > 0 {
		s.GatherParams = gather.f
	}
	if len(scatter.f.Nodes) > 0 {
		s.ScatterGrads = scatter.f
	}
	s.Update = updateFunc(p, s)
}

// updateFunc returns a stage's func update.
func updateFunc(p *ir.Program, s *ir.Stage) *ir.Func {
	u := &updater{p: p, s: s, f: &ir.Func{Name: ir.UpdateName}}
	all := majorFirst(p.Mesh, atomNames(p.Mesh))
	u.effect(ir.OpLossReduce, ir.Attr{Axes: majorFirst(p.Mesh, append(replicaAxes(p.Mesh, ir.Type{}),
		present(p.Mesh, "pp")...))})
	grads := make([]*ir.Value, len(s.Buckets))
	for i := range s.Buckets {
		grads[i] = u.reduce(i)
	}
	u.effect(ir.OpGradNorm, ir.Attr{Axes: all})
	for i := range s.Buckets {
		u.optimize(i, grads[i])
	}
	return u.f
}

func atomNames(m ir.Mesh) []ir.Axis {
	var out []ir.Axis
	for _, a := range m.Atoms {
		out = append(out, a.Name)
	}
	return out
}

func present(m ir.Mesh, axes ...ir.Axis) []ir.Axis {
	var out []ir.Axis
	for _, a := range axes {
		if m.Has(a) {
			out = append(out, a)
		}
	}
	return out
}

// updater writes a stage's functions over buckets.
type updater struct {
	p *ir.Program
	s *ir.Stage
	f *ir.Func
}

func (u *updater) effect(op ir.Op, attr ir.Attr, args ...*ir.Value) {
	u.f.Nodes = append(u.f.Nodes, &ir.Node{Op: op, Args: args, Attr: attr, Region: ir.Update})
}

func (u *updater) flat(i int, name string, elem ir.Elem) (*ir.Value, ir.Dim) {
	d := ir.Dim(fmt.Sprintf("flat(b%d)", i))
	t := ir.Type{Elem: elem, Dims: []ir.Extent{{Dim: d, Size: u.s.Buckets[i].Elems}}}
	v := &ir.Value{Name: fmt.Sprintf("%s%d", name, i), Type: t, Kind: ir.Input}
	u.f.Inputs = append(u.f.Inputs, v)
	return v, d
}

// comm adds a collective on v, if it has axes to run over.
func (u *updater) comm(v *ir.Value, op ir.Op, attr ir.Attr) *ir.Value {
	if len(attr.Axes) == 0 {
		return v
	}
	n := &ir.Node{Op: op, Args: []*ir.Value{v}, Attr: attr, Region: ir.Update}
	out := &ir.Value{Name: v.Name + moveSuffix[op], Type: ir.CollectiveResult(v.Type, op, attr), Def: n}
	n.Outs = []*ir.Value{out}
	u.f.Nodes = append(u.f.Nodes, n)
	return out
}

// gradient returns bucket i's gradient, as the backward passes leave it.
func (u *updater) gradient(i int) (*ir.Value, ir.Dim) {
	c := u.p.Classes[u.s.Buckets[i].Class]
	g, dim := u.flat(i, "g", u.p.Plan.Precision.Grads)
	axes := append(append([]ir.Axis{}, c.Replicas...), c.Reduce...)
	if c.TiedStages {
		axes = append(axes, "pp")
	}
	if len(axes) > 0 {
		g.Type.Monoid, g.Type.Axes = ir.Sum, axes
	}
	return g, dim
}

// reduce resolves the rest of bucket i's gradient.
func (u *updater) reduce(i int) *ir.Value {
	c := u.p.Classes[u.s.Buckets[i].Class]
	v, dim := u.gradient(i)
	scatter := ir.Attr{Dim: dim, Axes: c.Shard, Monoid: ir.Sum}
	if c.ShardedGrads {
		v.Type = ir.CollectiveResult(v.Type, ir.OpReduceScatter, scatter)
	}
	if v.Type.Monoid != ir.NoMonoid {
		v = u.cast(i, v, ".cast", u.p.Plan.Precision.Reduce)
	}
	v = u.comm(v, ir.OpAllReduce, ir.Attr{Axes: c.Reduce, Monoid: ir.Sum})
	if c.TiedStages {
		v = u.comm(v, ir.OpAllReduce, ir.Attr{Axes: []ir.Axis{"pp"}, Monoid: ir.Sum, FirstLast: true})
	}
	if !c.ShardedGrads {
		v = u.comm(v, ir.OpReduceScatter, scatter)
	}
	v = u.comm(v, ir.OpAllReduce, ir.Attr{Axes: c.Copies(), Monoid: ir.Sum})
	return u.cast(i, v, ".back", u.p.Plan.Precision.Grads)
}

// cast returns v of bucket i converted to another type, or v itself if it has that type.
func (u *updater) cast(i int, v *ir.Value, suffix string, elem ir.Elem) *ir.Value {
	if v.Type.Elem == elem {
		return v
	}
	n := &ir.Node{Op: ir.OpCast, Args: []*ir.Value{v}, Attr: ir.Attr{Bucket: i}, Region: ir.Update}
	out := &ir.Value{Name: v.Name + suffix, Type: v.Type.Clone(), Def: n}
	out.Type.Elem, n.Outs = elem, []*ir.Value{out}
	u.f.Nodes = append(u.f.Nodes, n)
	return out
}

// optimize updates bucket i and, if all ranks keep all of it, gathers the owners' parts.
func (u *updater) optimize(i int, grad *ir.Value) {
	u.effect(ir.OpOptimize, ir.Attr{Bucket: i}, grad)
	if c := u.p.Classes[u.s.Buckets[i].Class]; len(c.Shard) > 0 && !c.ShardedParams {
		u.gather(i)
	}
}

// gather gathers the owners' parts of bucket i's parameters.
func (u *updater) gather(i int) {
	axes := u.p.Classes[u.s.Buckets[i].Class].Shard
	v, dim := u.flat(i, "p", u.p.Plan.Precision.Params)
	v.Type.Dims[0].Axes = axes
	u.comm(v, ir.OpAllGather, ir.Attr{Dim: dim, Axes: axes, Bucket: i})
}
