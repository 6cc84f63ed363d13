package search

import (
	"slices"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes/search/space"
)

// arena is the sizes of the regions of a stage's arena in bytes: closed forms that equal what pass memory lays out.
type arena struct {
	params, grads, master, moment1, moment2, activations, workspace, comm, batch, logits, scratch int
}

// region returns the size of a region by its name.
func (a *arena) region(name string) int {
	switch name {
	case ir.RegionParams:
		return a.params
	case ir.RegionGrads:
		return a.grads
	case ir.RegionMaster:
		return a.master
	case ir.RegionMoment1:
		return a.moment1
	case ir.RegionMoment2:
		return a.moment2
	case ir.RegionActivations:
		return a.activations
	case ir.RegionWorkspace:
		return a.workspace
	case ir.RegionComm:
		return a.comm
	case ir.RegionBatch:
		return a.batch
	case ir.RegionLogits:
		return a.logits
	case ir.RegionScratch:
		return a.scratch
	}
	return 0
}

// activationMemory is what a family's chunks save under one recompute choice, and what its stages need in addition.
type activationMemory struct {
	chunkKinds  []chunkMemory
	work        int // temporaries of the functions that are used
	stream      int
	logits      int
	castScratch int
}

// chunkMemory is the bytes of an activation buffer of a kind of chunk, and the spare memory of its runs.
type chunkMemory struct{ size, spare int }

// blocksOf returns the layers of a family's plans under a recompute choice.
func (s *layerProfiler) blocksOf(f *family, a *space.RecomputeChoice, each bool) *blocks {
	i := a.Variant(each)
	if f.class.withDetails().blocks[i] == nil {
		plan := f.plan
		if !a.PlainLayers() {
			a.Apply(&plan, 1)
		}
		plan.Zero = 0
		if each {
			plan.Zero = 2
		}
		f.class.blocks[i] = s.base(plan).atMicroBatch(plan.MicroBatch)
	}
	return f.class.blocks[i]
}

// measureActivations computes what chunks save with recompute count n, into k, whose memory it reuses.
func (s *memoryPricer) measureActivations(k *activationMemory, f *family, a *space.RecomputeChoice, n int, each bool) {
	b, fr := s.blocksOf(f, a, each), s.pipelineSplit(f)
	layers, every := a.LayersAndEvery(n)
	k.chunkKinds, k.work, k.stream, k.logits, k.castScratch = k.chunkKinds[:0], 0, b.stream, b.logits, b.castScratch
	for i := range fr.kinds {
		k.chunkKinds = append(k.chunkKinds, b.chunkMemory(k, &fr.kinds[i], layers, every, a.Split))
	}
}

// chunkMemory returns the memory of a kind of chunk whose first blocks are recomputed. It raises k.work to the
// temporaries of its functions.
func (b *blocks) chunkMemory(k *activationMemory, c *chunkKind, layers, every int, split bool) (out chunkMemory) {
	for i := range c.runs {
		r := &c.runs[i]
		l := &b.layers[r.segment]
		recomputed := 0
		if !r.end {
			recomputed = min(layers, r.count)
			layers -= recomputed
		}
		if rest := r.count - recomputed; rest > 0 {
			out.size += rest * l.whole
			k.work = max(k.work, l.work)
		}
		switch {
		case recomputed == 0:
		case every > 1:
			out.size += (recomputed + every - 1) / every * b.stream
			out.spare = max(out.spare, min(every, recomputed)*l.grouped-b.stream)
			k.work = max(k.work, l.work)
		case split:
			out.size += recomputed * l.rematSaved
			out.spare = max(out.spare, 2*b.stream)
			k.work = max(k.work, l.rematWork)
		default:
			out.size += recomputed * l.remat
			k.work = max(k.work, l.rematWork)
		}
	}
	if !c.isLast || b.layers[c.runs[len(c.runs)-1].segment].output {
		out.size += b.stream
	}
	return out
}

// stateMemory is the bytes of a stage's parameters, gradients and optimizer state, and of ZeRO's communication
// buffers.
type stateMemory struct{ params, grads, master, moment, commBuffers int }

// stateMemory returns the state of a family's stages under a sharding, by stage. Only the stages in
// [memoryPricer.fullStages] are filled in. Families with the same key share the slice.
func (s *memoryPricer) stateMemory(f *family, shard space.Sharding) []stateMemory {
	fr, prec := s.pipelineSplit(f), &f.plan.Precision
	st, shared := s.stateLayout(f, shard), ownersOf(&f.plan, shard.Group)
	k := stateMemoryKey{fr, st, shared, shard.Zero}
	known := s.stateMemories[k]
	if known == nil {
		known = make([]stateMemory, len(fr.stages))
		s.stateMemories[k] = known
	}
	for _, h := range s.fullStages(f) {
		n := &known[h.stage]
		if n.params == 0 {
			*n = st.memory(fr.stages[h.stage].backwardOrder, shared, shard.Zero, prec)
		}
	}
	return known
}

// stateMemoryKey is what stateMemory depends on.
type stateMemoryKey struct {
	frame *pipelineSplit
	state *stateLayout
	owners
	zero int
}

// memory returns the state of a stage with these layers.
func (st *stateLayout) memory(walk []layerRun, shared owners, zero int, prec *ir.Precision) stateMemory {
	elems, owned := st.elements(walk, shared)
	params, grads := elems, elems
	if zero >= 2 {
		grads = owned
	}
	if zero >= 3 {
		params = owned
	}
	n := stateMemory{params: roundUp(params * prec.Params.Size()), grads: roundUp(grads * prec.Grads.Size()),
		master: roundUp(owned * prec.MasterSize()), moment: roundUp(owned * prec.Moments.Size())}
	if zero >= 2 {
		gather, scatter := 0, 0
		for _, w := range walk {
			g, sc := st.commBytes(w.segment, shared, prec)
			gather, scatter = max(gather, g), max(scatter, sc)
		}
		n.commBuffers = 2 * (gather + scatter)
	}
	return n
}

// arena returns the arena of one of the stages that may be the fullest.
func (s *memoryPricer) arena(f *family, k *activationMemory, n *stateMemory, h *stageBuffers) arena {
	out := arena{params: n.params, grads: n.grads, master: n.master,
		workspace: roundUp(k.work + 2*k.stream), batch: s.batchBytes(f), logits: roundUp(k.logits)}
	if s.moments > 0 {
		out.moment1 = n.moment
	}
	if s.moments > 1 {
		out.moment2 = n.moment
	}
	if s.cpu {
		out.scratch = k.castScratch
	}
	out.activations, out.comm = k.stageMemory(n, h)
	return out
}

// stageMemory returns a stage's activations and communication buffers.
func (k *activationMemory) stageMemory(n *stateMemory, h *stageBuffers) (activations, comm int) {
	spare := 0
	for _, b := range h.buffers {
		need := &k.chunkKinds[b.kind]
		activations += b.n * need.size
		spare = max(spare, need.spare)
	}
	comm = n.commBuffers
	if h.sendsGradients {
		comm += 2 * k.stream
	}
	return roundUp(activations + spare), roundUp(comm)
}

// fullestStage returns the largest arena and its stage.
func (s *memoryPricer) fullestStage(f *family, k *activationMemory, state []stateMemory) (arena, int) {
	largest, at := -1, 0
	for i := range f.fullStages {
		if !s.problem.PricedEngine().Own {
			if t := s.engineBytes(f, k, &state[f.fullStages[i].stage], &f.fullStages[i]); t > largest {
				largest, at = t, i
			}
			continue
		}
		if t := s.stageBytes(k, &state[f.fullStages[i].stage], &f.fullStages[i]); t > largest {
			largest, at = t, i
		}
	}
	h := &f.fullStages[at]
	return s.arena(f, k, &state[h.stage], h), h.stage
}

// peakBytes returns the bytes of the fullest stage's arena.
func (s *memoryPricer) peakBytes(f *family, k *activationMemory, state []stateMemory) int {
	largest := 0
	if !s.problem.PricedEngine().Own {
		for i := range f.fullStages {
			largest = max(largest, s.engineBytes(f, k, &state[f.fullStages[i].stage], &f.fullStages[i]))
		}
		return largest
	}
	for i := range f.fullStages {
		largest = max(largest, s.stageBytes(k, &state[f.fullStages[i].stage], &f.fullStages[i]))
	}
	largest += roundUp(k.work+2*k.stream) + s.batchBytes(f) + roundUp(k.logits)
	if s.cpu {
		largest += k.castScratch
	}
	return largest
}

// stageBytes returns the bytes of the regions that differ between stages.
func (s *memoryPricer) stageBytes(k *activationMemory, n *stateMemory, h *stageBuffers) int {
	activations, comm := k.stageMemory(n, h)
	return n.params + n.grads + n.master + s.moments*n.moment + activations + comm
}

// batchBytes returns the bytes of a step's sequences of one replica.
func (s *memoryPricer) batchBytes(f *family) int {
	if f.withDetails().batchBytes == 0 {
		f.batchBytes = batchRegion(f.plan, s.baseOf(f.class, &f.plan).profile)
	}
	return f.batchBytes
}

// memoryOf returns what a rank with an arena needs.
func (s *memoryPricer) memoryOf(a *arena, plan *ir.Plan) costmodel.Memory {
	return s.problem.PricedEngine().Holds(s.problem.Cluster.MemoryOf(a.region, plan.Ranks(), s.problem.Headroom), plan)
}

// The memory of a family's plans does not depend on the speed of devices and networks. So questions about the same
// model share these results.

// memoryFitKey identifies families whose plans need the same memory, on devices with the same capacity.
type memoryFitKey struct {
	frame             *pipelineSplit
	profile           *profile // profile of layers without recomputation
	dp, micro, micros int32
	schedule          uint8
	cpu               bool
	capacity          int
}

// memoryFit is what is known about whether a family's plans fit.
type memoryFit struct {
	minBytes int          // see [memoryPricer.minBytes]; 0 if not known
	branches [4]branchFit // by [space.RecomputeChoice.Index]
}

// branchFit is the results of [memoryPricer.branchFit].
type branchFit struct {
	known        bool
	n, overBytes int
}

// fitPins are the keys that restrict which plans of a family exist. If one is pinned, nothing is shared.
var fitPins = []string{"zero", "zero_group", "recompute", "recompute_layers", "recompute_every", "recompute_split"}

// sharesFits reports whether memory results of one family hold for all families with the same key. The memory of
// other engines depends on more.
func sharesFits(p *Problem) bool {
	return p.PricedEngine().Own && (len(p.Pins) == 0 || !slices.ContainsFunc(fitPins, func(key string) bool {
		return p.Pins[key] != nil
	}))
}

// memoryFitKey returns the key of a family. ok is false if nothing is shared, or if its pipeline split was never
// computed.
func (s *memoryPricer) memoryFitKey(p *Problem, f *family) (k memoryFitKey, ok bool) {
	if !sharesFits(p) {
		return k, false
	}
	k = memoryFitKey{profile: s.baseOf(f.class, &f.plan).profile, dp: int32(f.plan.DP), micro: int32(f.plan.MicroBatch),
		micros:   int32(f.plan.MicroBatches),
		schedule: uint8(slices.Index(space.Schedules, f.plan.Schedule)), cpu: s.cpu, capacity: s.arenaCapacity}
	if f.familyDetails != nil && f.split != nil {
		k.frame = f.split
	} else {
		k.frame = s.pipelineSplits[pipelineSplitKeyOf(&f.plan)]
	}
	return k, k.frame != nil
}

// memoryFit returns the shared results of a family, a new entry if there are none; nil if nothing is shared.
func (s *memoryPricer) memoryFit(p *Problem, f *family) *memoryFit {
	if f.fit == nil {
		k, ok := s.memoryFitKey(p, f)
		if !ok {
			return nil
		}
		f.fit = s.memoryFits[k]
		if f.fit == nil {
			f.fit = &memoryFit{}
			s.memoryFits[k] = f.fit
		}
	}
	return f.fit
}

// copyFits returns a copy of the results that can change independently.
func copyFits(all map[memoryFitKey]*memoryFit) map[memoryFitKey]*memoryFit {
	out, room := make(map[memoryFitKey]*memoryFit, len(all)), make([]memoryFit, 0, len(all))
	for k, v := range all {
		room = append(room, *v)
		out[k] = &room[len(room)-1]
	}
	return out
}

// cannotFit reports whether it is already known that none of a family's plans fits.
func (s *memoryPricer) cannotFit(p *Problem, f *family) bool {
	if f.fit == nil && !f.fitSought {
		f.fitSought = true
		if k, ok := s.memoryFitKey(p, f); ok {
			f.fit = s.memoryFits[k]
		}
	}
	known := f.fit
	if known == nil {
		return false
	}
	if known.minBytes > s.arenaCapacity {
		return true
	}
	agains := s.RecomputeChoices(p, &f.plan, slices.Max(f.counts))
	return !slices.ContainsFunc(agains, func(a space.RecomputeChoice) bool {
		b := &known.branches[a.Index()]
		return !b.known || b.overBytes == 0
	})
}
