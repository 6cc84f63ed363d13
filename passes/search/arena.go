package search

import (
	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/ir"
)

// arena is the regions of a stage's arena, in bytes: closed forms of the plan's numbers, equal to what pass memory lays
// out.
type arena struct {
	params, grads, master, moment1, moment2, activations, workspace, comm, batch, logits, scratch int
}

// region is a region by its name.
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

// kept is what a family's chunks keep where blocks are recomputed in one way, and what its stages need beside it.
type kept struct {
	kinds  []kindNeed
	work   int // temporaries of the functions that are used
	stream int
	logits int
	wide   int
}

// kindNeed is what a buffer of a kind of chunk takes, and the spare memory of its runs.
type kindNeed struct{ size, spare int }

// blocksOf are the layers of a family's plans that recompute in one way.
func (s *searcher) blocksOf(f *family, a *again, each bool) *blocks {
	i := a.variant(each)
	if f.cell.looked().blocks[i] == nil {
		plan := f.plan
		if !a.plain() {
			a.set(&plan, 1)
		}
		plan.Zero = 0
		if each {
			plan.Zero = 2
		}
		f.cell.blocks[i] = s.base(plan).at(plan.MicroBatch)
	}
	return f.cell.blocks[i]
}

// variants are how many functions a layer may have: see variant.
const variants = 8

// plain tells whether no layer has functions that do anything again: groups of blocks run the same ones once more.
func (a *again) plain() bool { return a.groups || a.kind == "none" || a.kind == anyKind }

// variant numbers what functions layers have.
func (a *again) variant(each bool) (i int) {
	switch {
	case a.plain():
	case a.kind == "selective":
		i = 1
	case a.split:
		i = 3
	default:
		i = 2
	}
	if each {
		i += variants / 2
	}
	return i
}

// keep finds what chunks keep where n is the choice's number. It writes into k, whose memory it uses again.
func (s *searcher) keep(k *kept, f *family, a *again, n int, each bool) {
	b, fr := s.blocksOf(f, a, each), s.frame(f)
	layers, every := a.numbers(n)
	k.kinds, k.work, k.stream, k.logits, k.wide = k.kinds[:0], 0, b.stream, b.logits, b.wide
	for i := range fr.kinds {
		k.kinds = append(k.kinds, b.chunk(k, &fr.kinds[i], layers, every, a.split))
	}
}

// numbers are recompute_layers and recompute_every.
func (a *again) numbers(n int) (layers, every int) {
	switch {
	case a.kind == "none" || a.kind == anyKind:
		return 0, 1
	case a.groups:
		return a.layers, n
	}
	return n, 1
}

// chunk is what a kind of chunk needs, the first blocks of which are recomputed; the temporaries of its functions go to
// k.
func (b *blocks) chunk(k *kept, c *chunkKind, layers, every int, split bool) (out kindNeed) {
	for i := range c.runs {
		r := &c.runs[i]
		l := &b.layers[r.segment]
		again := 0
		if !r.end {
			again = min(layers, r.count)
			layers -= again
		}
		if rest := r.count - again; rest > 0 {
			out.size += rest * l.whole
			k.work = max(k.work, l.work)
		}
		switch {
		case again == 0:
		case every > 1:
			out.size += (again + every - 1) / every * b.stream
			out.spare = max(out.spare, min(every, again)*l.grouped-b.stream)
			k.work = max(k.work, l.work)
		case split:
			out.size += again * l.rematSaved
			out.spare = max(out.spare, 2*b.stream)
			k.work = max(k.work, l.rematWork)
		default:
			out.size += again * l.remat
			k.work = max(k.work, l.rematWork)
		}
	}
	if !c.last || b.layers[c.runs[len(c.runs)-1].segment].output {
		out.size += b.stream
	}
	return out
}

// stateNeed is what parameters, gradients and the optimizer's state of a stage take, with what ZeRO moves.
type stateNeed struct{ params, grads, master, moment, moving int }

// stateNeeds returns the needs of a family's stages under a sharding, by stage. Only the stages in [searcher.holdsOf]
// are filled in. Families that have the same key share the slice.
func (s *searcher) stateNeeds(f *family, of sharding) []stateNeed {
	fr, prec := s.frame(f), &f.plan.Precision
	st, shared := s.stateOf(f, of), ownersOf(&f.plan, of.group)
	k := needsKey{fr, st, shared, of.zero}
	known := s.stageNeeds[k]
	if known == nil {
		known = make([]stateNeed, len(fr.stages))
		s.stageNeeds[k] = known
	}
	for _, h := range s.holdsOf(f) {
		n := &known[h.stage]
		if n.params == 0 {
			*n = st.need(fr.stages[h.stage].walk, shared, of.zero, prec)
		}
	}
	return known
}

// needsKey is what needs of state depend on, beside the stage.
type needsKey struct {
	frame *frame
	state *state
	owners
	zero int
}

// need is what a stage with these layers needs.
func (st *state) need(walk []stretch, shared owners, zero int, prec *ir.Precision) stateNeed {
	elems, owned := st.held(walk, shared)
	params, grads := elems, elems
	if zero >= 2 {
		grads = owned
	}
	if zero >= 3 {
		params = owned
	}
	n := stateNeed{params: roundUp(params * prec.Params.Size()), grads: roundUp(grads * prec.Grads.Size()),
		master: roundUp(owned * prec.MasterSize()), moment: roundUp(owned * prec.Moments.Size())}
	if zero >= 2 {
		gather, scatter := 0, 0
		for _, w := range walk {
			g, sc := st.moving(w.segment, shared, prec)
			gather, scatter = max(gather, g), max(scatter, sc)
		}
		n.moving = 2 * (gather + scatter)
	}
	return n
}

// arena is that of one of the stages that may be the fullest.
func (s *searcher) arena(f *family, k *kept, n *stateNeed, h *hold) arena {
	out := arena{params: n.params, grads: n.grads, master: n.master,
		workspace: roundUp(k.work + 2*k.stream), batch: f.batch(s), logits: roundUp(k.logits)}
	if s.moments > 0 {
		out.moment1 = n.moment
	}
	if s.moments > 1 {
		out.moment2 = n.moment
	}
	if s.cpu {
		out.scratch = k.wide
	}
	out.activations, out.comm = k.stage(n, h)
	return out
}

// stage is a stage's activations, and the buffers of what it moves.
func (k *kept) stage(n *stateNeed, h *hold) (activations, comm int) {
	spare := 0
	for _, b := range h.buffers {
		need := &k.kinds[b.kind]
		activations += b.n * need.size
		spare = max(spare, need.spare)
	}
	comm = n.moving
	if h.hands {
		comm += 2 * k.stream
	}
	return roundUp(activations + spare), roundUp(comm)
}

// fullest is the arena that needs most, and the stage that it is of.
func (s *searcher) fullest(f *family, k *kept, state []stateNeed) (arena, int) {
	most, at := -1, 0
	for i := range f.held {
		if !s.problem.engine().Own {
			if t := s.foreignBytes(f, k, &state[f.held[i].stage], &f.held[i]); t > most {
				most, at = t, i
			}
			continue
		}
		if t := s.stageBytes(k, &state[f.held[i].stage], &f.held[i]); t > most {
			most, at = t, i
		}
	}
	h := &f.held[at]
	return s.arena(f, k, &state[h.stage], h), h.stage
}

// most is the bytes of the fullest stage's arena.
func (s *searcher) most(f *family, k *kept, state []stateNeed) int {
	most := 0
	if !s.problem.engine().Own {
		for i := range f.held {
			most = max(most, s.foreignBytes(f, k, &state[f.held[i].stage], &f.held[i]))
		}
		return most
	}
	for i := range f.held {
		most = max(most, s.stageBytes(k, &state[f.held[i].stage], &f.held[i]))
	}
	most += roundUp(k.work+2*k.stream) + f.batch(s) + roundUp(k.logits)
	if s.cpu {
		most += k.wide
	}
	return most
}

// stageBytes are those regions of an arena that differ between stages.
func (s *searcher) stageBytes(k *kept, n *stateNeed, h *hold) int {
	activations, comm := k.stage(n, h)
	return n.params + n.grads + n.master + s.moments*n.moment + activations + comm
}

// batch is a step's sequences of one replica.
func (f *family) batch(s *searcher) int {
	if f.looked().batchBytes == 0 {
		f.batchBytes = batchRegion(f.plan, s.baseOf(f.cell, &f.plan).profile)
	}
	return f.batchBytes
}

// memoryOf is what a rank with such an arena needs.
func (s *searcher) memoryOf(a *arena, plan *ir.Plan) costmodel.Memory {
	return s.problem.engine().Holds(s.problem.Cluster.MemoryOf(a.region, plan.Ranks(), s.problem.Headroom), plan)
}
