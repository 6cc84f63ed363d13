package torchtitan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// functions maps models and flavors to the functions of torchtitan 0.3.0 that configure them
// (torchtitan/models/*/config_registry.py).
var functions = map[string]string{
	"llama3 debugmodel": "llama3_debugmodel", "llama3 8B": "llama3_8b", "llama3 70B": "llama3_70b",
	"llama3 405B": "llama3_405b", "qwen3 debugmodel": "qwen3_debugmodel", "qwen3 0.6B": "qwen3_0_6b",
	"qwen3 1.7B": "qwen3_1_7b", "qwen3 14B": "qwen3_14b", "qwen3 32B": "qwen3_32b", "qwen3 30B-A3B": "qwen3_30b_a3b",
	"qwen3 debugmodel_moe": "qwen3_moe_debug", "deepseek_v3 debugmodel": "deepseek_v3_debugmodel",
	"deepseek_v3 16B": "deepseek_v3_16b", "deepseek_v3 671B": "deepseek_v3_671b",
}

// spKey is a key of 0.3 that 0.2 does not have.
const spKey = parallelism + "enable_sequence_parallel"

// goneKeys are keys of 0.2 that 0.3 does not have. Recomputation has classes instead.
var goneKeys = []string{rotateKey, etpKey, acKey, acOptionKey, convertersKey}

// functionValues returns the keys that say a plan in version 0.3: those of 0.2, without the ones that are gone.
func functionValues(t *interop.Target) []interop.Value {
	out := slices.DeleteFunc(values(t), func(v interop.Value) bool { return slices.Contains(goneKeys, v.Key) })
	i := slices.IndexFunc(out, func(v interop.Value) bool { return v.Key == tpKey })
	sp := interop.Value{Key: spKey, Text: fmt.Sprint(t.Plan.SP || t.Plan.TP == 1), Plan: []string{"sp"}}
	return slices.Insert(out, i+1, sp)
}

// policies maps what is recomputed to classes of 0.3.
var policies = map[string]string{"full": "FullAC", "selective": "SelectiveAC"}

// functionRefusals returns why version 0.3 cannot run a plan.
func functionRefusals(t *interop.Target) ir.Diags {
	p := t.Plan
	whole := p
	whole.SP = whole.SP || whole.TP > 1 // 0.3 has a switch
	other := *t
	other.Plan = whole
	diags := refusals(&other)
	refuse := func(format string, args ...any) {
		diags.Addf(ir.Pos{File: "plan"}, CannotExpress, format, args...)
	}
	if every := everyOf(&p); every > 1 {
		refuse("recompute full %d blocks: torchtitan 0.3 recomputes all %d blocks or none; type: --set "+
			"plan.recompute_layers=%[2]d", p.RecomputeLayers, p.LargestChunk())
	}
	if p.CP > 1 && p.CPKind == "ring" {
		refuse("cp_kind ring: torchtitan 0.3 gathers keys and values; type: --set plan.cp_kind=gather")
	}
	if p.EP > 1 && p.ETP > 1 {
		refuse("etp %d: torchtitan 0.3 has no tensor parallelism inside experts with ep; type: --set plan.etp=1", p.ETP)
	}
	if p.Precision.FP8 {
		refuse("precision fp8: torchtitan 0.3 builds it into the model's registry; type: --set train.precision=bf16")
	}
	return diags
}

// writeFunction returns a Python module with a function that changes torchtitan's own configuration of the model.
func writeFunction(t *interop.Target) ([]byte, error) {
	diags := functionRefusals(t)
	m := modelOf(t.Job.Config)
	base := ""
	if m != nil {
		base = functions[m.name+" "+m.flavor]
	}
	if base == "" {
		diags.Addf(ir.Pos{File: "model"}, CannotExpress, "torchtitan 0.3 has no configuration function for this "+
			"model: it has "+
			"those of %s", strings.Join(functionNames(), ", "))
	}
	if err := diags.Err(); err != nil {
		return nil, err
	}
	policy := policies[t.Plan.Recompute]
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n# The optimizer, the schedule and the number of steps stay those of %s().\n",
		oneLine(t.Plan.String()), base)
	if policy != "" {
		fmt.Fprintf(&b, "from torchtitan.distributed.activation_checkpoint import %s\n", policy)
	}
	fmt.Fprintf(&b, "from torchtitan.models.%s.config_registry import %s\nfrom torchtitan.trainer import Trainer\n\n\n"+
		"def %s_planc() -> Trainer.Config:\n    config = %[2]s()\n", m.name, base, base)
	for _, v := range functionValues(t) {
		if !v.IsAbsent {
			fmt.Fprintf(&b, "    config.%s = %s\n", v.Key, pythonText(v.Text))
		}
	}
	if policy != "" {
		policy += ".Config()"
	} else {
		policy = "None"
	}
	fmt.Fprintf(&b, "    config.activation_checkpoint = %s\n    return config\n", policy)
	return []byte(b.String()), nil
}

// functionNames lists the functions.
func functionNames() []string {
	var names []string
	for _, name := range functions {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// pythonText returns a value as Python writes it. Lists and numbers are written as in JSON.
func pythonText(text string) string {
	switch {
	case text == "true":
		return "True"
	case text == "false":
		return "False"
	case text != "" && strings.Trim(text[:1], "0123456789-[") == "":
		return text
	}
	return `"` + text + `"`
}
