package accelerate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// strategies are the sharding strategies of FSDP 1, in PyTorch's order: they may be given as numbers from 1.
var strategies = []struct {
	name    string
	zero    int
	isGroup bool // shards over the ranks of a node
}{
	{"FULL_SHARD", 3, false}, {"SHARD_GRAD_OP", 2, false}, {"NO_SHARD", 0, false}, {"HYBRID_SHARD", 3, true},
	{"HYBRID_SHARD_ZERO2", 2, true},
}

// strategy takes the sharding strategy of FSDP 1.
func (r *reader) strategy() {
	path := r.key("sharding_strategy")
	if other := r.key("reshard_after_forward"); r.Has(other) {
		r.Account(other, interop.IgnoredByTool, "fsdp_version 1 reads fsdp_sharding_strategy")
	}
	text := strings.ToUpper(r.Text(path))
	if text == "" {
		r.im.DefaultField("plan.zero", "3", "default of fsdp_sharding_strategy")
		return
	}
	var names []string
	for i, s := range strategies {
		names = append(names, s.name)
		if text != s.name && text != strconv.Itoa(i+1) {
			continue
		}
		r.TakeInt(path, "plan.zero", s.zero)
		r.isLocal = s.isGroup
		if s.isGroup && r.im.DevicesPerNode > 0 {
			r.TakeInt(path, "plan.zero_group", r.im.DevicesPerNode)
		}
		return
	}
	r.OneOf(path, names...)
}

// valuesOfFSDP1 returns the keys that say a plan in a file of FSDP 1. It has no parallelism_config, and its sharding
// strategy says what FSDP 2 says with fsdp_reshard_after_forward and with the sizes of parallelism_config.
func (r *reader) valuesOfFSDP1(t *interop.Target) (out []interop.Value) {
	for _, v := range r.ownValues(t) {
		switch {
		case v.Key == r.key("reshard_after_forward"):
			v.Key, v.Text, v.Plan = r.key("sharding_strategy"), StrategyOf(t), []string{"zero", "zero_group"}
		case v.Key == r.key("version"), v.Key == r.key("sharding_strategy"),
			strings.HasPrefix(v.Key, "parallelism_config"):
			continue
		}
		out = append(out, v)
	}
	return out
}

// StrategyOf returns the sharding strategy of FSDP 1 that says a plan.
func StrategyOf(t *interop.Target) string {
	p := &t.Plan
	for _, s := range strategies {
		if s.zero == p.Zero && (p.Zero == 0 || s.isGroup == (p.ZeroGroup < p.Replicas())) {
			return s.name
		}
	}
	return ""
}

// FSDP1 returns the function that says why FSDP 1 cannot run a plan. fix is the line that changes the file to FSDP 2.
func FSDP1(fix string) func(t *interop.Target) ir.Diags {
	return func(t *interop.Target) (diags ir.Diags) {
		p := &t.Plan
		nodes, devices := t.Nodes()
		isNode := nodes > 1 && p.ZeroGroup == devices
		switch {
		case p.TP*p.CP > 1:
			key := "tp"
			if p.TP == 1 {
				key = "cp"
			}
			diags.Addf(ir.Pos{}, CannotExpress, "plan.%s: FSDP 1 cannot express it: it has no parallelism_config; "+
				"use tp 1 and cp 1, or change the file to FSDP 2 (%s)", key, fix)
		case p.Zero > 0 && p.ZeroGroup < p.Replicas() && !isNode:
			groups := fmt.Sprintf("zero_group %d", p.Replicas())
			if nodes > 1 {
				groups = fmt.Sprintf("zero_group %d or %d", devices, p.Replicas())
			}
			diags.Addf(ir.Pos{}, CannotExpress, "plan.zero_group: FSDP 1 cannot express it: it shards over all "+
				"devices or over those of a node; use %s, or change the file to FSDP 2 (%s)", groups, fix)
		}
		return diags
	}
}
