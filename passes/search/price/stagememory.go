package price

import (
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
	"github.com/planc-dev/planc/passes/search/space"
)

// arena is the sizes of the regions of a stage's arena in bytes: closed forms that equal what pass memory lays out.
type arena struct {
	params, grads, master, moment1, moment2, activations, workspace, comm, batch, logits, scratch int
	outside                                                                                       costmodel.Outside
	precision                                                                                     ir.Precision
	zero                                                                                          int // stage of ZeRO
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
	received    int // buffer of a preposted receive
	logits      int
	castScratch int
	// outside the arena: see [blocks]; 0 unless planc's own runtime on GPUs is priced
	attention, fp8 int
}

// chunkMemory is the bytes of an activation buffer of a kind of chunk, and the spare memory of its runs.
type chunkMemory struct{ size, spare int }

// blocksOf returns the layers of a family's plans under a recompute choice.
func (s *layerProfiler) blocksOf(f *Family, a *space.RecomputeChoice, each bool) *blocks {
	i := a.Variant(each)
	if f.class.withDetails().blocks[i] == nil {
		plan := f.Plan
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
func (s *memoryPricer) measureActivations(k *activationMemory, f *Family, a *space.RecomputeChoice, n int, each bool) {
	b, fr := s.blocksOf(f, a, each), s.pipelineSplit(f)
	layers, every := a.LayersAndEvery(n)
	k.chunkKinds, k.work, k.stream, k.logits, k.castScratch = k.chunkKinds[:0], 0, b.stream, b.logits, b.castScratch
	k.received = s.problem.Recipe.ReceiveBuffer(f.Plan.PP, b.stream)
	if s.ownGPU {
		k.attention, k.fp8 = b.attention, b.fp8
	}
	for i := range fr.kinds {
		k.chunkKinds = append(k.chunkKinds, b.chunkMemory(k, &fr.kinds[i], layers, every, a.Split))
	}
}

// chunkMemory returns the memory of a kind of chunk whose first blocks are recomputed. It raises k.work to the
// temporaries of its functions.
func (b *blocks) chunkMemory(k *activationMemory, c *chunkKind, layers, every int, split bool) (out chunkMemory) {
	splitLayers := 0
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
			splitLayers += recomputed
			k.work = max(k.work, l.rematWork)
		default:
			out.size += recomputed * l.remat
			k.work = max(k.work, l.rematWork)
		}
	}
	out.spare = max(out.spare, passes.SplitBuffers(splitLayers)*b.stream)
	if !c.isLast || b.layers[c.runs[len(c.runs)-1].segment].output {
		out.size += b.stream
	}
	return out
}

// stateMemory is the bytes of a stage's parameters, gradients and optimizer state, of ZeRO's communication buffers, and
// of communicators, which are outside the arena.
type stateMemory struct {
	params, grads, master, moment, commBuffers, communicators int
	precision                                                 ir.Precision // of the state
	zero                                                      int          // stage of ZeRO
}

// stateMemory appends the state under a sharding of the stages in [memoryPricer.fullStages] to out.
func (s *memoryPricer) stateMemory(out []stateMemory, f *Family, shard space.Sharding) []stateMemory {
	fr, full, st := s.pipelineSplit(f), s.fullStages(f), s.stateLayout(f, shard)
	shared, communicators := ownersOf(&f.Plan, shard.Group), s.communicators(&f.Plan, shard, st)
	prec := planPrecision(s.problem, &f.Plan, shard.Zero)
	plain := s.problem.PricedEngine().PlainCosts(&prec, &f.Plan, shard.Zero)
	for i := range full {
		stage := &fr.stages[full[i].stage]
		n := st.memory(stage.backwardOrder, shared, shard.Zero, &prec)
		n.commBuffers += plain.Memory(st.params(stage.backwardOrder))
		n.communicators = communicators.ofStage(stage)
		out = append(out, n)
	}
	return out
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
	n := stateMemory{precision: *prec, zero: zero, params: roundUp(params * prec.Params.Size()),
		grads: roundUp(grads * prec.Grads.Size()), master: roundUp(owned * prec.MasterSize()),
		moment: roundUp(owned * prec.Moments.Size())}
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
func (s *memoryPricer) arena(f *Family, k *activationMemory, n *stateMemory, h *stageBuffers) arena {
	out := arena{precision: n.precision, zero: n.zero, params: n.params, grads: n.grads, master: n.master,
		outside:   k.outside(n),
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
	comm = n.commBuffers + k.received
	if h.sendsGradients {
		comm += 2 * k.stream
	}
	return roundUp(activations + spare), roundUp(comm)
}

// outside returns what a stage needs outside its arena.
func (k *activationMemory) outside(n *stateMemory) costmodel.Outside {
	return costmodel.Outside{Communicators: int64(n.communicators), Attention: int64(k.attention), FP8: int64(k.fp8)}
}

// fullestStage returns the largest arena and its stage.
func (s *memoryPricer) fullestStage(f *Family, k *activationMemory, state []stateMemory) (arena, int) {
	largest, at := -1, 0
	for i := range f.fullStages {
		if !s.problem.PricedEngine().Own {
			if t := s.engineBytes(f, k, &state[i], &f.fullStages[i]); t > largest {
				largest, at = t, i
			}
			continue
		}
		if t := s.stageBytes(k, &state[i], &f.fullStages[i]); t > largest {
			largest, at = t, i
		}
	}
	h := &f.fullStages[at]
	return s.arena(f, k, &state[at], h), h.stage
}

// peakBytes returns what the fullest stage needs in bytes: its arena, and what depends on the plan outside it.
func (s *memoryPricer) peakBytes(f *Family, k *activationMemory, state []stateMemory) int {
	largest := 0
	if !s.problem.PricedEngine().Own {
		for i := range f.fullStages {
			largest = max(largest, s.engineBytes(f, k, &state[i], &f.fullStages[i]))
		}
		return largest
	}
	for i := range f.fullStages {
		largest = max(largest, s.stageBytes(k, &state[i], &f.fullStages[i]))
	}
	largest += roundUp(k.work+2*k.stream) + s.batchBytes(f) + roundUp(k.logits) + k.attention + k.fp8
	if s.cpu {
		largest += k.castScratch
	}
	return largest
}

// stageBytes returns the bytes of the regions that differ between stages.
func (s *memoryPricer) stageBytes(k *activationMemory, n *stateMemory, h *stageBuffers) int {
	activations, comm := k.stageMemory(n, h)
	return n.params + n.grads + n.master + s.moments*n.moment + activations + comm + n.communicators
}

// batchBytes returns the bytes of a step's sequences of one replica.
func (s *memoryPricer) batchBytes(f *Family) int {
	return batchRegion(f.Plan, s.baseOf(f.class, &f.Plan).profile)
}

// memoryOf returns what a rank with an arena needs.
func (s *memoryPricer) memoryOf(a *arena, f *Family) costmodel.Memory {
	plan := f.Plan
	plan.Precision, plan.Zero = a.precision, a.zero
	return s.problem.PricedEngine().Holds(s.problem.Cluster.MemoryOf(a.region, a.outside, plan.Ranks(),
		s.problem.Headroom), &plan)
}
