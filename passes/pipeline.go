package passes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/ir"
)

// pipeline divides the model into chunks and assigns them to stages. The plan has the number of blocks of each chunk.
// The first chunk also has the embedding, the last one the head. Chunks go around the stages, or down and back (zb-v).
func pipeline(p *ir.Program) error {
	for _, r := range slices.Concat(ir.RecomputeRules, ir.ScheduleRules) {
		if !r.OK(&p.Plan) {
			return fmt.Errorf("%s", r.When)
		}
	}
	counts, err := stageLayers(p)
	if err != nil {
		return err
	}
	p.Stages = make([]ir.Stage, p.Plan.PP)
	c := &cutter{segments: p.Model.Segments}
	embed, head := ends(p.Model)
	for i, n := range counts {
		chunk := ir.Chunk{Index: i}
		if i == 0 && embed {
			chunk.Runs = append(chunk.Runs, c.take(1)...)
		}
		chunk.Runs = append(chunk.Runs, c.blocks(&p.Plan, n)...)
		if i == len(counts)-1 && head {
			chunk.Runs = append(chunk.Runs, c.take(1)...)
		}
		if len(chunk.Runs) == 0 {
			return fmt.Errorf("chunk %d of stage_layers %s has no blocks", i, p.Plan.StageLayers)
		}
		s := &p.Stages[p.Plan.StageOf(i)]
		s.Chunks = append(s.Chunks, chunk)
	}
	return nil
}

// stageLayers returns the plan's block counts, one per chunk.
func stageLayers(p *ir.Program) ([]int, error) {
	blocks := 0
	for _, s := range p.Model.Segments {
		blocks += s.Count
	}
	embed, head := ends(p.Model)
	for _, end := range []bool{embed, head} {
		if end {
			blocks--
		}
	}
	var counts []int
	for _, w := range strings.Split(p.Plan.StageLayers, ",") {
		n, err := strconv.Atoi(w)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("stage_layers %q must be a list of block counts", p.Plan.StageLayers)
		}
		counts = append(counts, n)
		blocks -= n
	}
	if blocks != 0 || len(counts) != p.Plan.PP*p.Plan.VPP {
		return nil, fmt.Errorf("stage_layers %s does not split the blocks over %d chunks", p.Plan.StageLayers,
			p.Plan.PP*p.Plan.VPP)
	}
	return counts, nil
}

// ends reports whether the model starts with an embedding, which takes nothing from a block, and ends with a head,
// which returns nothing.
func ends(m *ir.Model) (embed, head bool) {
	last := m.Segments[len(m.Segments)-1]
	return m.Segments[0].Forward.Value(StreamName) == nil, len(m.Segments) > 1 && len(last.Forward.Outputs) == 0
}

// cutter hands out the model's blocks in order.
type cutter struct {
	segments []*ir.Segment
	used     int // of the first segment
}

func (c *cutter) take(n int) []ir.Run {
	var runs []ir.Run
	for n > 0 {
		s := c.segments[0]
		k := min(n, s.Count-c.used)
		runs = append(runs, ir.Run{Segment: s.Name, From: c.used, Count: k})
		n -= k
		c.used += k
		if c.used == s.Count {
			c.segments, c.used = c.segments[1:], 0
		}
	}
	return runs
}

// blocks returns a chunk's n blocks, the recomputed ones first.
func (c *cutter) blocks(plan *ir.Plan, n int) []ir.Run {
	k := min(n, plan.RecomputeLayers)
	recomputed := c.take(k)
	for i := range recomputed {
		r := &recomputed[i]
		if plan.RecomputeEvery > 1 {
			r.Every = plan.RecomputeEvery
		} else {
			r.Remat, r.Split = true, plan.RecomputeSplit
		}
	}
	return append(recomputed, c.take(n-k)...)
}

// apart reports whether the first and the last chunk are on different stages.
func apart(p *ir.Program) bool { return p.Plan.StageOf(p.Plan.PP*p.Plan.VPP-1) != 0 }
