package deepspeed

import (
	"slices"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// partitionKey splits the activations over tp that DeepSpeed's own checkpoint function saves.
const partitionKey = "activation_checkpointing.partition_activations"

// accountPartition accounts for partitionKey, which does not say that anything is recomputed: the model's code must
// call DeepSpeed's checkpoint function.
// Source: DeepSpeed 0.19.8, runtime/activation_checkpointing/checkpointing.py: CheckpointFunction, configure.
func accountPartition(r *reader) {
	on, ok := r.Bool(partitionKey)
	tp, _ := r.im.Field("plan.tp")
	switch {
	case !ok || !on:
	case !r.isOwnLoop:
		r.Account(partitionKey, interop.NoEffect, "Accelerate and transformers recompute with PyTorch's checkpoint "+
			"function")
	case tp.Value == "1":
		r.Account(partitionKey, interop.NoEffect, "it splits saved activations over tp")
	default:
		r.Account(partitionKey, interop.Unsupported, "if the model's code calls deepspeed.checkpointing.checkpoint, "+
			"the block inputs that it saves are split over tp: "+
			"--set plan.recompute=full --set plan.recompute_split=true")
	}
}

// TrainerValues returns the keys that say a plan under Accelerate and transformers, which do not use DeepSpeed's own
// checkpoint function.
func TrainerValues(t *interop.Target) []interop.Value {
	return slices.DeleteFunc(values(t), func(v interop.Value) bool { return v.Key == partitionKey })
}

// keepPartition makes edits of a file with partition_activations keep it, and refuse plans that do not split saved
// activations over tp. The training code switches recomputation off.
func keepPartition(im *interop.Import) {
	own, refuse := im.Values, im.Refusals
	if own == nil {
		own = values
	}
	im.Values = func(t *interop.Target) []interop.Value {
		all := slices.Clone(own(t))
		for i := range all {
			if all[i].Key == partitionKey {
				all[i].IsAbsent = false
			}
		}
		return all
	}
	im.Refusals = func(t *interop.Target) (diags ir.Diags) {
		if refuse != nil {
			diags = refuse(t)
		}
		p := &t.Plan
		if p.Recompute != "none" && p.RecomputeSplit != (p.TP > 1) {
			diags.Addf(ir.Pos{}, CannotExpress, "plan.recompute_split: the file cannot express it: %s splits saved "+
				"activations over tp; remove the key, or use recompute_split %t", partitionKey, p.TP > 1)
		}
		return diags
	}
}
