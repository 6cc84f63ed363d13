package megatron

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// NoExport is the code of plans that Megatron-LM cannot express.
const NoExport ir.Code = "NoExport"

// Values returns the options that say the target's plan.
func Values(t *interop.Target) []interop.Value { return plain.values(t) }

// valueList collects values. Its options are named by their settings.
type valueList struct {
	dialect *dialect
	values  []interop.Value
}

// values returns the options in the dialect's spelling.
func (d *dialect) values(t *interop.Target) []interop.Value {
	v := &valueList{dialect: d}
	p := &t.Plan
	v.number("tensor_model_parallel_size", p.TP, "tp")
	v.flag("sequence_parallel", p.SP, "sp")
	v.pipeline(p, t)
	v.contexts(p)
	v.experts(p)
	v.sharding(p, t)
	v.recompute(p)
	v.number("micro_batch_size", p.MicroBatch, "micro_batch")
	if t.Job != nil {
		v.number("global_batch_size", t.Job.Train.GlobalBatch, "micro_batches")
	}
	v.environment(p, t)
	return v.values
}

// spell returns the spelling of a setting's option.
func (v *valueList) spell(dest string) string { return v.dialect.spell(options().byDest[dest][0]) }

// text adds an option with a value.
func (v *valueList) text(dest, text string, plan ...string) {
	v.values = append(v.values, interop.Value{Key: v.spell(dest), Text: text, Plan: plan})
}

// number adds an option with a number.
func (v *valueList) number(dest string, n int, plan ...string) {
	v.text(dest, strconv.Itoa(n), plan...)
}

// flag adds an option without a value, present or absent.
func (v *valueList) flag(dest string, present bool, plan ...string) {
	v.values = append(v.values, interop.Value{Key: v.spell(dest), IsAbsent: !present, Plan: plan})
}

// absent adds options that must not be in the file.
func (v *valueList) absent(plan string, dests ...string) {
	for _, dest := range dests {
		v.flag(dest, false, plan)
	}
}

// isEven reports whether all chunks have the same number of layers.
func isEven(counts []int) bool {
	return !slices.ContainsFunc(counts, func(n int) bool { return n != counts[0] })
}

// chunks returns the layers of each chunk of a plan.
func chunks(p *ir.Plan) (counts []int) {
	for _, word := range strings.Split(p.StageLayers, ",") {
		counts = append(counts, atoi(word))
	}
	return counts
}

// pipeline adds the stages. Stages with different numbers of layers are written as a layout, which excludes the options
// of the even split.
func (v *valueList) pipeline(p *ir.Plan, t *interop.Target) {
	v.number("pipeline_model_parallel_size", p.PP, "pp")
	counts := chunks(p)
	even := p.PP == 1 || isEven(counts)
	if even && p.VPP > 1 {
		v.number(chunksOfStage, p.VPP, "vpp", "schedule")
	} else {
		v.absent("vpp", chunksOfStage)
	}
	v.absent("vpp", layersOfChunk)
	if even {
		v.absent("stage_layers", layoutOfStages)
	} else {
		v.text(layoutOfStages, layoutText(counts), "stage_layers", "vpp", "schedule")
	}
	v.absent("stage_layers", "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers",
		"account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split")
	v.flag("use_tp_pp_dp_mapping", p.PP > 1 && pipelineFirst(p.AxisOrder), "axis_order")
}

// The settings that say the number of virtual stages, of which a file has one.
const (
	chunksOfStage = "num_virtual_stages_per_pipeline_rank"
	layersOfChunk = "num_layers_per_virtual_pipeline_stage"
)

// The settings of the layers of each chunk, and of the number of layers of multi-token prediction.
const (
	layoutOfStages  = "pipeline_model_parallel_layout"
	predictedLayers = "mtp_num_layers"
)

// withLayersOfChunk returns values that say the virtual stages by their number of layers.
func withLayersOfChunk(all []interop.Value, p *ir.Plan, spell func(dest string) string) []interop.Value {
	find := func(dest string) int {
		return slices.IndexFunc(all, func(v interop.Value) bool { return v.Key == spell(dest) })
	}
	from, to := find(chunksOfStage), find(layersOfChunk)
	if all[from].IsAbsent {
		return all
	}
	all[from].IsAbsent, all[from].Text = true, ""
	all[to].IsAbsent, all[to].Text = false, strconv.Itoa(chunks(p)[0])
	all[to].Plan = []string{"pp", "vpp", "schedule"}
	return all
}

// WithPredictedLayers returns values whose layout of stages has the layers of multi-token prediction, in the last
// stage. Megatron-LM refuses a layout without them. layout is the layout's key.
func WithPredictedLayers(all []interop.Value, layers int, layout string) []interop.Value {
	at := slices.IndexFunc(all, func(v interop.Value) bool { return v.Key == layout && !v.IsAbsent })
	if at >= 0 && layers > 0 {
		all[at].Text = strings.TrimSuffix(all[at].Text, "L") + strings.Repeat("m", min(layers, maxLayout)) + "L"
	}
	return all
}

// pipelineFirst reports whether consecutive ranks lie along pp before dp.
func pipelineFirst(order string) bool {
	axes := strings.Split(order, ",")
	pp := slices.Index(axes, "pp")
	return pp >= 0 && pp < slices.Index(axes, "dp")
}

// layoutText returns the layout of chunks: "Et*3|t*2|t*3L".
func layoutText(counts []int) string {
	stages := make([]string, len(counts))
	for i, n := range counts {
		switch {
		case n == 1:
			stages[i] = "t"
		case n > 1:
			stages[i] = fmt.Sprintf("t*%d", n)
		}
	}
	stages[0] = "E" + stages[0]
	stages[len(stages)-1] += "L"
	return strings.Join(stages, "|")
}

// contexts adds context parallelism.
func (v *valueList) contexts(p *ir.Plan) {
	v.number("context_parallel_size", p.CP, "cp")
	for text, kind := range contextKinds {
		if kind == p.CPKind {
			v.text("cp_comm_type", text, "cp_kind")
			return
		}
	}
	v.absent("cp_kind", "cp_comm_type")
}

// experts adds the degrees of experts.
func (v *valueList) experts(p *ir.Plan) {
	if p.MoESlack == 0 {
		v.absent("ep", "expert_model_parallel_size")
		v.absent("etp", "expert_tensor_parallel_size")
		return
	}
	v.number("expert_model_parallel_size", p.EP, "ep")
	if p.ETP == p.TP && v.dialect == plain { // the default
		v.absent("etp", "expert_tensor_parallel_size")
		return
	}
	v.number("expert_tensor_parallel_size", p.ETP, "etp")
}

// isFSDP reports whether a target runs under Megatron-FSDP.
func isFSDP(t *interop.Target) bool {
	return t.Job != nil && t.Job.Train.Engine == "megatron-fsdp" || t.Plan.Zero > 1
}

// sharding adds the ZeRO stage.
func (v *valueList) sharding(p *ir.Plan, t *interop.Target) {
	fsdp := isFSDP(t)
	v.flag("use_distributed_optimizer", p.Zero > 0 || fsdp, "zero")
	v.flag("use_megatron_fsdp", fsdp, "zero")
	if fsdp {
		for text, stage := range fsdpStages {
			if stage == p.Zero {
				v.text("data_parallel_sharding_strategy", text, "zero")
			}
		}
		v.text("ckpt_format", "fsdp_dtensor", "zero")
		v.values[len(v.values)-1].Why = "Megatron-FSDP has no other format of checkpoints"
	} else {
		v.absent("zero", "data_parallel_sharding_strategy", "use_torch_fsdp2")
	}
	if p.Zero > 0 && p.ZeroGroup < p.Replicas() {
		v.number("num_distributed_optimizer_instances", p.Replicas()/p.ZeroGroup, "zero_group")
	} else {
		v.absent("zero_group", "num_distributed_optimizer_instances")
	}
	if p.Zero > 0 {
		for _, dest := range []string{"overlap_grad_reduce", "overlap_param_gather"} {
			v.flag(dest, true, "zero")
			v.values[len(v.values)-1].Why = "planc prices this overlap"
		}
	}
}

// recompute adds what is recomputed.
func (v *valueList) recompute(p *ir.Plan) {
	v.absent("recompute", "recompute_activations")
	const method, count = "recompute_method", "recompute_num_layers"
	switch p.Recompute {
	case "none":
		v.absent("recompute", granularity, method, count)
	case "selective":
		v.text(granularity, "selective", "recompute")
		v.absent("recompute", method, count)
	default:
		v.text(granularity, "full", "recompute")
		if p.RecomputeLayers >= p.LargestChunk() {
			v.text(method, "uniform", "recompute_layers")
			v.number(count, p.RecomputeEvery, "recompute_every")
			break
		}
		v.text(method, "block", "recompute_layers")
		v.number(count, p.RecomputeLayers, "recompute_layers", "recompute_every")
	}
	v.flag("distribute_saved_activations", p.RecomputeSplit, "recompute_split")
}

// connectionsEnv is the number of queues from the CPU to a GPU.
const connectionsEnv = "CUDA_DEVICE_MAX_CONNECTIONS"

// environment adds the variables that belong to the plan.
func (v *valueList) environment(p *ir.Plan, t *interop.Target) {
	const name = connectionsEnv
	isBlackwell := strings.HasPrefix(t.Hardware.GPU.Arch, "sm_10") || strings.HasPrefix(t.Hardware.GPU.Arch, "sm_12")
	switch {
	case isFSDP(t):
		v.values = append(v.values, interop.Value{Key: name, Env: true, IsAbsent: true, Plan: []string{"zero"},
			Why: "Megatron-FSDP refuses the value 1"})
	case (p.TP > 1 || p.CP > 1) && !isBlackwell:
		v.values = append(v.values, interop.Value{Key: name, Text: "1", Env: true, Plan: []string{"tp", "cp"},
			Why: "Megatron-LM needs it with tp or cp on GPUs before Blackwell"})
	}
}

// refusals returns what of a target Megatron-LM cannot express.
func refusals(t *interop.Target) (diags ir.Diags) {
	p := &t.Plan
	refuse := func(key, format string, args ...any) {
		diags.Addf(ir.Pos{}, NoExport, "plan.%s: "+format, append([]any{key}, args...)...)
	}
	if p.PP > 1 && p.Schedule != "1f1b" && p.Schedule != "interleaved" {
		refuse("schedule", "Megatron-LM has no schedule %s: use 1f1b or interleaved (--engine megatron)", p.Schedule)
	}
	if p.Recompute == "full" && p.RecomputeEvery > 1 && p.RecomputeLayers < p.LargestChunk() {
		refuse("recompute_every", "Megatron-LM recomputes groups of %d layers in all layers or in none, and not in %d "+
			"of %d: use recompute_every 1 or recompute_layers %[4]d", p.RecomputeEvery, p.RecomputeLayers,
			p.LargestChunk())
	}
	if p.Recompute == "selective" && p.RecomputeLayers < p.LargestChunk() {
		refuse("recompute_layers", "Megatron-LM recomputes selectively in all layers: use recompute_layers %d",
			p.LargestChunk())
	}
	if p.RecomputeSplit && p.Recompute != "full" {
		refuse("recompute_split", "Megatron-LM distributes the saved inputs of full recomputation only: use recompute "+
			"full")
	}
	if isFSDP(t) && p.PP > 1 {
		refuse("pp", "Megatron-FSDP has no pipeline: use pp 1, or zero 1")
	}
	if p.Offload != "" {
		refuse("offload", "planc does not write the options of offloading: remove plan.offload")
	}
	return diags
}
