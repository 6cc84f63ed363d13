package space

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// Pins are the values that a plan's keys may take, by key and in the text form of [ir.Plan.Text]: "8", "true",
// "none". A key that is absent is free.
type Pins map[string][]string

// PinsOf returns a job's pins.
func PinsOf(p *spec.Pins) Pins {
	out := Pins{}
	pin(out, "dp", p.DP)
	pin(out, "tp", p.TP)
	pin(out, "pp", p.PP)
	pin(out, "cp", p.CP)
	pin(out, "ep", p.EP)
	pin(out, "etp", p.ETP)
	pin(out, "moe_slack", p.MoESlack)
	pin(out, "vpp", p.VPP)
	pin(out, "sp", p.SP)
	pin(out, "cp_kind", p.CPKind)
	pin(out, "zero", p.Zero)
	pin(out, "zero_group", p.ZeroGroup)
	pin(out, "micro_batch", p.MicroBatch)
	pin(out, "micro_batches", p.MicroBatches)
	pin(out, "schedule", p.Schedule)
	pin(out, "recompute", p.Recompute)
	pin(out, "recompute_layers", p.RecomputeLayers)
	pin(out, "recompute_every", p.RecomputeEvery)
	pin(out, "recompute_split", p.RecomputeSplit)
	for key, list := range map[string]string{"stage_layers": p.StageLayers.List(), "axis_order": p.AxisOrder.List()} {
		if list != "" {
			out[key] = []string{list}
		}
	}
	return out
}

func pin[T int | bool | string | float64](to Pins, key string, p spec.Pin[T]) {
	for _, v := range p.Values {
		to[key] = append(to[key], fmt.Sprint(v))
	}
}

// Allows reports whether a key may have a value.
func (p Pins) Allows(key, value string) bool {
	vs, pinned := p[key]
	return !pinned || slices.Contains(vs, value)
}

// Keys returns the pinned keys, sorted.
func (p Pins) Keys() []string {
	var ns []string
	for k := range p {
		ns = append(ns, k)
	}
	slices.Sort(ns)
	return ns
}

// Merge returns the pins with those of more added or replaced.
func (p Pins) Merge(more Pins) Pins {
	out := Pins{}
	for k, v := range p {
		out[k] = v
	}
	for k, v := range more {
		out[k] = v
	}
	return out
}

// Without returns the pins with some keys free.
func (p Pins) Without(keys ...string) Pins {
	out := p.Merge(nil)
	for _, k := range keys {
		delete(out, k)
	}
	return out
}

// String returns the pins as --set writes them: "plan.sp=true plan.tp=3".
func (p Pins) String() string {
	if len(p) == 0 {
		return "any values"
	}
	var parts []string
	for _, k := range p.Keys() {
		v := strings.Join(p[k], ",")
		if len(p[k]) != 1 {
			v = "[" + v + "]"
		}
		parts = append(parts, "plan."+k+"="+v)
	}
	return strings.Join(parts, " ")
}

// Words returns the pins as screens print them, by key: "tp 1|2|4".
func (p Pins) Words() []string {
	out := make([]string, 0, len(p))
	for _, k := range p.Keys() {
		out = append(out, k+" "+strings.Join(p[k], "|"))
	}
	return out
}

// KeyValues returns a plan's keys and their values as texts.
func KeyValues(p ir.Plan) map[string]string {
	kv := map[string]string{}
	for _, f := range strings.Split(p.Text(), " ") {
		k, v, _ := strings.Cut(f, "=")
		kv[k] = v
	}
	return kv
}

// Match reports whether a plan has the pinned values.
func (p Pins) Match(plan *ir.Plan) bool {
	for key, value := range KeyValues(*plan) {
		if !p.Allows(key, value) {
			return false
		}
	}
	return true
}
