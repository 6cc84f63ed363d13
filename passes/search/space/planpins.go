package space

import "github.com/planc-dev/planc/ir"

// dependentKeys lists the keys that can no longer keep their values when a key changes.
var dependentKeys = map[string][]string{
	"dp": {"tp", "ep", "etp", "zero_group", "micro_batches"},
	"tp": {"dp", "ep", "etp", "zero_group", "axis_order", "stage_layers", "micro_batches",
		"recompute_split"},
	"pp": {"dp", "ep", "etp", "zero_group", "axis_order", "stage_layers", "micro_batches", "vpp",
		"schedule", "recompute_layers"},
	"cp":              {"dp", "ep", "cp_kind", "zero_group", "axis_order", "stage_layers", "micro_batches"},
	"cp_kind":         {"cp", "dp", "ep", "zero_group", "axis_order", "stage_layers", "micro_batches"},
	"ep":              {"etp", "zero_group", "stage_layers"},
	"etp":             {"ep", "zero_group", "stage_layers"},
	"moe_slack":       {"stage_layers"},
	"vpp":             {"stage_layers", "schedule", "recompute_layers"},
	"schedule":        {"stage_layers", "vpp", "recompute_layers"},
	"sp":              {"stage_layers", "recompute_split"},
	"zero":            {"zero_group"},
	"micro_batch":     {"micro_batches", "stage_layers"},
	"micro_batches":   {"micro_batch", "stage_layers"},
	"recompute":       {"recompute_layers", "recompute_every", "recompute_split"},
	"recompute_every": {"recompute_layers", "recompute"},
	"stage_layers":    {"recompute_layers"},
}

// PinPlan pins everything that a plan has decided, except the keys of but and those that depend on them. Of dp and tp,
// and of the micro-batch size and count, one follows from the other.
func PinPlan(plan ir.Plan, but Pins) Pins {
	out := Pins{}
	for key, value := range KeyValues(plan) {
		switch key {
		case "precision", "offload":
		default:
			out[key] = []string{value}
		}
	}
	for key := range but {
		out = out.Without(dependentKeys[key]...)
	}
	if but["dp"] != nil && but["tp"] == nil && but["pp"] != nil {
		out = out.Without("tp")
	}
	return out.Merge(but)
}
