package megatron

import (
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
)

// fsdpStages maps the sharding strategies of Megatron-FSDP to ZeRO stages.
var fsdpStages = map[string]int{"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}

// sharding sets the ZeRO stage, and the replicas over which state is sharded.
func (im *planReader) sharding() {
	zero, dest := im.zero()
	im.set("plan.zero", zero, dest)
	im.groups(zero, im.replicas())
}

// zero returns the ZeRO stage and the setting that says it.
func (im *planReader) zero() (int, string) {
	switch {
	case im.s.flag("use_megatron_fsdp"):
		const dest = "data_parallel_sharding_strategy"
		return fsdpStages[im.s.text(dest)], dest
	case im.s.flag("use_torch_fsdp2"):
		if im.s.has("torch_fsdp2_reshard_after_forward") {
			return 2, "torch_fsdp2_reshard_after_forward"
		}
		return 3, "use_torch_fsdp2"
	case im.s.flag("use_distributed_optimizer"):
		return 1, "use_distributed_optimizer"
	}
	return 0, "use_distributed_optimizer"
}

// replicas returns dp · cp, over which the distributed optimizer shards; 0 if the number of devices is not known.
func (im *importer) replicas() int {
	ranks := im.s.number("tensor_model_parallel_size") * im.s.number("pipeline_model_parallel_size")
	if im.cluster%max(1, ranks) != 0 {
		return 0
	}
	return im.cluster / ranks
}

// groups sets zero_group.
func (im *planReader) groups(zero, replicas int) {
	const dest = "num_distributed_optimizer_instances"
	instances := max(1, im.s.number(dest))
	switch {
	case zero == 0 || replicas == 1:
		im.assume("plan.zero_group", 1, "no sharding")
	case replicas == 0 && instances > 1:
		im.note(dest, "planc needs the number of devices to read it: give --nodes and --devices")
	case replicas == 0:
	case replicas%instances != 0:
		im.fail(dest, "%s %d must divide the %d replicas of dp · cp", im.name(dest), instances, replicas)
	default:
		im.set("plan.zero_group", replicas/instances, dest)
	}
}

// recompute sets what the backward pass recomputes.
func (im *planReader) recompute(tp int) {
	const dest = granularity
	kind, from := im.s.text(dest), dest
	if im.s.flag("recompute_activations") {
		kind, from = "selective", "recompute_activations"
	}
	largest := im.largestChunk()
	switch kind {
	case "", "none":
		im.set("plan.recompute", "none", dest)
		im.assume("plan.recompute_layers", 0, "no recomputation")
	case "selective":
		im.set("plan.recompute", "selective", from)
		im.allLayers(largest, "selective recomputation is of all layers")
		im.modules()
	case "full":
		im.set("plan.recompute", "full", from)
		im.fullRecompute(largest)
	}
	const split = "distribute_saved_activations"
	if im.s.flag(split) {
		if tp == 1 || kind != "full" {
			im.fail(split, "%s needs %s above 1 and %s full", im.name(split), im.name("tensor_model_parallel_size"),
				im.name(dest))
		}
		im.set("plan.recompute_split", true, split)
	}
}

// modules reads which parts selective recomputation recomputes. planc prices that of attention.
func (im *planReader) modules() {
	const dest = "recompute_modules"
	if !im.s.has(dest) {
		return
	}
	others := slices.DeleteFunc(strings.Fields(im.s.text(dest)), func(m string) bool { return m == "core_attn" })
	if len(others) > 0 {
		im.note(dest, "planc prices the recomputation of core_attn; "+strings.Join(others, ", ")+
			" would save more memory and take more time")
	}
}

// fullRecompute sets the layers that are recomputed: the first ones of each chunk, or all in groups.
func (im *planReader) fullRecompute(largest int) {
	const method, count = "recompute_method", "recompute_num_layers"
	n := im.s.number(count)
	if !im.s.has(method) || n < 1 {
		missing := method
		if im.s.has(method) {
			missing = count
		}
		im.fail(granularity, "%s full needs %s: add %s", im.name(granularity),
			im.name(missing), map[string]string{method: im.name(method) + " uniform " + im.name(count) + " 1",
				count: im.name(count) + " 1"}[missing])
		return
	}
	if im.s.text(method) == "uniform" {
		im.used(method)
		im.allLayers(largest, im.name(method)+" uniform")
		if largest > 0 {
			n = min(n, largest)
		}
		im.set("plan.recompute_every", n, count)
		return
	}
	if largest > 0 {
		n = min(n, largest)
	}
	im.set("plan.recompute_layers", n, count)
	im.set("plan.recompute_every", 1, method)
}

// allLayers sets that all layers of a chunk are recomputed. If the file does not say how many the model has, the field
// stays open: whoever adds the model adds the number.
func (im *planReader) allLayers(largest int, from string) {
	if largest > 0 {
		im.out.SetField(interop.Field{Path: "plan.recompute_layers", Value: strconv.Itoa(largest), From: from,
			Pos: im.s.pos(granularity), OfModel: true})
	}
}

// largestChunk returns the largest number of layers of a chunk; 0 if the file does not say how many the model has.
func (im *planReader) largestChunk() int {
	pp, layers := im.s.number("pipeline_model_parallel_size"), im.layers()
	vpp, _ := im.virtualStages(pp, layers)
	var counts []int
	switch {
	case im.s.has("pipeline_model_parallel_layout"):
		counts = im.layout()
	case im.s.has("decoder_first_pipeline_num_layers") || im.s.has("decoder_last_pipeline_num_layers"):
		counts, _ = im.unevenEnds(pp, vpp, layers)
	case im.extraLayers() > 0:
		counts, _ = im.withExtraLayers(pp*vpp, layers)
	}
	if len(counts) > 0 {
		return slices.Max(counts)
	}
	chunks := max(1, pp*vpp)
	return (layers + chunks - 1) / chunks
}

// order sets the order of ranks.
func (im *planReader) order() {
	const dest = "use_tp_pp_dp_mapping"
	axes := []string{"tp"}
	if im.s.number("context_parallel_size") > 1 {
		axes = append(axes, "cp")
	}
	switch pp := im.s.number("pipeline_model_parallel_size"); {
	case pp == 1:
		axes = append(axes, "dp")
	case im.s.flag(dest) && im.ranksReorder():
		axes = append(axes, "pp", "dp")
	default:
		axes = append(axes, "dp", "pp")
	}
	im.set("plan.axis_order", "["+strings.Join(axes, ", ")+"]", dest)
}

// ranksReorder reports whether the order of ranks matters: there may be several nodes, and several replicas.
func (im *planReader) ranksReorder() bool {
	const node = 8 // devices of one node
	return (im.cluster == 0 || im.cluster > node) && im.replicas() != 1
}
