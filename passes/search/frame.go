package search

import (
	"slices"

	"github.com/planc-dev/planc/ir"
)

// frame is a pipeline's split as prices read it: chunks that are alike occur once, stages say how many of each they
// have.
type frame struct {
	kinds  []chunkKind
	kindOf []int // of each chunk, in the model's order
	first  []int // the number of each chunk's first layer in its first segment
	stages []frameStage
	sends  int // borders between chunks that lie on different stages
	turns  []turn
}

// chunkKind is what chunks that are alike hold.
type chunkKind struct {
	runs   []stretch
	blocks int
	count  int  // chunks of this kind
	last   bool // hands nothing on
}

// frameStage is a stage of a frame.
type frameStage struct {
	chunks []int     // of the model
	kinds  []share   // of them, with how many
	first  int       // the kind of the chunk that bears the stage's number
	walk   []stretch // layers in the order in which backward makes their gradients
	hands  bool      // gradients to another stage
	layers int
}

// share is a number of chunks of a kind, or of buffers for them.
type share struct{ kind, n int }

// frameKey is what a frame depends on.
type frameKey struct {
	stageLayers string
	pp, vpp     int
	back        bool // chunks go down the stages and back
}

func frameKeyOf(p *ir.Plan) frameKey {
	return frameKey{p.StageLayers, p.PP, p.VPP, p.Schedule == "zb-v"}
}

// frame finds a family's frame, or makes it.
func (s *searcher) frame(f *family) *frame {
	if f.looked().frame != nil {
		return f.frame
	}
	k := frameKeyOf(&f.plan)
	if s.frames[k] == nil {
		s.frames[k] = newFrame(&f.plan, s.cut(f))
	}
	f.frame = s.frames[k]
	return f.frame
}

// newFrame finds out which chunks are alike.
func newFrame(p *ir.Plan, cut [][]stretch) *frame {
	fr := &frame{stages: make([]frameStage, p.PP)}
	for c, runs := range cut {
		kind := slices.IndexFunc(fr.kinds, func(k chunkKind) bool {
			return slices.Equal(k.runs, runs) && k.last == (c == len(cut)-1)
		})
		if kind < 0 {
			k := chunkKind{runs: runs, last: c == len(cut)-1}
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
	fr.number(cut)
	for i := range fr.stages {
		fr.stages[i].fill(fr, i)
	}
	fr.takeTurns()
	return fr
}

// number notes where each chunk's layers begin in its first segment.
func (fr *frame) number(cut [][]stretch) {
	segment, used := 0, 0
	for _, runs := range cut {
		for j, r := range runs {
			if r.segment != segment {
				segment, used = r.segment, 0
			}
			if j == 0 {
				fr.first = append(fr.first, used)
			}
			used += r.count
		}
	}
}

// fill completes a stage from its chunks.
func (st *frameStage) fill(fr *frame, number int) {
	st.first = fr.kindOf[number]
	st.hands = st.chunks[0] > 0 || len(st.chunks) > 1
	for _, c := range st.chunks {
		st.kinds = add(st.kinds, fr.kindOf[c], 1)
	}
	for i := len(st.chunks) - 1; i >= 0; i-- {
		runs := fr.kinds[fr.kindOf[st.chunks[i]]].runs
		for j := len(runs) - 1; j >= 0; j-- {
			st.layers += runs[j].count
			if n := len(st.walk); n > 0 && st.walk[n-1].segment == runs[j].segment {
				st.walk[n-1].count += runs[j].count
			} else {
				st.walk = append(st.walk, runs[j])
			}
		}
	}
}

// add adds to the share of a kind.
func add(shares []share, kind, n int) []share { return addFrom(shares, 0, kind, n) }

// addFrom adds to the share of a kind among those from one on.
func addFrom(shares []share, from, kind, n int) []share {
	for i := from; i < len(shares); i++ {
		if shares[i].kind == kind {
			shares[i].n += n
			return shares
		}
	}
	return append(shares, share{kind, n})
}

// holds are the activation buffers of each stage by the kinds of their chunks, of those stages that may be the fullest:
// a stage that has what another before it has, and no more buffers, is not among them.
func (s *searcher) holdsOf(f *family) []hold {
	if f.looked().held != nil {
		return f.held
	}
	fr, buffers := s.frame(f), s.flights(&f.plan)
	held, all := s.held[:0], s.shares[:0]
	for i := range fr.stages {
		st := &fr.stages[i]
		h := hold{stage: i, hands: st.hands}
		from := len(all)
		for _, c := range st.chunks {
			all = addFrom(all, from, fr.kindOf[c], buffers[c])
		}
		h.buffers = all[from:]
		if slices.ContainsFunc(held, func(o hold) bool { return o.covers(&h, fr) }) {
			all = all[:from]
		} else {
			held = append(held, h)
		}
	}
	s.held, s.shares = held, all
	f.held = slices.Clone(held)
	together := slices.Clone(all) // so that what prices go through lies in one place
	for i := range f.held {
		n := len(f.held[i].buffers)
		f.held[i].buffers, together = together[:n:n], together[n:]
	}
	return f.held
}

// hold is a stage with its buffers.
type hold struct {
	stage   int
	hands   bool // gradients to another stage
	buffers []share
}

// covers tells whether o's stage needs as much as that of h in any case.
func (o *hold) covers(h *hold, fr *frame) bool {
	a, b := &fr.stages[o.stage], &fr.stages[h.stage]
	if !slices.Equal(a.walk, b.walk) || a.hands != b.hands && b.hands || len(o.buffers) != len(h.buffers) {
		return false
	}
	for i := range o.buffers {
		if o.buffers[i].kind != h.buffers[i].kind || o.buffers[i].n < h.buffers[i].n {
			return false
		}
	}
	return true
}
