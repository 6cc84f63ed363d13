package megatron

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
)

// need is an option that Megatron-LM accepts only with others. A script that breaks it is refused, and an edit that
// would break it removes the option.
type need struct {
	dest string
	// words follow the option's name in a message, and fix follows them. %[1]s is the name, and %[2]s and on are the
	// names of dests.
	words, fix string
	dests      []string
	holds      func(s *settings) bool
	// isOn reports whether a file has the option in the way that needs the others; nil: it is a flag that is set.
	isOn func(s *settings) bool
	// use is when the need matters.
	use needUse
}

// needUse is when a need matters.
type needUse int

const (
	always    needUse = iota
	ofScripts         // only in what the user gives: the option itself says the plan
	ofEdits           // only in edits: Megatron-LM starts with the option, but with another plan
)

const (
	orRemove  = "add it, or remove %[1]s"
	removeOne = "remove one"
)

// The options that more than one need, or a test, names.
const (
	gatherParams   = "overlap_param_gather"
	gatherInStep   = "overlap_param_gather_with_optimizer_step"
	shardOptimizer = "use_distributed_optimizer"
	megatronFSDP   = "use_megatron_fsdp"
	torchFSDP      = "use_torch_fsdp2"
	fsdpStrategy   = "data_parallel_sharding_strategy"
	fuseGradients  = "gradient_accumulation_fusion"
	pipelineSize   = "pipeline_model_parallel_size"
	tensorSize     = "tensor_model_parallel_size"
	expertSize     = "expert_model_parallel_size"
	granularity    = "recompute_granularity"
	overlapExperts = "overlap_moe_expert_parallel_comm"
	cudaGraphImpl  = "cuda_graph_impl"
	offloadLayers  = "cpu_offloading_num_layers"
	layerRecompute = "moe_layer_recompute"
	checkpointForm = "ckpt_format"
)

// needs are the options that planc does not price but that decide whether Megatron-LM starts.
// Sources: megatron-core 0.19.2, training/arguments.py: validate_args; core/model_parallel_config.py and
// core/transformer/transformer_config.py: __post_init__. A test asks Megatron-LM's own parser.
var needs = []need{
	{dest: gatherParams, words: "needs a sharded optimizer", fix: "add %[2]s", dests: []string{shardOptimizer},
		holds: func(s *settings) bool { return isSharded(s) || s.text("optimizer") == "dist_muon" }},
	{dest: gatherParams, words: "needs %[2]s", fix: "add it", dests: []string{"overlap_grad_reduce"},
		holds: isFlag("overlap_grad_reduce"), use: ofScripts},
	{dest: gatherInStep, words: "needs %[2]s", fix: orRemove, dests: []string{gatherParams},
		holds: isFlag(gatherParams)},
	{dest: gatherInStep, words: "needs virtual pipeline stages", fix: "add %[2]s, or remove %[1]s",
		dests: []string{chunksOfStage}, holds: hasVirtualStages},
	{dest: gatherInStep, words: "needs %[2]s torch", fix: orRemove, dests: []string{checkpointForm},
		holds: func(s *settings) bool { return s.text(checkpointForm) == "torch" }},
	{dest: "tp_comm_overlap", words: "needs %[2]s with %[3]s above 1", fix: "add them, or remove %[1]s",
		dests: []string{"sequence_parallel", tensorSize},
		holds: func(s *settings) bool { return s.flag("sequence_parallel") && s.number(tensorSize) > 1 }},
	{dest: "overlap_p2p_comm_warmup_flush", words: "needs virtual pipeline stages", fix: "add %[2]s, or remove %[1]s",
		dests: []string{chunksOfStage}, holds: hasVirtualStages},
	{dest: "overlap_p2p_comm_warmup_flush", words: "excludes %[2]s", fix: removeOne,
		dests: []string{"overlap_p2p_comm"}, holds: isFlag("overlap_p2p_comm")},
	{dest: "overlap_p2p_comm", words: "needs %[2]s above 2 with virtual pipeline stages", fix: "remove %[1]s",
		dests: []string{pipelineSize}, isOn: isNot(isFlag("overlap_p2p_comm")),
		holds: func(s *settings) bool { return !hasVirtualStages(s) || s.number(pipelineSize) > 2 }},
	{dest: "defer_embedding_wgrad_compute", words: "needs %[2]s above 1", fix: orRemove, dests: []string{pipelineSize},
		holds: isAbove(pipelineSize, 1)},
	{dest: "defer_embedding_wgrad_compute", words: "excludes %[2]s", fix: removeOne,
		dests: []string{fuseGradients}, holds: isFlag(fuseGradients)},
	{dest: overlapExperts, words: "needs %[2]s above 1", fix: orRemove, dests: []string{expertSize},
		holds: isAbove(expertSize, 1)},
	{dest: overlapExperts, words: "excludes full recomputation", fix: removeOne, holds: isNot(recomputesFully)},
	{dest: overlapExperts, words: "needs virtual stages in a pipeline", fix: "add %[2]s, or remove %[1]s",
		dests: []string{chunksOfStage},
		holds: func(s *settings) bool { return s.number(pipelineSize) < 2 || hasVirtualStages(s) }},
	{dest: overlapExperts, words: "needs %[2]s alltoall or flex", fix: orRemove,
		dests: []string{"moe_token_dispatcher_type"},
		holds: func(s *settings) bool { return s.text("moe_token_dispatcher_type") != "allgather" }},
	{dest: overlapExperts, words: "excludes moe in %[2]s", fix: removeOne, dests: []string{"recompute_modules"},
		holds: func(s *settings) bool {
			return !slices.Contains(strings.Fields(s.text("recompute_modules")), "moe")
		}},
	{dest: overlapExperts, words: "excludes %[2]s", fix: removeOne, dests: []string{layerRecompute},
		holds: isNot(isFlag(layerRecompute))},
	{dest: overlapExperts, words: "excludes %[2]s", fix: removeOne,
		dests: []string{"moe_shared_expert_overlap"}, holds: isNot(isFlag("moe_shared_expert_overlap"))},
	{dest: "delay_wgrad_compute", words: "needs %[2]s", fix: orRemove, dests: []string{overlapExperts},
		holds: isFlag(overlapExperts)},
	{dest: "ep_overlap_early_attn_memory_release", words: "needs %[2]s", fix: orRemove,
		dests: []string{overlapExperts}, holds: isFlag(overlapExperts)},
	{dest: layerRecompute, words: "excludes full recomputation", fix: removeOne, holds: isNot(recomputesFully)},
	{dest: layerRecompute, words: "recomputes selectively", use: ofEdits,
		holds: func(s *settings) bool { return recomputation(s) == "selective" }},
	{dest: "enable_cuda_graph", words: "excludes full recomputation", fix: removeOne, holds: isNot(recomputesFully)},
	{dest: "external_cuda_graph", words: "excludes full recomputation", fix: removeOne,
		holds: isNot(recomputesFully)},
	{dest: cudaGraphImpl, words: "excludes full recomputation unless it is full_iteration", fix: removeOne,
		isOn: isGraphOfLayers, holds: isNot(recomputesFully)},
	{dest: "enable_cuda_graph", words: graphAttention, fix: useZero, dests: []string{"attention_dropout"},
		holds: isNot(recomputesAttentionDropout)},
	{dest: "external_cuda_graph", words: graphAttention, fix: useZero, dests: []string{"attention_dropout"},
		holds: isNot(recomputesAttentionDropout)},
	{dest: cudaGraphImpl, words: graphAttention, fix: useZero, dests: []string{"attention_dropout"},
		isOn: isGraph, holds: isNot(recomputesAttentionDropout)},
	{dest: "enable_cuda_graph", words: graphMLP, fix: useZero, dests: []string{"hidden_dropout"},
		holds: isNot(recomputesHiddenDropout)},
	{dest: "external_cuda_graph", words: graphMLP, fix: useZero, dests: []string{"hidden_dropout"},
		holds: isNot(recomputesHiddenDropout)},
	{dest: cudaGraphImpl, words: graphMLP, fix: useZero, dests: []string{"hidden_dropout"},
		isOn: isGraph, holds: isNot(recomputesHiddenDropout)},
	{dest: cudaGraphImpl, words: "excludes %[2]s and %[3]s", fix: removeOne,
		dests: []string{"enable_cuda_graph", "external_cuda_graph"},
		isOn:  isGraph,
		holds: func(s *settings) bool { return !s.flag("enable_cuda_graph") && !s.flag("external_cuda_graph") }},
	{dest: "external_cuda_graph", words: "excludes %[2]s", fix: removeOne, dests: []string{"enable_cuda_graph"},
		holds: isNot(isFlag("enable_cuda_graph"))},
	{dest: offloadLayers, words: "excludes CUDA graphs unless %[2]s is full_iteration", fix: removeOne,
		dests: []string{cudaGraphImpl}, isOn: isAbove(offloadLayers, 0), holds: func(s *settings) bool {
			return !s.flag("enable_cuda_graph") && !s.flag("external_cuda_graph") && !isGraphOfLayers(s)
		}},
	{dest: offloadLayers, words: "excludes pipelines", fix: "remove %[2]s, or remove %[1]s",
		dests: []string{pipelineSize}, isOn: isAbove(offloadLayers, 0), holds: isNot(isAbove(pipelineSize, 1))},
	{dest: offloadLayers, words: "excludes recomputation", fix: removeOne, isOn: isAbove(offloadLayers, 0),
		holds: func(s *settings) bool { return recomputation(s) == "none" }},
	{dest: "hierarchical_context_parallel_sizes", words: "must multiply to %[2]s", fix: "change one",
		dests: []string{"context_parallel_size"}, isOn: isGiven("hierarchical_context_parallel_sizes"),
		holds: multipliesToCP},
	{dest: "hybrid_context_parallel", words: "excludes pipelines", fix: "remove %[2]s, or remove %[1]s",
		dests: []string{pipelineSize}, holds: isNot(isAbove(pipelineSize, 1))},
	{dest: "hybrid_context_parallel", words: "excludes %[2]s", fix: removeOne, dests: []string{megatronFSDP},
		holds: isNot(isFlag(megatronFSDP))},
	{dest: "hybrid_context_parallel", words: "excludes %[2]s", fix: removeOne, dests: []string{"enable_cuda_graph"},
		holds: isNot(isFlag("enable_cuda_graph"))},
	{dest: "hybrid_context_parallel", words: "needs %[2]s", fix: orRemove, dests: []string{"calculate_per_token_loss"},
		holds: isFlag("calculate_per_token_loss")},
	{dest: "init_model_with_meta_device", words: "excludes %[2]s no_shard", fix: "remove %[1]s",
		dests: []string{fsdpStrategy},
		holds: func(s *settings) bool { return !s.flag(megatronFSDP) || s.text(fsdpStrategy) != "no_shard" }},
	{dest: "check_weight_hash_across_dp_replicas_interval", words: "excludes %[2]s optim_grads_params",
		fix: "remove %[1]s", dests: []string{fsdpStrategy},
		isOn: isGiven("check_weight_hash_across_dp_replicas_interval"), holds: func(s *settings) bool {
			return !s.flag(megatronFSDP) || s.text(fsdpStrategy) != "optim_grads_params"
		}},
	{dest: checkpointForm, words: "must not be torch_dcp with tensor or pipeline parallelism", fix: "remove it",
		isOn: func(s *settings) bool { return s.text(checkpointForm) == "torch_dcp" },
		holds: func(s *settings) bool {
			return s.number(tensorSize) == 1 && s.number(pipelineSize) == 1 && s.flag(torchFSDP)
		}},
	{dest: "fp8_param_gather", words: "needs a sharded optimizer", fix: "add %[2]s", dests: []string{shardOptimizer},
		holds: func(s *settings) bool { return isSharded(s) || s.flag(torchFSDP) }},
	{dest: "batch_invariant_mode", words: "excludes context parallelism", fix: removeOne,
		holds: isNot(isAbove("context_parallel_size", 1))},
	{dest: "batch_invariant_mode", words: "needs %[2]s 0", fix: "change it", dests: []string{"attention_dropout"},
		holds: func(s *settings) bool { return s.float("attention_dropout") == 0 }},
	{dest: torchFSDP, words: "needs %[2]s", fix: "add it", dests: []string{fuseGradients},
		holds: isNot(isFlag(fuseGradients)), use: ofScripts},
	{dest: torchFSDP, words: "needs %[2]s", fix: "add it", dests: []string{"untie_embeddings_and_output_weights"},
		holds: isFlag("untie_embeddings_and_output_weights"), use: ofScripts},
	{dest: torchFSDP, words: "excludes %[2]s", fix: removeOne, dests: []string{shardOptimizer},
		holds: isNot(isFlag(shardOptimizer)), use: ofScripts},
	{dest: torchFSDP, words: "excludes expert parallelism", fix: "remove %[2]s", dests: []string{expertSize},
		holds: isNot(isAbove(expertSize, 1)), use: ofScripts},
	{dest: torchFSDP, words: "excludes %[2]s", fix: "use --bf16", dests: []string{"fp16"},
		holds: isNot(isFlag("fp16")), use: ofScripts},
	{dest: "cross_entropy_fusion_impl", words: "must not be te with %[2]s", fix: removeOne, use: ofScripts,
		dests: []string{"cross_entropy_loss_fusion"},
		isOn:  func(s *settings) bool { return s.text("cross_entropy_fusion_impl") == "te" },
		holds: isNot(isFlag("cross_entropy_loss_fusion"))},
}

// CUDA graphs of recomputed modules cannot have random numbers.
const (
	graphAttention = "with selective recomputation of attention needs %[2]s 0"
	graphMLP       = "with selective recomputation of MLPs or experts needs %[2]s 0"
	useZero        = "use %[2]s 0"
)

func isFlag(dest string) func(s *settings) bool {
	return func(s *settings) bool { return s.flag(dest) }
}

func isGiven(dest string) func(s *settings) bool {
	return func(s *settings) bool { return s.has(dest) }
}

func isAbove(dest string, n int) func(s *settings) bool {
	return func(s *settings) bool { return s.number(dest) > n }
}

func isNot(is func(s *settings) bool) func(s *settings) bool {
	return func(s *settings) bool { return !is(s) }
}

// isSharded reports whether the optimizer's state is sharded.
func isSharded(s *settings) bool { return s.flag(shardOptimizer) || s.flag(megatronFSDP) }

// hasVirtualStages reports whether a stage has more than one chunk, as far as the file alone says it.
func hasVirtualStages(s *settings) bool {
	pp := max(1, s.number(pipelineSize))
	switch {
	case s.has(chunksOfStage):
		return s.number(chunksOfStage) > 1
	case s.has(layersOfChunk):
		layers := s.number("num_layers")
		return layers == 0 || layers/pp > s.number(layersOfChunk)
	}
	layout, isKnown := expandLayout(s.text("pipeline_model_parallel_layout"))
	return s.has("pipeline_model_parallel_layout") && (!isKnown || strings.Count(layout, "|")+1 > pp)
}

// recomputation returns what is recomputed: none, selective or full.
func recomputation(s *settings) string {
	switch text := s.text(granularity); {
	case s.flag("recompute_activations"):
		return "selective"
	case text == "":
		return "none"
	default:
		return text
	}
}

func recomputesFully(s *settings) bool { return recomputation(s) == "full" }

// isGraphOfLayers reports whether CUDA graphs are of single layers.
func isGraphOfLayers(s *settings) bool {
	impl := s.text(cudaGraphImpl)
	return impl == "local" || impl == "transformer_engine"
}

func isGraph(s *settings) bool { return s.text(cudaGraphImpl) != "none" }

// recomputesAttentionDropout reports whether a CUDA graph would contain recomputed attention with dropout.
func recomputesAttentionDropout(s *settings) bool {
	return s.float("attention_dropout") != 0 && recomputesModule(s, "core_attn") && isInGraph(s, "attn")
}

// recomputesHiddenDropout reports whether a CUDA graph would contain recomputed MLPs or experts of a model with
// dropout.
func recomputesHiddenDropout(s *settings) bool {
	return s.float("hidden_dropout") != 0 && (recomputesModule(s, "mlp") && isInGraph(s, "mlp") ||
		recomputesModule(s, "moe") && isInGraph(s, "moe"))
}

// recomputesModule reports whether selective recomputation includes a module. moe_layer_recompute is an older name of
// selective recomputation of experts.
func recomputesModule(s *settings, module string) bool {
	modules := strings.Fields(s.text("recompute_modules"))
	if len(modules) == 0 {
		modules = []string{"core_attn"}
	}
	switch {
	case s.flag(layerRecompute):
		return module == "moe" || slices.Contains(modules, module)
	case recomputation(s) == "selective":
		return slices.Contains(modules, module)
	}
	return false
}

// isInGraph reports whether the CUDA graphs of a file contain a module. They contain whole layers by default.
func isInGraph(s *settings, module string) bool {
	captured := append(graphModules(s, "cuda_graph_modules"), graphModules(s, "cuda_graph_scope_deprecated")...)
	return len(captured) == 0 || slices.Contains(captured, module) || slices.Contains(captured, "full")
}

// graphModules returns the modules of which a file makes CUDA graphs.
func graphModules(s *settings, dest string) []string {
	if !s.has(dest) {
		return nil
	}
	return strings.Fields(s.text(dest))
}

// multipliesToCP reports whether the sizes of hierarchical context parallelism multiply to its degree.
func multipliesToCP(s *settings) bool {
	product := 1
	for _, word := range strings.Fields(s.text("hierarchical_context_parallel_sizes")) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return true // the option's own check reports it
		}
		product *= n
	}
	return product == s.number("context_parallel_size")
}

// isBroken reports whether a file has the option without what it needs.
func (n *need) isBroken(s *settings) bool {
	isOn := s.flag(n.dest)
	if n.isOn != nil {
		isOn = s.has(n.dest) && n.isOn(s)
	}
	return isOn && !n.holds(s)
}

// text fills the names of options into a message. name returns the name of a setting's option.
func (n *need) text(format string, name func(dest string) string) string {
	names := []any{name(n.dest)}
	for _, dest := range n.dests {
		names = append(names, name(dest))
	}
	return fmt.Sprintf(format, names...)
}

// checkNeeds reports options without those that they need. Megatron-LM has accepted the arguments of a log.
func checkNeeds(im *importer) {
	if im.isDump {
		return
	}
	for i := range needs {
		if n := &needs[i]; n.use != ofEdits && n.isBroken(im.s) {
			im.fail(n.dest, "%s", n.text("%[1]s "+n.words+": "+n.fix, im.name))
		}
	}
}

// leaving returns the first need that edits break; nil if there is none. What a file had wrong before stays.
func leaving(before, after *settings) *need {
	for i := range needs {
		if n := &needs[i]; n.use != ofScripts && n.isBroken(after) && !n.isBroken(before) {
			return n
		}
	}
	return nil
}

// Finish removes options that Megatron-LM does not accept any more after the edits, or that would mean another plan.
func (d *document) Finish() error {
	name := func(dest string) string { return d.dialect.spell(options().byDest[dest][0]) }
	for n := leaving(d.original.settings, d.src.settings); n != nil; {
		if err := d.Remove(name(n.dest)); err != nil {
			return err
		}
		d.left = append(d.left, fmt.Sprintf("%s: the edit removes %s", d.file.Name,
			n.text("%[1]s, which "+n.words, name)))
		n = leaving(d.original.settings, d.src.settings)
	}
	return nil
}

// leavingLog returns the options that the script of a log must not have after edits.
func (src *source) leavingLog(edits []interop.Value) (keys []string) {
	after := &settings{byDest: maps.Clone(src.settings.byDest), defaults: src.settings.defaults}
	for _, v := range edits {
		o := options().byName[v.Key]
		switch {
		case o == nil:
		case v.IsAbsent:
			delete(after.byDest, o.Dest)
		default:
			after.byDest[o.Dest] = &argument{option: o, values: strings.Fields(v.Text), on: o.Type == "true"}
		}
	}
	for n := leaving(src.settings, after); n != nil; n = leaving(src.settings, after) {
		keys = append(keys, after.byDest[n.dest].option.Name)
		delete(after.byDest, n.dest)
	}
	return keys
}

var _ interop.Finisher = (*document)(nil)
