package deepspeed

import (
	"slices"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// partitionKey splits saved activations over tp. A file that has it trains with recomputation.
const partitionKey = "activation_checkpointing.partition_activations"

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
