package search

import (
	"fmt"
	"slices"

	"github.com/planc-dev/planc/ir"
)

// restriction is a part of the legal plans that a search leaves out unless the job asks for it, so that the proof of
// optimality does not cover it. Its text begins with the key to pin. recompute_layers also controls how many blocks
// are in groups.
type restriction struct {
	text    string
	applies func(p *Problem, d *Dims) bool // whether it leaves out any plan
}

// restrictions are all restrictions, in the order in which they are reported.
var restrictions = []restriction{
	{"stage_layers: all but even splits, as the engine splits by default", func(p *Problem, d *Dims) bool {
		return p.engine().Even && p.isFree("stage_layers") && p.allowsAbove1("pp", d.maxChunks())
	}},
	{"stage_layers: all but the split whose slowest stage is fastest, memory aside", func(p *Problem, d *Dims) bool {
		return !p.engine().Even && p.isFree("stage_layers") && p.allowsAbove1("pp", d.maxChunks())
	}},
	{"stage_layers: with vpp above 1 each block counting as the mean of all", func(p *Problem, d *Dims) bool {
		return !p.engine().Even && p.isFree("stage_layers") && p.allowsAbove1("pp", d.maxChunks()) &&
			p.allowsAbove1("vpp", d.maxChunks()) && hasUnlikeBlocks(p.Model, d)
	}},
	{"recompute_every: above 1 with only some blocks recomputed", func(p *Problem, d *Dims) bool {
		groups := p.isFree("recompute_every") || slices.ContainsFunc(p.ints("recompute_every", nil), func(n int) bool {
			return n > 1
		})
		return p.isFree("recompute_layers") && groups && p.Pins.allows("recompute", "full") && d.Layers > 2
	}},
	{"recompute_split: true", func(p *Problem, d *Dims) bool {
		again := p.Pins.allows("recompute", "full") || p.Pins.allows("recompute", "selective")
		return p.isFree("recompute_split") && again && p.allowsAbove1("tp", d.Heads()) && p.Pins.allows("sp", "false")
	}},
	{fmt.Sprintf("etp: but 1 and, of up to %d experts, tp", wideExperts), func(p *Problem, d *Dims) bool {
		return d.Experts > 0 && p.isFree("etp") && p.allowsAbove1("tp", d.Heads()) &&
			(p.Cluster.Devices() > 3 || d.Experts > wideExperts)
	}},
	{fmt.Sprintf("moe_slack: but %v", expertSlack), func(p *Problem, d *Dims) bool {
		return d.Experts > 0 && p.isFree("moe_slack")
	}},
	{"schedule: zb-h1 and zb-v of a model with experts", func(p *Problem, d *Dims) bool {
		return d.Experts > 0 && p.isFree("schedule") && p.allowsAbove1("pp", d.maxChunks())
	}},
	{fmt.Sprintf("cp: where a rank has fewer than %d positions", ownPositions), func(p *Problem, d *Dims) bool {
		return p.mayChooseContext(d) && d.Seq/p.Cluster.Devices() < ownPositions
	}},
}

// isFree reports whether a key is not pinned.
func (p *Problem) isFree(key string) bool { return p.Pins[key] == nil }

// mayChooseContext reports whether the search may choose cp: no pin requests or forbids it (see
// enumeration.contexts).
func (p *Problem) mayChooseContext(d *Dims) bool {
	kinds := p.Pins["cp_kind"]
	choice := len(kinds) == 0 || len(kinds) > 1 && slices.Contains(kinds, "none")
	return p.isFree("cp") && choice && d.KVHeads > 0 && p.Cluster.Devices() > 1
}

// hasUnlikeBlocks reports whether the model has several kinds of blocks.
func hasUnlikeBlocks(m *ir.Model, d *Dims) bool {
	kinds := len(m.Segments)
	if d.Embed {
		kinds--
	}
	if d.Head {
		kinds--
	}
	return kinds > 1
}

// allowsAbove1 reports whether pins allow a degree above 1 and up to most.
func (p *Problem) allowsAbove1(key string, most int) bool {
	return slices.ContainsFunc(p.ints(key, divisors(p.Cluster.Devices())), func(n int) bool {
		return n > 1 && n <= most
	})
}

// Restricted names the legal plans that a search of the problem does not examine, so that its counts leave them out.
// Pins can request them.
func Restricted(p *Problem) []string {
	d, out := DimsOf(p.Model), []string{}
	for i := range restrictions {
		if r := &restrictions[i]; r.applies(p, &d) {
			out = append(out, r.text)
		}
	}
	return out
}
