package search

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// pipelineSplit is a pipeline's split as prices read it: chunks that are alike occur once, stages say how many of each they
// have.
type pipelineSplit struct {
	kinds      []chunkKind
	kindOf     []int // of each chunk, in the model's order
	firstLayer []int // the number of each chunk's first layer in its first segment
	stages     []splitStage
	sends      int // borders between chunks that lie on different stages
	groups     []stageGroup
}

// chunkKind is what chunks that are alike hold.
type chunkKind struct {
	runs   []layerRun
	blocks int
	count  int  // chunks of this kind
	isLast bool // hands nothing on
}

// splitStage is a stage of a frame.
type splitStage struct {
	chunks         []int       // of the model
	kinds          []kindCount // of them, with how many
	firstKind      int         // the kind of the chunk that bears the stage's number
	backwardOrder  []layerRun  // layers in the order in which backward makes their gradients
	sendsGradients bool        // gradients to another stage
	layers         int
}

// kindCount is a number of chunks of a kind, or of buffers for them.
type kindCount struct{ kind, n int }

// pipelineSplitKey is what a frame depends on.
type pipelineSplitKey struct {
	stageLayers string
	pp, vpp     int
	back        bool // chunks go down the stages and back
}

func pipelineSplitKeyOf(p *ir.Plan) pipelineSplitKey {
	return pipelineSplitKey{p.StageLayers, p.PP, p.VPP, p.Schedule == "zb-v"}
}

// pipelineSplit finds a family's frame, or makes it.
func (s *searcher) pipelineSplit(f *family) *pipelineSplit {
	if f.withDetails().split != nil {
		return f.split
	}
	k := pipelineSplitKeyOf(&f.plan)
	if s.pipelineSplits[k] == nil {
		s.pipelineSplits[k] = newPipelineSplit(&f.plan, s.chunkLayers(f))
	}
	f.split = s.pipelineSplits[k]
	return f.split
}

// newPipelineSplit finds out which chunks are alike.
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
	for i := range fr.stages {
		fr.stages[i].fill(fr, i)
	}
	fr.groupStages()
	return fr
}

// numberLayers notes where each chunk's layers begin in its first segment.
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

// skipEmptySlots completes a stage from its chunks.
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

// addCount adds to the share of a kind.
func addCount(shares []kindCount, kind, n int) []kindCount { return addCountFrom(shares, 0, kind, n) }

// addCountFrom adds to the share of a kind among those from one on.
func addCountFrom(shares []kindCount, from, kind, n int) []kindCount {
	for i := from; i < len(shares); i++ {
		if shares[i].kind == kind {
			shares[i].n += n
			return shares
		}
	}
	return append(shares, kindCount{kind, n})
}

// holds are the activation buffers of each stage by the kinds of their chunks, of those stages that may be the fullest:
// a stage that has what another before it has, and no more buffers, is not among them.
func (s *searcher) fullStages(f *family) []stageBuffers {
	if f.withDetails().fullStages != nil {
		return f.fullStages
	}
	fr, buffers := s.pipelineSplit(f), s.microBatchesInFlight(&f.plan)
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
	together := slices.Clone(all) // so that what prices go through lies in one place
	for i := range f.fullStages {
		n := len(f.fullStages[i].buffers)
		f.fullStages[i].buffers, together = together[:n:n], together[n:]
	}
	return f.fullStages
}

// stageBuffers is a stage with its buffers.
type stageBuffers struct {
	stage          int
	sendsGradients bool // gradients to another stage
	buffers        []kindCount
}

// covers tells whether o's stage needs as much as that of h in any case.
func (o *stageBuffers) covers(h *stageBuffers, fr *pipelineSplit) bool {
	a, b := &fr.stages[o.stage], &fr.stages[h.stage]
	if !slices.Equal(a.backwardOrder, b.backwardOrder) || a.sendsGradients != b.sendsGradients && b.sendsGradients || len(o.buffers) != len(h.buffers) {
		return false
	}
	for i := range o.buffers {
		if o.buffers[i].kind != h.buffers[i].kind || o.buffers[i].n < h.buffers[i].n {
			return false
		}
	}
	return true
}
