package hf

import (
	"maps"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/accelerate"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
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
	_, isBool := n.Bool()
	switch {
	case !runsFSDP(n):
		r.im.DefaultField("plan.zero", "0", "no fsdp: DDP")
		r.Take("fsdp")
		if r.Has("fsdp_config") {
			r.Account("fsdp_config", interop.IgnoredByTool, "fsdp is not set")
		}
		r.im.Values = func(t *interop.Target) []interop.Value { return valuesOfDDP(r, t) }
		return
	case !isBool && n.Kind != strict.Map:
		r.words(wordsOf(n))
	}
	r.Take("fsdp")
	if r.offloads {
		r.Account("fsdp", interop.Unsupported, interop.OffloadNote(interop.AllState, "cpu"))
	}
	r.fsdp.isLocal = r.isLocal
	r.fsdp.config()
	r.wrapping(n)
	r.im.Values = r.ownValues
	if r.isFSDP1() {
		r.im.Refusals = accelerate.FSDP1("fsdp_config.version: 2")
	}
	if r.fsdp.IsTrue(r.fsdp.fsdpKey("activation_checkpointing")) && (r.IsTrue("gradient_checkpointing") ||
		r.IsTrue("activation_checkpointing")) {
		r.fsdp.Wrong(r.fsdp.fsdpKey("activation_checkpointing"), Conflict, "", "gradient_checkpointing and "+
			"fsdp_config.activation_checkpointing are both true, which gathers parameters once more: set "+
			"gradient_checkpointing to false")
	}
	if r.fsdp.isLocal && r.perNode == 0 {
		r.Absent("plan.zero_group", "fsdp shards state over the devices of a node: --set "+
			"plan.zero_group=DEVICES")
	}
}

// runsFSDP reports whether a value of fsdp switches FSDP on.
func runsFSDP(n *tree.Node) bool {
	on, isBool := n.Bool()
	isOff := n == nil || isBool && !on || n.Flow() == "" || n.Kind == strict.List && len(n.Items) == 0
	return !isOff
}

// wrapping takes which modules are units of FSDP. planc prices each block as a unit, which is the default.
// Source: transformers 5.23.0, training_args.py: _process_fsdp_args; 4.57: __post_init__.
func (r *reader) wrapping(fsdp *tree.Node) {
	path := r.fsdp.fsdpKey("auto_wrap_policy")
	policy := r.fsdp.Node(path)
	zero, _ := r.im.Field("plan.zero")
	isSharded := zero.Value != "0"
	_, isBool := fsdp.Bool()
	switch {
	case policy == nil && isSharded && !isBool && fsdp.Kind != strict.Map &&
		!slices.Contains(wordsOf(fsdp), "auto_wrap"):
		r.im.AddNote(fsdp.Pos, "transformers 5 wraps each block of the model, which planc prices. transformers 4 "+
			"shards the model as one unit, unless fsdp has the word auto_wrap: add auto_wrap to it")
	case policy == nil:
	case slices.Contains(accelerate.WrapPolicies, policy.Text):
		accelerate.AccountWrapPolicy(r.fsdp.Reader, path, policy.Text, isSharded)
	default:
		r.fsdp.Wrong(path, strict.UnknownValue, ir.Nearest(policy.Text, accelerate.WrapPolicies), "%s is %s; use one "+
			"of %s", path, policy.Flow(), strings.Join(accelerate.WrapPolicies, ", "))
	}
}

// openConfig opens the file that fsdp_config names. Without it, fsdp_config is a mapping of the main file.
func (r *reader) openConfig() {
	r.fsdp = r
	named := r.Node("fsdp_config")
	fsdp := r.Node("fsdp")
	if named == nil || named.Kind != strict.String || fsdp == nil {
		return
	}
	r.Take("fsdp_config")
	if on, isBool := fsdp.Bool(); isBool && !on {
		return
	}
	if r.ds == nil {
		r.Wrong("fsdp_config", Missing, "", "%s has the keys of fsdp_config: give it as a second file", named.Text)
		return
	}
	doc, diags := tree.Parse(tree.JSON, r.ds.Name, r.ds.Data)
	r.Diags = append(r.Diags, diags...)
	r.part = &interop.Part{Name: r.ds.Name, Prefix: "fsdp_config.", Doc: doc}
	section := &tree.Field{Key: "fsdp_config", Pos: doc.Root.Pos, Value: doc.Root}
	whole := &tree.Doc{File: r.ds.Name, Root: &tree.Node{Kind: strict.Map, Pos: doc.Root.Pos,
		Fields: []*tree.Field{section}}}
	r.fsdp = &reader{Reader: keytable.NewReader(whole, Keys, r.im), im: r.im, devices: r.devices, perNode: r.perNode}
	r.fsdp.fsdp = r.fsdp
}

// wordsOf returns the words of the old form of fsdp, which is text or a list.
func wordsOf(n *tree.Node) []string {
	return strings.Fields(strings.NewReplacer("[", " ", "]", " ", ",", " ", `"`, " ").Replace(n.Flow()))
}

// words takes the old form of fsdp: "full_shard auto_wrap offload".
func (r *reader) words(words []string) {
	strategy := ""
	for _, word := range words {
		switch {
		case isStrategy(word) && strategy != "" && strategy != word:
			r.Wrong("fsdp", Conflict, "", "fsdp has the words %s and %s, and FSDP shards in one way: keep one of them",
				strategy, word)
		case isStrategy(word):
			strategy = word
			r.strategyWord(word)
		case word == "offload":
			r.offloads = true
		case word != "auto_wrap":
			known := append(slices.Sorted(maps.Keys(strategies)), "auto_wrap", "offload")
			r.Wrong("fsdp", strict.UnknownValue, ir.Nearest(word, known), "fsdp has the word %q; use true, and say "+
				"the rest in fsdp_config", word)
		}
	}
}

// inGroups says how FSDP 2 shards over groups of ranks.
const inGroups = "with version 2, say it with parallelism_config.dp_replicate_size and dp_shard_size"

// strategyWord takes a sharding strategy from the words of fsdp.
// Source: transformers 5.23.0, training_args.py: _apply_legacy_fsdp_to_config.
func (r *reader) strategyWord(word string) {
	s := strategies[word]
	if !r.isFSDP1() && word != "full_shard" && word != "shard_grad_op" {
		other := inGroups
		if !s.isGroup {
			other = "for DDP, which does not shard either, remove fsdp"
		}
		r.Wrong("fsdp", Conflict, "", "fsdp is %s, which needs FSDP 1, and the default of transformers 5 is 2: set "+
			"fsdp_config.version to 1, or %s", word, other)
		return
	}
	r.TakeInt("fsdp", "plan.zero", s.zero)
	r.isLocal = s.isGroup
	if s.isGroup && r.perNode > 0 {
		r.TakeInt("fsdp", "plan.zero_group", r.perNode)
	}
}

// strategy takes the sharding strategy of FSDP 1.
func (r *reader) strategy(path string) {
	word, ok := r.OneOf(path, "full_shard", "shard_grad_op", "no_shard", "hybrid_shard", "hybrid_shard_zero2")
	if !ok {
		return
	}
	s := strategies[word]
	r.TakeInt(path, "plan.zero", s.zero)
	r.isLocal = s.isGroup
	if s.isGroup && r.perNode > 0 {
		r.TakeInt(path, "plan.zero_group", r.perNode)
	}
}

// yes and no are the words that transformers reads as true and false.
// Source: transformers 5.23.0, training_args.py: str_to_bool.
var (
	yes = []string{"y", "yes", "t", "true", "on", "1"}
	no  = []string{"n", "no", "f", "false", "off", "0"}
)

// reshard takes whether FSDP 2 frees gathered parameters after the forward pass.
func (r *reader) reshard(path string) {
	text := strings.ToLower(r.Node(path).Flow())
	r.isLocal = false
	switch {
	case slices.Contains(yes, text):
		r.TakeInt(path, "plan.zero", 3)
	case slices.Contains(no, text):
		r.TakeInt(path, "plan.zero", 2)
	case strategies[text].isGroup:
		r.Wrong(path, strict.WrongType, "true", "%s is %s, which needs fsdp_config.version 1: %s", path,
			r.Node(path).Flow(), inGroups)
	default:
		r.Wrong(path, strict.WrongType, "true", "%s is %s; with version 2 it must be true (ZeRO 3) or false (ZeRO 2)",
			path, r.Node(path).Flow())
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
	r.Take(r.fsdpKey("version"))
	path := r.fsdpKey("reshard_after_forward")
	n := r.Node(path)
	switch {
	case n == nil:
		r.im.DefaultField("plan.zero", "3", "default of fsdp_config.reshard_after_forward")
	case r.isFSDP1():
		r.strategy(path)
	default:
		r.reshard(path)
	}
	for _, key := range []string{"cpu_offload", "offload_params"} {
		if path := r.fsdpKey(key); r.IsTrue(path) {
			r.Account(path, interop.Unsupported, interop.OffloadNote(interop.AllState, "cpu"))
		}
	}
}
