package accelerate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/ir/spec/strict"
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

const fsdpPrefix = "fsdp_config.fsdp_"

// key returns the path of a key of FSDP. Its prefix may be left out in the file.
func (r *reader) key(name string) string {
	if short := "fsdp_config." + name; r.Has(short) && !r.Has(fsdpPrefix+name) {
		return short
	}
	return fsdpPrefix + name
}

// fsdp takes fsdp_config and parallelism_config.
func (r *reader) fsdp() {
	version, ok := r.Int(r.key("version"))
	switch {
	case !ok:
		version = 1
	case version != 1 && version != 2:
		r.Wrong(r.key("version"), strict.OutOfRange, "2", "fsdp_version is %d; it must be 1 or 2", version)
	default:
		r.Take(r.key("version"))
	}
	if version == 2 {
		r.reshard()
	} else {
		r.strategy()
	}
	r.parallelism(true)
	if version == 1 && r.Has("parallelism_config") {
		r.Wrong("parallelism_config", Conflict, "", "parallelism_config needs fsdp_version 2, and it is %d", version)
	}
	if r.IsTrue(r.key("offload_params")) {
		r.Account(r.key("offload_params"), interop.Unsupported, interop.OffloadNote(interop.AllState, "cpu"))
	} else {
		r.Take(r.key("offload_params"))
	}
	r.recompute()
}

// reshard takes whether FSDP 2 frees gathered parameters after the forward pass.
func (r *reader) reshard() {
	path := r.key("reshard_after_forward")
	n := r.Node(path)
	on, ok := n.Bool()
	if n != nil && !ok {
		on, ok = r.Bool(path)
		if !ok {
			r.Diags = r.Diags[:len(r.Diags)-1]
			r.Wrong(path, strict.WrongType, "true", "fsdp_reshard_after_forward is %s; with fsdp_version 2 it must be "+
				"true (ZeRO 3) or false (ZeRO 2)", n.Flow())
			return
		}
	}
	switch {
	case n == nil:
		r.im.DefaultField("plan.zero", "3", "default of fsdp_reshard_after_forward")
	case on:
		r.TakeInt(path, "plan.zero", 3)
	default:
		r.TakeInt(path, "plan.zero", 2)
	}
	if old := r.key("sharding_strategy"); r.Has(old) {
		r.Account(old, interop.IgnoredByTool, "fsdp_version 2 reads fsdp_reshard_after_forward")
	}
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

// recompute takes whether FSDP recomputes the activations of every block.
func (r *reader) recompute() {
	path := r.key("activation_checkpointing")
	on, ok := r.Bool(path)
	switch {
	case ok && on:
		r.Take(path, interop.Field{Path: "plan.recompute", Value: "full"})
		r.AllLayers(path)
	case ok:
		r.Take(path, interop.Field{Path: "plan.recompute", Value: "none"})
	default:
		r.im.DefaultField("plan.recompute", "none", "default of fsdp_activation_checkpointing")
	}
	if offload := r.key("activation_checkpointing_offload"); r.IsTrue(offload) {
		r.Account(offload, interop.Unsupported, interop.OffloadNote(interop.SavedActivations, "cpu"))
		if !on {
			r.Wrong(offload, Conflict, "", "fsdp_activation_checkpointing_offload needs "+
				"fsdp_activation_checkpointing: "+
				"true")
		}
	}
}

const parallelPrefix = "parallelism_config.parallelism_config_"

// parallelism takes parallelism_config. isSharded says that FSDP shards over dp_shard and cp.
func (r *reader) parallelism(isSharded bool) {
	r.im.DefaultField("plan.pp", "1", "Accelerate has no pipeline here")
	r.im.DefaultField("plan.ep", "1", "Accelerate has no expert parallelism")
	size := func(name string) int {
		if n, ok := r.Positive(parallelPrefix + name + "_size"); ok {
			return n
		}
		return 1
	}
	replicate, shard, tp, cp, ulysses := size("dp_replicate"), size("dp_shard"), size("tp"), size("cp"), size("sp")
	r.degrees(tp, cp, ulysses)
	if node := r.Node("parallelism_config"); node == nil || len(node.Fields) == 0 {
		return
	}
	r.sizes(replicate, shard, tp, cp, ulysses)
	r.TakeInt(parallelPrefix+"dp_shard_size", "plan.dp", keytable.Product(replicate, shard))
	r.Take(parallelPrefix + "dp_replicate_size")
	switch {
	case !isSharded:
	case shard == 1 && cp == 1:
		r.Wrong(parallelPrefix+"dp_shard_size", Conflict, "", "dp_shard_size and cp_size are 1, so FSDP has no "+
			"ranks to "+
			"shard over: use distributed_type MULTI_GPU, or dp_shard_size %d with dp_replicate_size "+
			"1", max(replicate, 2))
	case replicate > 1:
		r.TakeInt(parallelPrefix+"dp_replicate_size", "plan.zero_group", keytable.Product(shard, cp))
	}
}

// degrees takes tensor and context parallelism.
func (r *reader) degrees(tp, cp, ulysses int) {
	r.TakeInt(parallelPrefix+"tp_size", "plan.tp", tp)
	if tp > 1 {
		r.im.DefaultField("plan.sp", "false", "transformers' tensor parallelism keeps whole activations in norms")
	}
	switch {
	case ulysses > 1:
		r.TakeInt(parallelPrefix+"sp_size", "plan.cp", ulysses)
		r.Take(parallelPrefix+"sp_size", interop.Field{Path: "plan.cp_kind", Value: "heads"})
		return
	case cp > 1:
		r.TakeInt(parallelPrefix+"cp_size", "plan.cp", cp)
	default:
		r.im.DefaultField("plan.cp", "1", "default of parallelism_config_cp_size")
		return
	}
	kind := "gather"
	if word, ok := r.OneOf(parallelPrefix+"cp_comm_strategy", "allgather", "alltoall"); ok && word == "alltoall" {
		kind = "ring"
	}
	r.Take(parallelPrefix+"cp_comm_strategy", interop.Field{Path: "plan.cp_kind", Value: kind})
}

// sizes reports sizes that Accelerate refuses.
// Source: Accelerate 1.15.0, parallelism_config.py: __post_init__, _validate_accelerator.
func (r *reader) sizes(replicate, shard, tp, cp, ulysses int) {
	total := keytable.Product(replicate, shard, tp, cp, ulysses)
	switch {
	case cp > 1 && ulysses > 1:
		r.Wrong(parallelPrefix+"sp_size", Conflict, "1", "cp_size is %d and sp_size is %d; Accelerate runs one of "+
			"them: "+
			"set the other to 1", cp, ulysses)
	case (tp > 1 || cp > 1) && replicate > 1 && shard == 1:
		r.Wrong(parallelPrefix+"dp_replicate_size", Conflict, "", "dp_replicate_size is %d with dp_shard_size 1; "+
			"Accelerate refuses that with tp_size or cp_size above 1: use dp_shard_size %d and dp_replicate_size 1",
			replicate, replicate)
	case r.im.Devices > 0 && total != r.im.Devices && ulysses == 1:
		r.Wrong("num_processes", Conflict, strconv.Itoa(total), "num_processes is %d, but the sizes of "+
			"parallelism_config multiply to %s", r.im.Devices, product(replicate, shard, tp, cp, ulysses))
	}
}

// product returns sizes as a product.
func product(replicate, shard, tp, cp, ulysses int) string {
	text := fmt.Sprintf("dp_replicate %d · dp_shard %d · tp %d · cp %d", replicate, shard, tp, cp)
	if ulysses > 1 {
		text += fmt.Sprintf(" · sp %d", ulysses)
	}
	return fmt.Sprintf("%s = %d", text, keytable.Product(replicate, shard, tp, cp, ulysses))
}
