package price

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// pipelineSplit is how blocks are split over a pipeline, in the form that pricing uses. Chunks that are alike occur
// once, and stages count how many of each they have.
type pipelineSplit struct {
	kinds      []chunkKind
	kindOf     []int // kind of each chunk, in model order
	firstLayer []int // number of each chunk's first layer in its first segment
	stages     []splitStage
	sends      int // borders between chunks on different stages
	groups     []stageGroup
}

// chunkKind is the contents of chunks that are alike.
type chunkKind struct {
	runs   []layerRun
	blocks int
	count  int  // chunks of this kind
	isLast bool // sends no output
}

// splitStage is a stage of a split.
type splitStage struct {
	chunks    []int       // numbers in the model
	kinds     []kindCount // kinds of the chunks, with their counts
	firstKind int         // kind of the stage's first chunk
	// layers in the order in which the backward pass computes their gradients
	backwardOrder  []layerRun
	sendsGradients bool // to another stage
	layers         int
	pipes          int  // connections with other stages
	isEnd          bool // it is the first or the last
}

// kindCount is a number of chunks of a kind, or of buffers for them.
type kindCount struct{ kind, n int }

// pipelineSplitKey is what a split depends on.
type pipelineSplitKey struct {
	stageLayers string
	pp, vpp     int
	back        bool // chunks go down the stages and back up
}

// pipelineSplitKeyOf returns the key of a plan.
func pipelineSplitKeyOf(p *ir.Plan) pipelineSplitKey {
	return pipelineSplitKey{p.StageLayers, p.PP, p.VPP, p.Schedule == "zb-v"}
}

// pipelineSplit returns a family's split, and computes it if needed.
func (s *layerProfiler) pipelineSplit(f *Family) *pipelineSplit {
	if f.withDetails().split != nil {
		return f.split
	}
	k := pipelineSplitKeyOf(&f.Plan)
	if s.pipelineSplits[k] == nil {
		s.pipelineSplits[k] = newPipelineSplit(&f.Plan, s.chunkLayers(f))
	}
	f.split = s.pipelineSplits[k]
	return f.split
}

// newPipelineSplit finds which chunks are alike.
func newPipelineSplit(p *ir.Plan, cut [][]layerRun) *pipelineSplit {
	fr := &pipelineSplit{stages: make([]splitStage, p.PP)}
	for c, runs := range cut {
		kind := slices.IndexFunc(fr.kinds, func(k chunkKind) bool {
			return slices.Equal(k.runs, runs) && k.isLast == (c == len(cut)-1)
		})
		if kind < 0 {
			k := chunkKind{runs: runs, isLast: c == len(cut)-1}
			for _, r := range runs {
				if !r.end {
					k.blocks += r.count
				}
			}
			kind = len(fr.kinds)
			fr.kinds = append(fr.kinds, k)
		}
		fr.kinds[kind].count++
		fr.kindOf = append(fr.kindOf, kind)
		st := p.StageOf(c)
		if c > 0 && p.StageOf(c-1) != st {
			fr.sends++
		}
		fr.stages[st].chunks = append(fr.stages[st].chunks, c)
	}
	fr.numberLayers(cut)
	pipes := ir.Pipes(p)
	for i := range fr.stages {
		st := &fr.stages[i]
		st.fill(fr, i)
		st.pipes, st.isEnd = pipes[i], i == 0 || i == p.PP-1
	}
	fr.groupStages()
	return fr
}

// numberLayers records where each chunk's layers begin in its first segment.
func (fr *pipelineSplit) numberLayers(cut [][]layerRun) {
	segment, used := 0, 0
	for _, runs := range cut {
		for j, r := range runs {
			if r.segment != segment {
				segment, used = r.segment, 0
			}
			if j == 0 {
				fr.firstLayer = append(fr.firstLayer, used)
			}
			used += r.count
		}
	}
}

// fill completes a stage from its chunks.
func (st *splitStage) fill(fr *pipelineSplit, number int) {
	st.firstKind = fr.kindOf[number]
	st.sendsGradients = st.chunks[0] > 0 || len(st.chunks) > 1
	for _, c := range st.chunks {
		st.kinds = addCount(st.kinds, fr.kindOf[c], 1)
	}
	for i := len(st.chunks) - 1; i >= 0; i-- {
		runs := fr.kinds[fr.kindOf[st.chunks[i]]].runs
		for j := len(runs) - 1; j >= 0; j-- {
			st.layers += runs[j].count
			if n := len(st.backwardOrder); n > 0 && st.backwardOrder[n-1].segment == runs[j].segment {
				st.backwardOrder[n-1].count += runs[j].count
			} else {
				st.backwardOrder = append(st.backwardOrder, runs[j])
			}
		}
	}
}

// addCount adds to the count of a kind.
func addCount(shares []kindCount, kind, n int) []kindCount { return addCountFrom(shares, 0, kind, n) }

// addCountFrom adds to the count of a kind among the entries from an index on.
func addCountFrom(shares []kindCount, from, kind, n int) []kindCount {
	for i := from; i < len(shares); i++ {
		if shares[i].kind == kind {
			shares[i].n += n
			return shares
		}
	}
	return append(shares, kindCount{kind, n})
}

// fullStages returns the activation buffers of the stages that may be the fullest, by the kinds of their chunks. It
// skips a stage if an earlier one has the same contents and no fewer buffers.
func (s *memoryPricer) fullStages(f *Family) []stageBuffers {
	if f.withDetails().fullStages != nil {
		return f.fullStages
	}
	fr, buffers := s.pipelineSplit(f), s.microBatchesInFlight(&f.Plan)
	held, all := s.stageScratch[:0], s.countScratch[:0]
	for i := range fr.stages {
		st := &fr.stages[i]
		h := stageBuffers{stage: i, sendsGradients: st.sendsGradients}
		from := len(all)
		for _, c := range st.chunks {
			all = addCountFrom(all, from, fr.kindOf[c], buffers[c])
		}
		h.buffers = all[from:]
		if slices.ContainsFunc(held, func(o stageBuffers) bool { return o.covers(&h, fr) }) {
			all = all[:from]
		} else {
			held = append(held, h)
		}
	}
	s.stageScratch, s.countScratch = held, all
	f.fullStages = slices.Clone(held)
	together := slices.Clone(all) // contiguous, because pricing reads it often
	for i := range f.fullStages {
		n := len(f.fullStages[i].buffers)
		f.fullStages[i].buffers, together = together[:n:n], together[n:]
	}
	return f.fullStages
}

// stageBuffers is a stage with its activation buffers.
type stageBuffers struct {
	stage          int
	sendsGradients bool // to another stage
	buffers        []kindCount
}

// covers reports whether o's stage always needs at least as much memory as that of h.
func (o *stageBuffers) covers(h *stageBuffers, fr *pipelineSplit) bool {
	a, b := &fr.stages[o.stage], &fr.stages[h.stage]
	if !slices.Equal(a.backwardOrder, b.backwardOrder) || !a.sendsGradients && b.sendsGradients || a.pipes < b.pipes ||
		len(o.buffers) != len(h.buffers) {
		return false
	}
	for i := range o.buffers {
		if o.buffers[i].kind != h.buffers[i].kind || o.buffers[i].n < h.buffers[i].n {
			return false
		}
	}
	return true
}
