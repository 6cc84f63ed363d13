package price

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
)

// Bounds come from one base profile per (tp, sp). Its flops, bytes and slots are linear in the micro-batch, because
// partitioning does not depend on it: the delayed partials whose bytes it compares either all have the batch dim or
// end in accumulators. So the linear functions are exact up to alignment. Lower bounds leave out only positive terms:
// exposed bucket communication, alignment, and temporaries.

// baseKey returns the key of the profile that bounds a plan.
func baseKey(p ir.Plan) profileKey {
	k := keyOf(p)
	k.micro = 1
	return k
}

// baseProfile is a layer profile at micro-batch 1, with the slopes of everything that grows with the micro-batch.
type baseProfile struct {
	*profile
	key          profileKey
	stream       int // bytes of a block's input
	sizes        []variantSizes
	byMicro      map[int]*blocks
	workByDevice map[deviceMicro]costmodel.Seconds // compute time of all layers
	elems        []int                             // parameters per layer of each segment, on one rank
	experts      []int                             // the part of elems that belongs to experts
	tied         int                               // parameters of the last segment that the first segment owns
	calls        communicatorCalls
	attentions   []ir.LibraryAttention // that a library may compute
}

// deviceMicro is a device with a micro-batch.
type deviceMicro struct {
	device costmodel.Device
	micro  int
}

// base returns the base profile of a plan.
func (s *layerProfiler) base(plan ir.Plan) *baseProfile {
	return s.baseAt(baseKey(plan))
}

// baseAt returns the base profile of a key, and computes it if needed.
func (s *layerProfiler) baseAt(k profileKey) *baseProfile {
	if b := s.bases[k]; b != nil {
		return b
	}
	b := s.precompiler.get(s, k)
	s.bases[k] = b
	return b
}

// newBase adds slopes to a profile of micro-batch 1.
func (s *layerProfiler) newBase(k profileKey, p *profile) *baseProfile {
	b := &baseProfile{profile: p, key: k, byMicro: map[int]*blocks{}, workByDevice: map[deviceMicro]costmodel.Seconds{},
		calls: p.communicatorCalls(), attentions: libraryAttentions(p.prog)}
	variants, segs := b.prog.Model.Variants(), make([]*segmentProfile, len(p.segs))
	for i := range segs {
		segs[i] = &p.segs[i]
	}
	b.sizes = s.measureSlopes(b.prog, variants, segs)
	if !s.problem.PricedEngine().Own {
		b.useEngineSizes()
	}
	for _, seg := range variants {
		if x := seg.Forward.Value(passes.StreamName); x != nil {
			b.stream = x.Type.LocalBytes(b.prog.Mesh)
		}
	}
	for i, seg := range b.prog.Model.Segments {
		b.elems, b.experts = append(b.elems, 0), append(b.experts, 0)
		for _, w := range seg.Forward.Weights() {
			n := w.Type.LocalElems(b.prog.Mesh)
			if w.Type.Has(ir.Expert) {
				b.experts[i] += n
			}
			if w.Param.Tied == "" {
				b.elems[i] += n
			} else {
				b.tied += n
			}
		}
	}
	return b
}

// measureSlopes measures some variants of a program at micro-batch 1 and 2, returns their sizes as linear functions,
// sets the slopes of their profiles if these have none yet, and restores the variants.
func (s *layerProfiler) measureSlopes(p *ir.Program, variants []*ir.Segment,
	profiles []*segmentProfile) []variantSizes {
	dp := p.Plan.DP
	lines := measureSizes(p, variants, nil)
	resizeBatch(p, variants, 2*dp)
	lines = measureSizes(p, variants, lines)
	for _, sp := range profiles {
		for _, f := range sp.functions() {
			f.setSlopes(p.Mesh)
		}
	}
	resizeBatch(p, variants, dp)
	return lines
}

// savedValues returns the values that a function, or its inputs, add to the layer's saved activations. A value that
// is overwritten in place, or is a side of another one, adds nothing.
func savedValues(f *ir.Func, inputs []*ir.Value) []*ir.Value {
	var vs []*ir.Value
	replaced := map[*ir.Value]bool{}
	for v := range f.SideWriters() {
		replaced[v] = true
	}
	for _, n := range f.Nodes {
		if ir.InPlace(n) {
			replaced[n.Args[0]] = n.Args[0].Place == n.Outs[len(n.Outs)-1].Place
		}
	}
	add := func(all []*ir.Value) {
		for _, v := range all {
			if v.Place.Region == ir.PlaceSlot && !replaced[v] {
				vs = append(vs, v)
			}
		}
	}
	add(inputs)
	for _, n := range f.Nodes {
		if !n.Op.View() {
			add(n.Outs)
		}
	}
	return vs
}

// resizeBatch sets the batch dim of all values of some variants, and the experts' slots for that many sequences.
func resizeBatch(p *ir.Program, variants []*ir.Segment, size int) {
	for _, s := range variants {
		places := 0
		for _, f := range s.Funcs() {
			passes.Resize(f, ir.Batch, size)
			for _, n := range f.Nodes {
				passes.Resize(&ir.Func{Nodes: n.Body}, ir.Batch, size)
				if n.Op == ir.OpDispatch {
					places = passes.Places(n, p.Plan, size)
				}
			}
			if places == 0 {
				continue
			}
			passes.Resize(f, ir.SlotDim, places)
			for _, n := range f.Nodes {
				passes.Resize(&ir.Func{Nodes: n.Body}, ir.SlotDim, places)
			}
		}
	}
}

// layerRun is some consecutive layers of one segment in a chunk.
type layerRun struct {
	segment, count int
	end            bool // the embedding or the head
}

// chunkLayers returns the layers of each of a family's chunks.
func (s *layerProfiler) chunkLayers(f *Family) [][]layerRun {
	if f.withDetails().layers != nil {
		return f.layers
	}
	segs, split := s.problem.Model.Segments, f.Counts
	out := make([][]layerRun, len(split))
	f.layers = out
	at, used := 0, 0
	take := func(c, n int) {
		for n > 0 {
			k := min(n, segs[at].Count-used)
			out[c] = append(out[c], layerRun{at, k, s.isEnd(at)})
			n -= k
			used += k
			if used == segs[at].Count {
				at, used = at+1, 0
			}
		}
	}
	for c, n := range split {
		if c == 0 && s.dims.Embed {
			take(c, 1)
		}
		take(c, n)
		if c == len(split)-1 && s.dims.Head {
			take(c, 1)
		}
	}
	return out
}

// isEnd reports whether a segment is the embedding or the head.
func (s *layerProfiler) isEnd(segment int) bool {
	return segment == 0 && s.dims.Embed || segment == len(s.problem.Model.Segments)-1 && s.dims.Head
}

// scheduleKey is what the micro-batches in flight depend on.
type scheduleKey struct {
	schedule       string
	pp, vpp, micro int
}

// microBatchesInFlight returns the number of activation buffers of each chunk, in model order. Schedules are
// periodic: after the warm-up, which takes at most 3·pp micro-batches per chunk, a cycle of pp of them repeats. So
// 4·pp micro-batches show the maximum.
func (s *layerProfiler) microBatchesInFlight(p *ir.Plan) []int {
	k := scheduleKey{p.Schedule, p.PP, p.VPP, p.MicroBatches}
	if p.Schedule != "gpipe" {
		k.micro = min(k.micro, 4*p.PP)
	}
	if f := s.inFlight[k]; f != nil {
		return f
	}
	short := *p
	short.MicroBatches = k.micro
	out := make([]int, p.PP*p.VPP)
	next := make([]int, p.PP)
	each := make([][]int, p.PP)
	for st := range each {
		each[st] = s.problem.PricedEngine().InFlight(&short, st, passes.InFlight(short, st))
	}
	for c := range out {
		st := p.StageOf(c)
		out[c] = each[st][next[st]]
		next[st]++
	}
	s.inFlight[k] = out
	return out
}

// withoutRecompute returns the key with nothing recomputed.
func (k profileKey) withoutRecompute() profileKey {
	k.recompute, k.split = "none", false
	return k
}

// recomputing returns the base of a key whose blocks are recomputed: that of the key without recomputation, plus the
// recomputed variants. It shares the functions of that base, which no longer change.
func (s *layerProfiler) recomputing(k profileKey, plain *baseProfile) *baseProfile {
	plan := plain.prog.Plan
	plan.Recompute, plan.RecomputeLayers, plan.RecomputeSplit = k.recompute, 1, k.split
	prog, err := passes.Recomputed(s.problem.Model, plan, plain.prog)
	if err != nil {
		panic(fmt.Sprintf("price: a legal plan does not compile: %v: %v", plan, err))
	}
	p := &profile{prog: prog, batchRows: plain.batchRows, logits: plain.logits, castScratch: plain.castScratch,
		plain: plain.profile}
	b := *plain
	b.profile, b.key, b.sizes, b.byMicro, b.workByDevice = p, k, nil, map[int]*blocks{},
		map[deviceMicro]costmodel.Seconds{}
	var recomputed []*ir.Segment
	var profiles []*segmentProfile
	p.segs = make([]segmentProfile, len(prog.Model.Variants()))
	for i, seg := range prog.Model.Variants() {
		index := slices.IndexFunc(plain.prog.Model.Segments, func(o *ir.Segment) bool { return o.Name == seg.Name })
		if index >= 0 {
			p.segs[i] = plain.segs[index].cloneFor(seg)
			continue
		}
		p.segs[i] = s.profileVariant(prog, seg)
		p.segs[i].recomputes = true
		recomputed, profiles = append(recomputed, seg), append(profiles, &p.segs[i])
	}
	s.replaceByEngine(p, k)
	p.classifyComms()
	lines := s.measureSlopes(prog, recomputed, profiles)
	for i := range p.segs {
		if p.segs[i].recomputes {
			b.sizes, lines = append(b.sizes, lines[0]), lines[1:]
			continue
		}
		b.sizes = append(b.sizes, plain.sizes[len(b.sizes)-(len(recomputed)-len(lines))])
	}
	if !s.problem.PricedEngine().Own {
		b.useEngineSizes()
	}
	return &b
}

// cloneFor returns a copy of a variant's profile for another program that shares its functions. Collectives are
// copied, because each profile numbers their kinds.
func (p *segmentProfile) cloneFor(variant *ir.Segment) segmentProfile {
	own := *p
	own.variant = variant
	for _, f := range own.functions() {
		f.comms = slices.Clone(f.comms)
	}
	return own
}
