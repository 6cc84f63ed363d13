package passes

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// alignBytes is the size of a cache line, to which values and regions are aligned.
const alignBytes = 64

// memory gives every value a location and lays the arena out: regions whose sizes are closed forms of the program, in
// the order of ir's region names. The values that a layer saves for backward follow its input in a buffer of its chunk,
// so that a block writes its output directly to the next one's input. A micro-batch owns a buffer from its forward to
// its backward pass. All other values live from the op that computes them to their last user, in a workspace that all
// functions share.
func memory(p *ir.Program) error {
	for _, s := range p.Model.Segments {
		if x := s.Forward.Value(StreamName); x != nil {
			p.Stream = max(p.Stream, RoundUp(x.Type.LocalBytes(p.Mesh), alignBytes))
		}
	}
	var n Needs
	for _, s := range p.Model.Variants() {
		p.Saved = append(p.Saved, placeSaved(p, s))
		for _, f := range s.Funcs() {
			if temps := placeTemps(p, f); p.Uses(s) {
				n.Work = max(n.Work, temps)
			}
		}
	}
	for _, in := range p.BatchInputs() {
		n.Batch = in.Offset + in.Size
	}
	if l := p.Model.Segments[len(p.Model.Segments)-1].Logits; l != nil {
		n.Logits = l.Outputs[0].Type.LocalBytes(p.Mesh)
	}
	for i := range p.Stages {
		if p.Stages[i].Schedule != nil { // otherwise only layers are requested
			LayoutStage(p, &p.Stages[i], n)
		}
	}
	return nil
}

// Needs are the inputs of a stage's arena in addition to the program's tables, in bytes: the functions' temporaries, a
// step's batch, and the result of the logits entry.
type Needs struct{ Work, Batch, Logits int }

// LayoutStage lays a stage out, based on the tables of the previous passes and on the program's Stream and Saved.
func LayoutStage(p *ir.Program, s *ir.Stage, n Needs) { layoutArena(p, s, layoutChunks(p, s), n) }

// layoutChunks gives each chunk its buffers and each run its part of a buffer, and returns the total size. A layer's
// input is followed by the values that it saves, then by the gradient of its output if that is saved. The last layer is
// followed by the chunk's output, unless that is the loss. The buffers are followed by the stage's spare memory.
func layoutChunks(p *ir.Program, s *ir.Stage) int {
	at, spare := 0, 0
	for i := range s.Chunks {
		c := &s.Chunks[i]
		c.Offset, c.Size = at, 0
		split := 0
		for j := range c.Runs {
			r := &c.Runs[j]
			seg := p.Kind(r)
			r.Offset = c.Size
			spare = max(spare, LayoutRun(r, p.SavedBytes(r), p.Stream, seg.Forward.Value(StreamName) != nil))
			c.Size += r.SavedParts() * r.Stride
			if r.Split {
				split += r.Count
			}
			if j == len(c.Runs)-1 && len(seg.Forward.Outputs) > 0 {
				c.Size += p.Stream
			}
		}
		spare = max(spare, SplitBuffers(split)*p.Stream)
		at += c.Buffers * c.Size
	}
	return at + spare
}

// SplitBuffers returns the number of buffers for the inputs of a chunk's layers that save only a part of their inputs.
func SplitBuffers(layers int) int { return min(2, layers) }

// LayoutRun sets the distance between the layers of a run, and returns the spare memory that it needs for groups that
// are run again: the outputs of all layers except the last, and the saved values of all.
func LayoutRun(r *ir.Run, saved, stream int, input bool) (spare int) {
	whole := saved
	if input {
		whole += stream
	}
	switch {
	case r.Every > 0:
		r.Stride, r.Inner = stream, whole
		return min(r.Every, r.Count)*whole - stream
	case r.Split:
		r.Stride = saved
		return 0
	}
	r.Stride = whole
	return 0
}

// placeSaved gives the values that outlive their function a location, and returns how much the layer saves in addition
// to its input.
func placeSaved(p *ir.Program, s *ir.Segment) ir.SavedPart {
	out := ir.SavedPart{Segment: s.Name}
	x := s.Forward.Value(StreamName)
	if x != nil {
		x.Place = ir.Place{Region: ir.PlaceX}
	}
	out.Bytes = placeNamed(p, s.Forward, savedNames(s), 0)
	placeInPlace(p, s.Forward)
	for _, o := range s.Forward.Outputs {
		o.Place = ir.Place{Region: ir.PlaceOut}
	}
	placeInputs(s.Backward, s.Forward)
	out.Bytes = placeNamed(p, s.Backward, savedForWeights(s), out.Bytes)
	for _, o := range s.Backward.Outputs {
		o.Place = ir.Place{Region: ir.PlaceDX}
	}
	if s.Weights != nil {
		placeInputs(s.Weights, s.Backward, s.Forward)
		out.Gradient = slices.ContainsFunc(s.Weights.Inputs, func(v *ir.Value) bool {
			return v.Place.Region == ir.PlaceDY
		})
	}
	if l := s.Logits; l != nil {
		if in := l.Value(StreamName); in != nil {
			in.Place = x.Place
		}
		l.Outputs[0].Place = ir.Place{Region: ir.PlaceHead}
	}
	return out
}

// placeNamed lays out a function's values with these names in the layer's slot from offset size on, and returns the
// end.
func placeNamed(p *ir.Program, f *ir.Func, names map[string]bool, size int) int {
	for _, n := range f.Nodes {
		for _, o := range n.Outs {
			if names[o.Name] {
				o.Place = ir.Place{Region: ir.PlaceSlot, Offset: size}
				size += RoundUp(o.Type.LocalBytes(p.Mesh), alignBytes)
			}
		}
	}
	return size
}

// placeInPlace gives operands of in-place ops the location of the result, if nothing reads them afterwards.
func placeInPlace(p *ir.Program, f *ir.Func) {
	for i, n := range f.Nodes {
		if !ir.InPlace(n) {
			continue
		}
		x, y := n.Args[0], n.Outs[len(n.Outs)-1]
		later := slices.ContainsFunc(f.Nodes[i+1:], func(m *ir.Node) bool { return slices.Contains(m.Args, x) })
		if y.Place.Region == ir.PlaceSlot && x.Place.Region == "" && x.Kind == ir.Temp && !x.Def.Op.View() && !later &&
			x.Type.LocalBytes(p.Mesh) == y.Type.LocalBytes(p.Mesh) {
			x.Place = y.Place
		}
	}
}

// placeInputs gives a function's inputs the locations that they have in the first earlier function that contains them.
// An input that none contains is the gradient of the block's output.
func placeInputs(f *ir.Func, before ...*ir.Func) {
	for _, v := range f.Inputs {
		if v.Kind == ir.Weight {
			continue
		}
		v.Place = ir.Place{Region: ir.PlaceDY}
		for _, b := range before {
			if o := b.Value(v.Name); o != nil {
				v.Place = o.Place
				break
			}
		}
	}
}

// live is a temporary with the indices of the op that computes it and of its last user.
type live struct {
	v           *ir.Value
	size        int
	first, last int
}

// placeTemps gives the remaining values a location, and returns the workspace that the function needs, by first fit in
// the order of first use. A view has its operand's location.
func placeTemps(p *ir.Program, f *ir.Func) int {
	placeGrads(f)
	lives := lifetimes(p, f)
	temps := make([]Temp, len(lives))
	for i, l := range lives {
		temps[i] = Temp{Bytes: l.size, First: l.first, Last: l.last, Cast: isCast(l.v)}
	}
	peak := Workspace(temps)
	for i, l := range lives {
		l.v.Place = ir.Place{Region: ir.PlaceWork, Offset: temps[i].Offset}
	}
	users := f.Users()
	for _, n := range f.Nodes {
		switch {
		case n.Op.View():
			n.Outs[0].Place = viewPlace(p, n)
		case replaces(p, n, users):
			n.Outs[0].Place = n.Args[0].Place
		case n.Op == ir.OpSides:
			for i, a := range n.Args {
				a.Place = sidePlace(p, n.Outs[0], i)
			}
		}
	}
	return peak
}

// replaces reports whether the result of an in-place op is in the workspace in the place of its operand, a temporary
// that nothing else reads.
func replaces(p *ir.Program, n *ir.Node, users map[*ir.Value]int) bool {
	if !ir.InPlace(n) || len(n.Outs) > 1 || !isTemp(n.Outs[0]) {
		return false
	}
	x := n.Args[0]
	return x.Kind == ir.Temp && !x.Def.Op.View() && users[x] == 1 && isTemp(x) &&
		x.Type.LocalBytes(p.Mesh) == n.Outs[0].Type.LocalBytes(p.Mesh)
}

// isTemp reports whether a value has no place yet, or one in the workspace.
func isTemp(v *ir.Value) bool { return v.Place.Region == "" || v.Place.Region == ir.PlaceWork }

// isCast reports whether a value is computed from parameters alone: one of them in another type.
func isCast(v *ir.Value) bool {
	isOther := func(a *ir.Value) bool { return a.Kind != ir.Weight }
	return len(v.Def.Args) > 0 && !slices.ContainsFunc(v.Def.Args, isOther)
}

// viewPlace returns the location of a view: its operand's, or where the side begins there.
func viewPlace(p *ir.Program, n *ir.Node) ir.Place {
	if n.Op == ir.OpSide {
		return sidePlace(p, n.Args[0], n.Attr.Offset)
	}
	return n.Args[0].Place
}

// sidePlace returns the location of a side of a value.
func sidePlace(p *ir.Program, whole *ir.Value, i int) ir.Place {
	at := whole.Place
	side, _ := whole.Type.SideSizes(p.Mesh)
	at.Offset += i * side * whole.Type.Elem.Size()
	return at
}

// accumulates are the ops whose kernels can add to their result, so that a gradient is written directly to its
// accumulator.
var accumulates = map[ir.Op]bool{
	ir.OpMatMul: true, ir.OpReduceSum: true, ir.OpLayerNormDGain: true, ir.OpRMSNormDGain: true, ir.OpEmbedGrad: true,
}

// placeGrads gives values that are only accumulated into a parameter the accumulator's location.
func placeGrads(f *ir.Func) {
	users := f.Users()
	for _, n := range f.Nodes {
		if n.Op != ir.OpAccumulate || n.Attr.Scalar() {
			continue
		}
		if v := n.Args[0]; v.Def != nil && users[v] == 1 && accumulates[v.Def.Op] {
			v.Place = ir.Place{Region: ir.PlaceGrad}
		}
	}
}

// lifetimes returns the values of f that are located in the workspace, in the order in which they are computed. Using a
// view, or what an op computes in place, means using its operand. A value begins when its first side is written.
func lifetimes(p *ir.Program, f *ir.Func) []*live {
	first, last := roundsOf(f)
	base := map[*ir.Value]*ir.Value{}
	lifetimeOf := make(map[*ir.Value]*live, len(f.Nodes))
	lives, users, writers := make([]*live, 0, len(f.Nodes)), f.Users(), f.SideWriters()
	for i, n := range f.Nodes {
		for _, a := range append(endedOperands(f.Nodes[:i], n, users), n.Args...) {
			for base[a] != nil {
				a = base[a]
			}
			if l := lifetimeOf[a]; l != nil {
				l.last = i
				if i >= first && i <= last && l.first < first {
					l.last = last // every round reads it
				}
			}
		}
		if n.Op.View() || replaces(p, n, users) {
			base[n.Outs[0]] = n.Args[0]
			continue
		}
		for _, o := range n.Outs {
			if w := writers[o]; w != nil {
				o = w.Outs[0]
			}
			if isTemp(o) && lifetimeOf[o] == nil {
				l := &live{v: o, size: RoundUp(o.Type.LocalBytes(p.Mesh), alignBytes), first: i, last: i}
				if carries(n) {
					l.first = first // every round adds to it
				}
				lifetimeOf[o] = l
				lives = append(lives, l)
			}
		}
	}
	slices.SortStableFunc(lives, func(a, b *live) int { return a.first - b.first })
	return lives
}

// endedOperands returns the operands of the matmul right before a node, if the node ends it: it adds to the result, or
// applies GELU or its derivative. The operands are alive until then, so that the matmul's call can write the node's
// result (package fusion).
func endedOperands(before []*ir.Node, n *ir.Node, users map[*ir.Value]int) []*ir.Value {
	at := len(before) - 1
	for at >= 0 && before[at].Op.View() {
		at--
	}
	if at < 0 || before[at].Op != ir.OpMatMul || users[before[at].Outs[0]] != 1 {
		return nil
	}
	body := n.Body
	if len(body) == 0 {
		body = []*ir.Node{n}
	}
	result := before[at].Outs[0]
	for _, m := range body {
		if !endsMatMul[m.Op] || !slices.Contains(m.Args, result) {
			continue
		}
		result = m.Outs[0]
		if slices.Contains(n.Outs, result) && isTemp(result) {
			return slices.Clone(before[at].Args)
		}
	}
	return nil
}

// endsMatMul are the ops that a matmul's call can also compute.
var endsMatMul = map[ir.Op]bool{ir.OpAdd: true, ir.OpGelu: true, ir.OpGeluGrad: true}

// Temp is a temporary of a function: its size, the indices of the op that computes it and of its last user, and its
// offset in the workspace.
type Temp struct {
	Bytes, First, Last, Offset int
	Cast                       bool // a parameter in another type, which does not grow with the micro-batch
}

// Temps returns the temporaries of a function with locations, in order of first use.
func Temps(p *ir.Program, f *ir.Func) []Temp {
	var out []Temp
	for _, l := range lifetimes(p, f) {
		out = append(out, Temp{l.v.Type.LocalBytes(p.Mesh), l.first, l.last, l.v.Place.Offset, isCast(l.v)})
	}
	return out
}

// Workspace places temporaries, which are in order of first use, in whole lines by first fit, and returns the end of
// the last one. Casts of parameters follow all others. Which of the others share memory then does not depend on the
// micro-batch, nor does which ops a GEMM can compute: it cannot write its result over its operands.
func Workspace(temps []Temp) int { return firstFit(temps, true, firstFit(temps, false, 0)) }

// firstFit places the temporaries that are casts, or those that are not, from an offset on, and returns their end.
func firstFit(temps []Temp, casts bool, from int) int {
	peak := from
	active := make([]*Temp, 0, len(temps)) // by offset
	for i := range temps {
		t := &temps[i]
		if t.Cast != casts {
			continue
		}
		active = slices.DeleteFunc(active, func(a *Temp) bool { return a.Last < t.First })
		at, gap := from, len(active)
		for j, a := range active {
			if a.Offset-at >= RoundUp(t.Bytes, alignBytes) {
				gap = j
				break
			}
			at = max(at, a.Offset+RoundUp(a.Bytes, alignBytes))
		}
		t.Offset = at
		active = slices.Insert(active, gap, t)
		peak = max(peak, t.Offset+RoundUp(t.Bytes, alignBytes))
	}
	return peak
}

// layoutArena sizes a stage's regions. The workspace ends with the two stream gradients that blocks pass back. If a
// stage sends gradients to another one, the communication region has two that wait to be received. Then come the buffer
// of a preposted receive, and those of ZeRO.
func layoutArena(p *ir.Program, s *ir.Stage, stack int, n Needs) {
	elems, state := 0, 0
	for _, b := range s.Buckets {
		elems += b.Elems
		state += b.Elems / p.Mesh.Ranks(p.Classes[b.Class].Shard)
	}
	prec := p.Plan.Precision
	params, grads := elems, elems
	if p.Plan.Zero >= 2 {
		grads = state
	}
	if p.Plan.Zero >= 3 {
		params = state
	}
	s.Gather, s.Scatter = transient(p, s)
	moments := [2]int{}
	for i := range p.Recipe.Moments() {
		moments[i] = state * prec.Moments.Size()
	}
	comm := 0
	if s.Chunks[0].Index > 0 || len(s.Chunks) > 1 {
		comm = 2 * p.Stream
	}
	comm += p.Recipe.ReceiveBuffer(p.Plan.PP, p.Stream)
	comm += 2 * (s.Gather + s.Scatter)
	offset := 0
	for _, r := range []ir.ArenaRegion{
		{Name: ir.RegionParams, Size: params * prec.Params.Size()},
		{Name: ir.RegionGrads, Size: grads * prec.Grads.Size()},
		{Name: ir.RegionMaster, Size: state * prec.MasterSize()},
		{Name: ir.RegionMoment1, Size: moments[0]},
		{Name: ir.RegionMoment2, Size: moments[1]},
		{Name: ir.RegionActivations, Size: stack},
		{Name: ir.RegionWorkspace, Size: n.Work + 2*p.Stream},
		{Name: ir.RegionComm, Size: comm},
		{Name: ir.RegionBatch, Size: n.Batch},
		{Name: ir.RegionLogits, Size: n.Logits},
	} {
		if r.Name == ir.RegionMaster && r.Size == 0 {
			continue
		}
		r.Offset, r.Size = offset, RoundUp(r.Size, alignBytes)
		offset += r.Size
		s.Arena = append(s.Arena, r)
	}
}

// transient returns the bytes that the largest block of a stage needs for parameters that are gathered for it, and for
// gradients that are scattered after it.
func transient(p *ir.Program, s *ir.Stage) (gather, scatter int) {
	for _, c := range s.Chunks {
		for _, run := range c.Runs {
			g, r := 0, 0
			for _, i := range p.LayerBuckets(s, run.Segment, run.From) { // all layers of a run are alike
				b := s.Buckets[i]
				class := p.Classes[b.Class]
				if class.ShardedParams {
					g += RoundUp(b.Elems*p.Plan.Precision.Params.Size(), alignBytes)
				}
				if class.ShardedGrads {
					r += RoundUp(b.Elems*p.Plan.Precision.Grads.Size(), alignBytes)
				}
			}
			gather, scatter = max(gather, g), max(scatter, r)
		}
	}
	return gather, scatter
}
