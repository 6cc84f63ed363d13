package bridge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/megatron"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
)

// values returns the keys that say a plan. A key that must not have a value has its default in a run_config.yaml, which
// has every key.
func values(t *interop.Target) (out []interop.Value) {
	for _, v := range megatron.SettingValues(t) {
		if v.Env {
			out = append(out, v)
			continue
		}
		path := pathOf(v.Key)
		if path == "" {
			continue // a spelling of Megatron-LM that Megatron-Bridge does not have
		}
		v.Key = path
		if v.IsAbsent {
			v.Text, v.Default = "", "null"
			if row, ok := Keys.Find(path); ok && row.Default != "" {
				v.Default = row.Default
			}
		}
		out = append(out, v)
	}
	return append(out, interop.Value{Key: "mixed_precision", Text: recipeOf(&t.Plan), Plan: []string{"precision"}})
}

// recipeOf returns the recipe of a plan's types.
func recipeOf(p *ir.Plan) string {
	switch {
	case p.Precision.FP8:
		return "bf16_with_fp8_current_scaling_mixed"
	case p.Precision.Compute == ir.F16:
		return "fp16_mixed"
	case p.Precision.Compute == ir.BF16:
		return "bf16_mixed"
	}
	return "null"
}

// write returns a file of overrides for a recipe of Megatron-Bridge.
func write(t *interop.Target) ([]byte, error) {
	if err := megatron.Refusals(t).Err(); err != nil {
		return nil, err
	}
	model, err := megatron.ModelSettings(t.Job.Config, t.Job.Train.SeqLen)
	if err != nil {
		return nil, err
	}
	var list []interop.Value
	for _, s := range model {
		path := pathOf(s.Dest)
		if path == "" {
			continue
		}
		value := s.Value
		if s.Dest == "untie_embeddings_and_output_weights" {
			value = "false"
		}
		list = append(list, interop.Value{Key: path, Text: value})
	}
	list = slices.Concat(list, values(t), recipe(t))
	data, err := tree.Write(tree.YAML, list)
	var head strings.Builder
	fmt.Fprintf(&head, "# %s\n# Overrides for a recipe of Megatron-Bridge: pretrain.py --config-file THIS_FILE\n",
		strings.Join(strings.Fields(t.Plan.String()), " "))
	for _, v := range list {
		if v.Env && !v.IsAbsent {
			fmt.Fprintf(&head, "# export %s=%s: %s\n", v.Key, v.Text, v.Why)
		}
	}
	return append([]byte(head.String()), data...), err
}

// recipe returns the length of the training, the optimizer and the schedule. mixed_precision says the types.
func recipe(t *interop.Target) (list []interop.Value) {
	isOfTypes := map[string]bool{"bf16": true, "fp16": true, "fp8": true, "grad_reduce_in_bf16": true}
	for _, s := range megatron.RecipeSettings(t.Job) {
		path := pathOf(s.Dest)
		if path == "" || isOfTypes[s.Dest] || s.Dest == "train_iters" && t.Job.Train.Steps == 0 {
			continue
		}
		list = append(list, interop.Value{Key: path, Text: s.Value})
	}
	return list
}
