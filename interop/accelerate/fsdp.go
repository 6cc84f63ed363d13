package accelerate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/ir/spec/strict"
)

const fsdpPrefix = "fsdp_config.fsdp_"

// key returns the path of a key of FSDP. Its prefix may be left out in the file.
func (r *reader) key(name string) string {
	if short := "fsdp_config." + name; r.Has(short) && !r.Has(fsdpPrefix+name) {
		return short
	}
	return fsdpPrefix + name
}

// ownValues returns the keys that say a plan as the file spells them.
func (r *reader) ownValues(t *interop.Target) []interop.Value {
	all := values(t)
	if r.Has("parallelism_config") {
		all = withSizes(all, &t.Plan)
	}
	for i, v := range all {
		if name, ok := strings.CutPrefix(v.Key, fsdpPrefix); ok {
			all[i].Key = r.key(name)
		}
	}
	return all
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
		r.im.Values = r.ownValues
	} else {
		r.strategy()
		r.im.Values, r.im.Refusals = r.valuesOfFSDP1, FSDP1("fsdp_version: 2")
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
	r.wrapping(version)
}

// WrapPolicies are the values of auto_wrap_policy. planc prices the first, with which each block is a unit of FSDP.
var WrapPolicies = []string{"TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP"}

// AccountWrapPolicy accounts for a policy of WrapPolicies: which modules are units of FSDP matters only if it shards.
func AccountWrapPolicy(r *keytable.Reader, path, policy string, isSharded bool) {
	switch {
	case !isSharded:
		r.Account(path, interop.NoEffect, "FSDP does not shard, so it gathers no units")
	case policy == WrapPolicies[0]:
		r.Account(path, interop.NoEffect, "")
	default:
		r.Account(path, interop.Unsupported, policy+" gathers other units than whole blocks, which planc prices: "+
			"memory and overlap. Use "+WrapPolicies[0])
	}
}

// wrapping takes which modules are units of FSDP. Without a policy, all blocks are one unit, which is noted.
// Source: Accelerate 1.15.0, utils/dataclasses.py: FullyShardedDataParallelPlugin; utils/fsdp_utils.py: fsdp2_apply_ac,
// which calls the policy.
func (r *reader) wrapping(version int) {
	path := r.key("auto_wrap_policy")
	policy, ok := r.OneOf(path, WrapPolicies...)
	if ok {
		AccountWrapPolicy(r.Reader, path, policy, !r.isUnsharded())
	}
	if !r.isUnsharded() && !r.Has(path) {
		r.im.AddNote(r.Doc.Root.Nearest(path), "fsdp_auto_wrap_policy is missing, which means NO_WRAP: all blocks are "+
			"one unit of FSDP, whose parameters are gathered at once. planc prices each block as a unit: write "+
			"fsdp_auto_wrap_policy: %s", WrapPolicies[0])
	}
	checkpointing := r.key("activation_checkpointing")
	if version == 2 && r.IsTrue(checkpointing) && (policy == "NO_WRAP" || !r.Has(path)) {
		r.im.AddNote(r.Doc.Root.Nearest(checkpointing), "Accelerate 1.15 stops with an error, because "+
			"fsdp_activation_checkpointing needs an fsdp_auto_wrap_policy other than NO_WRAP")
	}
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
	n := sizes{replicate, shard, tp, cp, ulysses}
	hasNoRanks := isSharded && shard == 1 && cp == 1
	if hasNoRanks && r.im.Devices%keytable.Product(tp, ulysses) == 0 {
		r.noRanks(n)
	} else {
		r.sizes(n, isSharded)
	}
	r.TakeInt(parallelPrefix+"dp_shard_size", "plan.dp", keytable.Product(replicate, shard))
	r.Take(parallelPrefix + "dp_replicate_size")
	if isSharded && !hasNoRanks && replicate > 1 {
		r.TakeInt(parallelPrefix+"dp_replicate_size", "plan.zero_group", keytable.Product(shard, cp))
	}
}

// noRanks reports sizes with which FSDP has no ranks to shard over. The number of devices is unknown, or a multiple of
// the other sizes.
func (r *reader) noRanks(n sizes) {
	use := "use distributed_type MULTI_GPU, or "
	shard := max(n.replicate, 2)
	if r.im.Devices > 0 {
		shard = r.im.Devices / keytable.Product(n.tp, n.ulysses)
	}
	switch {
	case r.im.Devices == 1:
		use = "use distributed_type NO"
	case shard == 1:
		use += "a smaller tp_size with dp_shard_size 2"
	default:
		if n.tp > 1 {
			use = "use " // several replicas of DDP cannot have tensor parallelism
		}
		use += fmt.Sprintf("dp_shard_size %d with dp_replicate_size 1", shard)
	}
	r.Wrong(parallelPrefix+"dp_shard_size", Conflict, "", "dp_shard_size and cp_size are 1, so FSDP has no ranks to "+
		"shard over: %s", use)
}

// degrees takes tensor and context parallelism.
func (r *reader) degrees(tp, cp, ulysses int) {
	r.TakeInt(parallelPrefix+"tp_size", "plan.tp", tp)
	if tp > 1 {
		r.im.DefaultField("plan.sp", "false", "transformers' tensor parallelism keeps whole activations in norms")
	}
	switch {
	case ulysses > 1:
		if kind := r.Text(kindKey); kind != "DEEPSPEED" && cp == 1 {
			r.Wrong(parallelPrefix+"sp_size", Conflict, "1", "sp_size is %d, which Accelerate leaves to DeepSpeed, "+
				"and %s is %s: use cp_size, or %s DEEPSPEED", ulysses, kindKey, kind, kindKey)
		}
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

// sizes are those of parallelism_config.
type sizes struct{ replicate, shard, tp, cp, ulysses int }

func (n sizes) product() int { return keytable.Product(n.replicate, n.shard, n.tp, n.cp, n.ulysses) }

// sizes reports sizes that Accelerate refuses.
// Source: Accelerate 1.15.0, parallelism_config.py: __post_init__, _validate_accelerator.
func (r *reader) sizes(n sizes, isSharded bool) {
	devices, total := r.im.Devices, n.product()
	others := keytable.Product(n.tp, n.cp)
	switch {
	case n.cp > 1 && n.ulysses > 1:
		r.Wrong(parallelPrefix+"sp_size", Conflict, "1", "cp_size is %d and sp_size is %d; Accelerate runs one of "+
			"them: set the other to 1", n.cp, n.ulysses)
	case others > 1 && n.replicate > 1 && n.shard == 1:
		shard := n.replicate
		if devices > others && devices%others == 0 {
			shard = devices / others
		}
		r.Wrong(parallelPrefix+"dp_replicate_size", Conflict, "", "dp_replicate_size is %d with dp_shard_size 1; "+
			"Accelerate refuses that with tp_size or cp_size above 1: use dp_shard_size %d and dp_replicate_size 1",
			n.replicate, shard)
	case devices == 0 || total == devices || n.ulysses > 1:
	case r.given > 0:
		r.Wrong("parallelism_config", Conflict, "", "the sizes of parallelism_config multiply to %s, but the given "+
			"number of devices is %d: change one of them", n, r.given)
	case isSharded && devices%total == 0 && !r.Has(parallelPrefix+"dp_shard_size"):
		r.Wrong("parallelism_config", Conflict, "", "num_processes is %d, but the sizes of parallelism_config "+
			"multiply to %s: use dp_shard_size %d", devices, n, devices/total)
	default:
		nearest := strconv.Itoa(total)
		if isSharded && n.shard*n.cp == 1 {
			nearest = "" // FSDP has no ranks to shard over then
		}
		r.Wrong("num_processes", Conflict, nearest, "num_processes is %d, but the sizes of parallelism_config "+
			"multiply to %s", devices, n)
	}
}

// String returns sizes as a product.
func (n sizes) String() string {
	text := fmt.Sprintf("dp_replicate %d · dp_shard %d · tp %d · cp %d", n.replicate, n.shard, n.tp, n.cp)
	if n.ulysses > 1 {
		text += fmt.Sprintf(" · sp %d", n.ulysses)
	}
	return fmt.Sprintf("%s = %d", text, n.product())
}
