package hf

import (
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// strategies are the words of fsdp and of reshard_after_forward with version 1.
var strategies = map[string]struct {
	zero    int
	isGroup bool
}{
	"full_shard": {3, false}, "shard_grad_op": {2, false}, "no_shard": {0, false}, "hybrid_shard": {3, true},
	"hybrid_shard_zero2": {2, true},
}

// sharding takes fsdp and fsdp_config; without fsdp, Trainer runs DDP.
// Source: transformers 5.23.0, training_args.py: _process_fsdp_args, _apply_legacy_fsdp_to_config.
func (r *reader) sharding() {
	n := r.Node("fsdp")
	on, isBool := n.Bool()
	switch {
	case n == nil || isBool && !on || n.Flow() == "" || n.Kind == strict.List && len(n.Items) == 0:
		r.im.DefaultField("plan.zero", "0", "no fsdp: DDP")
		r.Take("fsdp")
		if r.Has("fsdp_config") {
			r.Account("fsdp_config", interop.IgnoredByTool, "fsdp is not set")
		}
		return
	case !isBool && n.Kind != strict.Map:
		r.words(strings.Fields(strings.NewReplacer("[", " ", "]", " ", ",", " ", `"`, " ").Replace(n.Flow())))
	}
	r.Take("fsdp")
	if r.offloads {
		r.Account("fsdp", interop.Unsupported, interop.OffloadNote(interop.AllState, "cpu"))
	}
	if config := r.Node("fsdp_config"); config != nil && config.Kind == strict.String {
		r.Wrong("fsdp_config", Missing, "", "%s is not read: write its keys below fsdp_config", config.Text)
		return
	}
	r.config()
	if r.isLocal && r.perNode == 0 {
		r.Absent("plan.zero_group", "fsdp shards state over the devices of a node: --set "+
			"plan.zero_group=DEVICES")
	}
}

// words takes the old form of fsdp: "full_shard auto_wrap offload".
func (r *reader) words(words []string) {
	for _, word := range words {
		s, ok := strategies[word]
		switch {
		case ok:
			r.TakeInt("fsdp", "plan.zero", s.zero)
			r.isLocal = s.isGroup
			if s.isGroup && r.perNode > 0 {
				r.TakeInt("fsdp", "plan.zero_group", r.perNode)
			}
		case word == "offload":
			r.offloads = true
		case word != "auto_wrap":
			r.Wrong("fsdp", strict.UnknownValue, "", "fsdp has the word %q; use true, and say the rest in "+
				"fsdp_config", word)
		}
	}
}

// fsdpKey returns the path of a key of fsdp_config, which may have the prefix fsdp_.
func (r *reader) fsdpKey(key string) string {
	if long := "fsdp_config.fsdp_" + key; r.Has(long) {
		return long
	}
	return "fsdp_config." + key
}

// config takes fsdp_config.
func (r *reader) config() {
	version, ok := r.Int(r.fsdpKey("version"))
	if !ok {
		version = 2
	}
	r.Take(r.fsdpKey("version"))
	path := r.fsdpKey("reshard_after_forward")
	n := r.Node(path)
	on, isBool := n.Bool()
	switch {
	case n == nil:
		r.im.DefaultField("plan.zero", "3", "default of fsdp_config.reshard_after_forward")
	case version == 1 && strategies[strings.ToLower(n.Flow())].zero > 0:
		s := strategies[strings.ToLower(n.Flow())]
		r.TakeInt(path, "plan.zero", s.zero)
		r.isLocal = s.isGroup
		if s.isGroup && r.perNode > 0 {
			r.TakeInt(path, "plan.zero_group", r.perNode)
		}
	case version == 2 && !isBool:
		r.Wrong(path, strict.WrongType, "true", "%s is %s; with version 2 it must be true (ZeRO 3) or false (ZeRO 2)",
			path, n.Flow())
	case on:
		r.TakeInt(path, "plan.zero", 3)
	default:
		r.TakeInt(path, "plan.zero", 2)
	}
	for _, key := range []string{"cpu_offload", "offload_params"} {
		if path := r.fsdpKey(key); r.IsTrue(path) {
			r.Account(path, interop.Unsupported, interop.OffloadNote(interop.AllState, "cpu"))
		}
	}
	if r.IsTrue(r.fsdpKey("activation_checkpointing")) && (r.IsTrue("gradient_checkpointing") ||
		r.IsTrue("activation_checkpointing")) {
		r.Wrong(r.fsdpKey("activation_checkpointing"), Conflict, "", "gradient_checkpointing and "+
			"fsdp_config.activation_checkpointing are both true, which gathers parameters once more: set "+
			"gradient_checkpointing to false")
	}
}
