package space

import (
	"fmt"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/passes"
)

// stageRules are the rules of the pipeline.
var stageRules = []Rule{
	{"schedule", "schedule is none if pp is 1, and another one if pp is above 1",
		func(p *ir.Plan, _ *RuleContext) bool {
			return (p.PP == 1) == (p.Schedule == "none")
		},
		func(p *ir.Plan, _ *RuleContext) string {
			if p.PP == 1 {
				return fmt.Sprintf("schedule %s requires pp above 1: use schedule none", p.Schedule)
			}
			return fmt.Sprintf("schedule none requires pp 1: with pp %d, use gpipe, 1f1b, interleaved, zb-h1 or zb-v",
				p.PP)
		}},
	{"pp", "each chunk has a block, except that the first may have only the embedding and the last only the head",
		func(p *ir.Plan, s *RuleContext) bool {
			return p.PP*p.VPP <= s.MaxChunks()
		}, func(p *ir.Plan, s *RuleContext) string {
			return fmt.Sprintf("pp %d · vpp %d is %d chunks, but %d blocks with embedding and head fill at most %d",
				p.PP,
				p.VPP, p.PP*p.VPP, s.Layers, s.MaxChunks())
		}},
	{"vpp", "vpp is above 1 with schedule interleaved, 2 with zb-v, and 1 with the others",
		func(p *ir.Plan, _ *RuleContext) bool {
			switch p.Schedule {
			case "interleaved":
				return p.VPP > 1
			case "zb-v":
				return p.VPP == 2
			}
			return p.VPP == 1
		}, func(p *ir.Plan, _ *RuleContext) string {
			want := map[string]string{"interleaved": "2 or more", "zb-v": "2"}[p.Schedule]
			if want == "" {
				want = "1"
			}
			return fmt.Sprintf("schedule %s requires vpp %s, not %d", p.Schedule, want, p.VPP)
		}},
	{"schedule", "with schedule interleaved, pp divides micro_batches, because micro-batches run in groups of pp",
		func(p *ir.Plan, _ *RuleContext) bool {
			return p.Schedule != "interleaved" || p.MicroBatches%p.PP == 0
		}, func(p *ir.Plan, _ *RuleContext) string {
			return fmt.Sprintf("interleaved: pp %d must divide %d micro-batches: use a smaller micro_batch or dp, or "+
				"schedule 1f1b", p.PP, p.MicroBatches)
		}},
	{"schedule", "planc has a schedule of that name", func(p *ir.Plan, _ *RuleContext) bool {
		return p.Schedule == "none" || knownSchedule(p.Schedule)
	},
		func(p *ir.Plan, _ *RuleContext) string {
			return fmt.Sprintf("not supported yet: schedule %s", p.Schedule)
		}},
	{"stage_layers", "stage_layers lists the blocks of each of pp · vpp chunks in model order; 0 only with the " +
		"embedding " +
		"or head", goodCounts,
		func(p *ir.Plan, s *RuleContext) string {
			return fmt.Sprintf("stage_layers %s %s: with pp %d · vpp %d, list the blocks of each of %d chunks, %d in "+
				"total, each above 0 except for a chunk with the embedding or the head",
				p.StageLayers, wrongCounts(p, s), p.PP, p.VPP, p.PP*p.VPP, s.Layers)
		}},
	{"pp", fmt.Sprintf("a pipeline has up to %d stages of up to %d chunks, and up to %d chunks in total", MaxStages,
		MaxVPP, MaxChunks), shallow,
		func(p *ir.Plan, _ *RuleContext) string {
			return fmt.Sprintf("pp %d · vpp %d exceeds the limits: up to %d stages of up to %d chunks, and up to %d "+
				"chunks in total", p.PP, p.VPP, MaxStages, MaxVPP, MaxChunks)
		}},
}

// knownSchedule reports whether the passes have a pipeline schedule of that name.
func knownSchedule(name string) bool { return name != "none" && passes.HasSchedule(name) }

// goodCounts checks stage_layers, unless there are too many chunks anyway.
func goodCounts(p *ir.Plan, s *RuleContext) bool {
	return p.PP*p.VPP > s.MaxChunks() || wrongCounts(p, s) == ""
}

// wrongCounts returns what is wrong with stage_layers; "" if nothing is.
func wrongCounts(p *ir.Plan, s *RuleContext) string {
	ns := s.countsOf(p)
	sum := 0
	for i, n := range ns {
		sum += n
		if n == 0 && !(i == 0 && s.Embed) && !(i == len(ns)-1 && s.Head) && len(ns) == p.PP*p.VPP {
			return fmt.Sprintf("leaves chunk %d empty", i)
		}
	}
	switch {
	case ns == nil:
		return "is not a list of counts"
	case sum != s.Layers: // for any pp and vpp
		return fmt.Sprintf("adds up to %d", sum)
	case len(ns) != p.PP*p.VPP:
		return fmt.Sprintf("has %d counts", len(ns))
	}
	return ""
}

// countsOf returns a plan's stage_layers as numbers.
func (s *RuleContext) countsOf(p *ir.Plan) []int {
	if ns, met := s.ParsedCounts[p.StageLayers]; met {
		return ns
	}
	ns := ParseCounts(p)
	if s.ParsedCounts != nil {
		s.ParsedCounts[p.StageLayers] = ns
	}
	return ns
}

// MaxChunks returns the largest number of chunks that the blocks, the embedding and the head can fill.
func (d *Dims) MaxChunks() int {
	n := d.Layers
	if d.Embed {
		n++
	}
	if d.Head {
		n++
	}
	return n
}

// EvenSplit splits blocks evenly over chunks, without regard to their cost. If there are too few blocks, the last chunk
// and then the first get none, because they may hold the head and the embedding.
func EvenSplit(blocks, chunks int) []int {
	out := make([]int, chunks)
	if blocks < chunks && blocks >= chunks-2 {
		for c := range out {
			if c > 0 && c < chunks-1 || c == 0 && blocks == chunks-1 {
				out[c] = 1
			}
		}
		return out
	}
	for c := range out {
		out[c] = blocks*(c+1)/chunks - blocks*c/chunks
	}
	return out
}
