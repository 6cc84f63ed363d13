package space

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
	{"stage_layers: all but the even split; if blocks do not divide, all but the one whose slowest stage is fastest, " +
		"memory aside", func(p *Problem, d *Dims) bool {
		return p.PricedEngine().Even && p.IsFree("stage_layers") && p.allowsAbove1("pp", d.MaxChunks())
	}},
	{"stage_layers: all but the split whose slowest stage is fastest, memory aside", func(p *Problem, d *Dims) bool {
		return !p.PricedEngine().Even && p.IsFree("stage_layers") && p.allowsAbove1("pp", d.MaxChunks())
	}},
	{"stage_layers: with vpp above 1 each block counting as the mean of all", func(p *Problem, d *Dims) bool {
		return p.IsFree("stage_layers") && p.allowsAbove1("pp", d.MaxChunks()) &&
			p.allowsAbove1("vpp", d.MaxChunks()) && HasUnlikeBlocks(p.Model, d)
	}},
	{"recompute_every: above 1 with only some blocks recomputed", func(p *Problem, d *Dims) bool {
		groups := p.IsFree("recompute_every") || slices.ContainsFunc(p.Ints("recompute_every", nil), func(n int) bool {
			return n > 1
		})
		return p.IsFree("recompute_layers") && groups && p.Pins.Allows("recompute", "full") && d.Layers > 2
	}},
	{"recompute_split: true", func(p *Problem, d *Dims) bool {
		recomputes := p.Pins.Allows("recompute", "full") || p.Pins.Allows("recompute", "selective")
		return p.IsFree("recompute_split") && recomputes && p.allowsAbove1("tp", d.Heads()) &&
			p.Pins.Allows("sp", "false")
	}},
	{fmt.Sprintf("etp: but 1 and, of up to %d experts, tp", MaxSplitExperts), func(p *Problem, d *Dims) bool {
		return d.Experts > 0 && p.IsFree("etp") && p.allowsAbove1("tp", d.Heads()) &&
			(p.Cluster.Devices() > 3 || d.Experts > MaxSplitExperts)
	}},
	{fmt.Sprintf("moe_slack: but %v", DefaultMoESlack), func(p *Problem, d *Dims) bool {
		return d.Experts > 0 && p.IsFree("moe_slack")
	}},
	{"schedule: zb-h1 and zb-v of a model with experts", func(p *Problem, d *Dims) bool {
		return d.Experts > 0 && p.IsFree("schedule") && p.allowsAbove1("pp", d.MaxChunks())
	}},
	{fmt.Sprintf("cp: where a rank has fewer than %d positions", MinOwnPositions), func(p *Problem, d *Dims) bool {
		return p.mayChooseContext(d) && d.Seq/p.Cluster.Devices() < MinOwnPositions
	}},
}

// IsFree reports whether a key is not pinned.
func (p *Problem) IsFree(key string) bool { return p.Pins[key] == nil }

// mayChooseContext reports whether the search may choose cp: no pin requests or forbids it (see
// enumeration.contexts).
func (p *Problem) mayChooseContext(d *Dims) bool {
	kinds := p.Pins["cp_kind"]
	choice := len(kinds) == 0 || len(kinds) > 1 && slices.Contains(kinds, "none")
	return p.IsFree("cp") && choice && d.KVHeads > 0 && p.Cluster.Devices() > 1
}

// HasUnlikeBlocks reports whether the model has several kinds of blocks.
func HasUnlikeBlocks(m *ir.Model, d *Dims) bool {
	kinds := len(m.Segments)
	if d.Embed {
		kinds--
	}
	if d.Head {
		kinds--
	}
	return kinds > 1
}

// allowsAbove1 reports whether pins allow a degree above 1 and up to largest.
func (p *Problem) allowsAbove1(key string, largest int) bool {
	return slices.ContainsFunc(p.Ints(key, Divisors(p.Cluster.Devices())), func(n int) bool {
		return n > 1 && n <= largest
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
