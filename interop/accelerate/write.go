package accelerate

import (
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/deepspeed"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
)

// CannotExpress is reported for a plan that the file cannot say.
const CannotExpress ir.Code = "CannotExpress"

// list collects values in their order.
type list []interop.Value

func (l *list) set(key, text string, plan ...string) {
	*l = append(*l, interop.Value{Key: key, Text: text, Plan: plan})
}

func (l *list) remove(key string, plan ...string) {
	*l = append(*l, interop.Value{Key: key, IsAbsent: true, Plan: plan})
}

// size sets a key to a degree above 1, and removes it otherwise: its default is 1.
func (l *list) size(key string, n int, plan ...string) {
	if n > 1 {
		l.set(key, strconv.Itoa(n), plan...)
		return
	}
	l.reset(key, "1", plan...)
}

// reset removes a key, or gives it its default.
func (l *list) reset(key, text string, plan ...string) {
	*l = append(*l, interop.Value{Key: key, IsAbsent: true, Default: text, Plan: plan})
}

// values returns the keys that say a plan: those of the job's engine.
func values(t *interop.Target) []interop.Value {
	var l list
	p := &t.Plan
	nodes, devices := t.Nodes()
	l.set("distributed_type", kindOf(t))
	l.set("num_machines", strconv.Itoa(nodes))
	l.set("num_processes", strconv.Itoa(nodes*devices), "dp")
	l.set("mixed_precision", mixed(p.Precision), "precision")
	switch kindOf(t) {
	case "DEEPSPEED":
		l.deepspeed(p)
	case "MEGATRON_LM":
		l.megatron(p)
	default:
		l.fsdp(p)
	}
	return l
}

// megatronFSDP is the engine whose option megatron_lm_config does not have.
const megatronFSDP = "megatron-fsdp"

// kindOf returns the distributed type that runs a plan of the job's engine.
func kindOf(t *interop.Target) string {
	switch {
	case t.Job.Train.Engine == "deepspeed":
		return "DEEPSPEED"
	case t.Job.Train.Engine == "megatron" || t.Job.Train.Engine == megatronFSDP:
		return "MEGATRON_LM"
	case t.Plan.Zero > 0:
		return "FSDP"
	case t.Hardware.Devices() == 1:
		return "NO"
	}
	return "MULTI_GPU"
}

// mixed returns a precision as mixed_precision names it.
func mixed(p ir.Precision) string {
	switch {
	case p.FP8:
		return "fp8"
	case p.Compute == ir.BF16:
		return "bf16"
	case p.Compute == ir.F16:
		return "fp16"
	}
	return "no"
}

// fsdp adds the keys of FSDP 2, or of DDP.
func (l *list) fsdp(p *ir.Plan) {
	if p.Zero > 0 {
		l.set("fsdp_config.fsdp_version", "2", "zero")
		l.set("fsdp_config.fsdp_reshard_after_forward", strconv.FormatBool(p.Zero == 3), "zero")
		l.remove("fsdp_config.fsdp_sharding_strategy", "zero")
		offloads := strings.Contains(p.Offload, "params:cpu")
		l.set("fsdp_config.fsdp_offload_params", strconv.FormatBool(offloads), "offload")
		l.set("fsdp_config.fsdp_activation_checkpointing", strconv.FormatBool(p.Recompute == "full"), "recompute",
			"recompute_layers")
		l.set("fsdp_config.fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP", "zero") // the default is NO_WRAP
	} else {
		for _, key := range []string{"version", "reshard_after_forward", "offload_params", "activation_checkpointing",
			"auto_wrap_policy"} {
			*l = append(*l, interop.Value{Key: fsdpPrefix + key, IsAbsent: true, IsUnused: true})
		}
	}
	if replicate, _ := replicas(p); replicate*p.TP*p.CP == 1 || p.TP*p.CP == 1 && p.Zero == 0 {
		l.remove("parallelism_config", "tp", "cp", "zero_group")
	} else {
		l.sizes(p)
	}
	*l = append(*l, interop.Value{Key: "ACCELERATE_GRADIENT_ACCUMULATION_STEPS", Text: strconv.Itoa(p.MicroBatches),
		Env: true, Plan: []string{"micro_batches"}, Why: "or accelerate launch --gradient_accumulation_steps " +
			strconv.Itoa(p.MicroBatches) + "; the file has no batch: the script's data loader has a " +
			"batch of " + strconv.Itoa(p.MicroBatch) + " a device"})
}

// sizes adds those of parallelism_config.
func (l *list) sizes(p *ir.Plan) {
	replicate, shard := replicas(p)
	l.size(parallelPrefix+"dp_replicate_size", replicate, "zero_group")
	l.set(parallelPrefix+"dp_shard_size", strconv.Itoa(shard), "dp", "zero_group")
	l.size(parallelPrefix+"tp_size", p.TP, "tp")
	l.size(parallelPrefix+"cp_size", p.CP, "cp")
	strategy := interop.Value{Key: parallelPrefix + "cp_comm_strategy", Text: "allgather", Plan: []string{"cp_kind"},
		IsAbsent: p.CP == 1, IsUnused: p.CP == 1}
	if p.CPKind == "ring" {
		strategy.Text = "alltoall"
	}
	*l = append(*l, strategy)
	l.reset(parallelPrefix+"sp_size", "1", "cp_kind")
}

// withSizes returns values in which a file that has parallelism_config keeps it, with its comments: all sizes say the
// plan.
func withSizes(all []interop.Value, p *ir.Plan) (out []interop.Value) {
	for _, v := range all {
		if v.Key != "parallelism_config" {
			out = append(out, v)
			continue
		}
		var l list
		l.sizes(p)
		out = append(out, l...)
	}
	return out
}

// replicas returns the sizes of the two data-parallel dimensions. FSDP shards over dp_shard and cp.
func replicas(p *ir.Plan) (replicate, shard int) {
	if p.Zero == 0 {
		return p.DP, 1
	}
	replicate = max(1, p.Replicas()/max(1, p.ZeroGroup))
	return replicate, p.DP / replicate
}

// deepspeed adds the keys of DeepSpeed.
func (l *list) deepspeed(p *ir.Plan) {
	const section = "deepspeed_config."
	l.set(section+"zero_stage", strconv.Itoa(p.Zero), "zero")
	l.set(section+"gradient_accumulation_steps", strconv.Itoa(p.MicroBatches), "micro_batches")
	for _, o := range []struct{ what, key string }{{"optimizer", "offload_optimizer_device"},
		{"params", "offload_param_device"}} {
		device, least := "none", 1
		if o.what == "params" {
			least = 3
		}
		for _, entry := range strings.Split(p.Offload, ",") {
			if d, ok := strings.CutPrefix(entry, o.what+":"); ok {
				device = d
			}
		}
		if p.Zero < least {
			l.reset(section+o.key, "none", "offload", "zero") // DeepSpeed refuses another one
			continue
		}
		l.set(section+o.key, device, "offload")
	}
}

// namedValues returns the keys that say a plan if the file names a ds_config.json: its keys have a prefix. That file
// says the precision, too: Accelerate refuses it here.
func namedValues(t *interop.Target, prefix string) (out []interop.Value) {
	for _, v := range values(t) {
		if !strings.HasPrefix(v.Key, "deepspeed_config.") && v.Key != "mixed_precision" {
			out = append(out, v)
		}
	}
	for _, v := range deepspeed.TrainerValues(t) {
		v.Key = prefix + v.Key
		out = append(out, v)
	}
	return out
}

// megatron adds the keys of Megatron-LM.
func (l *list) megatron(p *ir.Plan) {
	const section = megatronPrefix
	l.set(section+"tp_degree", strconv.Itoa(p.TP), "tp")
	l.set(section+"pp_degree", strconv.Itoa(p.PP), "pp")
	l.set(section+"num_micro_batches", strconv.Itoa(p.MicroBatches), "micro_batches")
	l.set(section+"sequence_parallelism", strconv.FormatBool(p.SP), "sp")
	l.set(section+"use_distributed_optimizer", strconv.FormatBool(p.Zero == 1), "zero")
	l.size(section+"context_parallel_size", p.CP, "cp")
	l.size(section+"expert_model_parallel_size", p.EP, "ep")
	if p.EP > 1 || p.ETP > 1 {
		l.set(section+"expert_tensor_parallel_size", strconv.Itoa(p.ETP), "etp")
	} else {
		l.remove(section+"expert_tensor_parallel_size", "etp")
	}
	if p.Recompute == "none" {
		l.remove(section+"recompute_granularity", "recompute")
		l.remove(section+"recompute_method", "recompute")
		l.remove(section+"recompute_num_layers", "recompute")
		l.reset(section+"recompute_activations", "false", "recompute")
		return
	}
	l.reset(section+"recompute_activations", "false", "recompute")
	l.set(section+"recompute_granularity", p.Recompute, "recompute")
	if p.Recompute == "full" {
		l.set(section+"recompute_method", "block", "recompute", "recompute_every")
		l.set(section+"recompute_num_layers", strconv.Itoa(p.RecomputeLayers), "recompute_layers")
		return
	}
	l.remove(section+"recompute_method", "recompute")
	l.remove(section+"recompute_num_layers", "recompute_layers")
}

// megatronPrefix begins the keys of Megatron-LM.
const megatronPrefix = "megatron_lm_config.megatron_lm_"

// uniformValues returns the keys that say a plan in a file whose recompute_method is uniform, which recomputes all
// blocks: a plan that does keeps the method.
func uniformValues(t *interop.Target) []interop.Value {
	out, p := values(t), &t.Plan
	if p.Recompute != "full" || p.RecomputeLayers < p.LargestChunk() {
		return out
	}
	for i := range out {
		switch out[i].Key {
		case megatronPrefix + "recompute_method":
			out[i].Text = "uniform"
		case megatronPrefix + "recompute_num_layers":
			out[i].Text = strconv.Itoa(max(1, p.RecomputeEvery))
		}
	}
	return out
}

// write returns a whole file for a plan.
func write(t *interop.Target) ([]byte, error) {
	if diags := refusals(t); len(diags) > 0 {
		return nil, diags.Err()
	}
	l := list{{Key: "compute_environment", Text: "LOCAL_MACHINE"}, {Key: "debug", Text: "false"}}
	l = append(l, values(t)...)
	if kindOf(t) == "FSDP" {
		l.set("fsdp_config.fsdp_cpu_ram_efficient_loading", "true")
		l.set("fsdp_config.fsdp_state_dict_type", "SHARDED_STATE_DICT")
	}
	if kindOf(t) == "DEEPSPEED" {
		l.set("deepspeed_config.gradient_clipping", strconv.FormatFloat(t.Job.Train.Optimizer.ClipNorm, 'g', -1, 64))
		l.set("deepspeed_config.zero3_init_flag", strconv.FormatBool(t.Plan.Zero == 3))
	}
	l.set("machine_rank", "0")
	l.set("main_training_function", "main")
	l.set("rdzv_backend", "static")
	l.set("same_network", "true")
	l.set("use_cpu", "false")
	return tree.Write(tree.YAML, l)
}

// refusal is a reason why the file cannot say a plan.
type refusal struct {
	is       bool
	key, why string
}

// refusals returns why a configuration of Accelerate cannot say a plan.
func refusals(t *interop.Target) (diags ir.Diags) {
	p := &t.Plan
	var list []refusal
	switch kindOf(t) {
	case "DEEPSPEED":
		list = deepspeedRefusals(p)
	case "MEGATRON_LM":
		list = megatronRefusals(p)
	default:
		list = fsdpRefusals(p)
	}
	if t.Job.Train.Engine == megatronFSDP {
		diags.Addf(ir.Pos{}, CannotExpress, "train.engine: a configuration of Accelerate cannot express engine %s: "+
			"megatron_lm_config has no option for Megatron-FSDP; use engine megatron or fsdp (--engine megatron)",
			megatronFSDP)
	}
	if p.Precision.Compute == ir.F64 {
		list = append(list, refusal{true, "precision", "mixed_precision is no, bf16, fp16 or fp8"})
	}
	for _, r := range list {
		if r.is {
			diags.Addf(ir.Pos{}, CannotExpress, "plan.%s: a configuration of Accelerate cannot express it: "+
				"%s", r.key, r.why)
		}
	}
	return diags
}

func fsdpRefusals(p *ir.Plan) []refusal {
	replicate, shard := replicas(p)
	return []refusal{
		{p.PP > 1, "pp", "FSDP has no pipeline in Accelerate; use pp 1, or engine megatron"},
		{p.EP > 1 || p.ETP > 1, "ep", "Accelerate has no ep_size; use ep 1 and etp 1"},
		{p.SP, "sp", "transformers' tensor parallelism keeps whole activations in norms; use sp false"},
		{p.Zero == 1, "zero", "FSDP shards gradients too: use zero 2 or 3, or zero 0 (DDP)"},
		{p.CP > 1 && p.CPKind == "heads", "cp_kind", "FSDP's context parallelism gathers keys and values; use " +
			"cp_kind " +
			"gather or ring"},
		{p.CP > 1 && p.Zero == 0, "zero", "context parallelism needs FSDP; use zero 2 or 3"},
		{p.TP*p.CP > 1 && replicate > 1 && shard == 1, "zero_group", "Accelerate refuses dp_replicate_size above " +
			"1 with " +
			"dp_shard_size 1 and tp or cp; use zero 2 or 3 over all replicas"},
		{p.Recompute == "selective", "recompute", "FSDP recomputes whole blocks; use recompute full or none"},
		{p.Recompute != "none" && p.Zero == 0, "recompute", "DDP has no key for it: the script switches it on; " +
			"use zero 2 " +
			"or 3, or recompute none"},
		{p.Recompute == "full" && (p.RecomputeLayers < p.LargestChunk() || p.RecomputeEvery > 1 || p.RecomputeSplit),
			"recompute_layers", "FSDP recomputes every block and saves every block's input"},
	}
}

func deepspeedRefusals(p *ir.Plan) []refusal {
	onlyZeRO := func(n int, key string) refusal {
		return refusal{n > 1, key, "deepspeed_config has only ZeRO; use " + key + " 1, or export to deepspeed"}
	}
	return []refusal{
		onlyZeRO(p.TP, "tp"), onlyZeRO(p.PP, "pp"), onlyZeRO(p.CP, "cp"), onlyZeRO(p.EP, "ep"),
		onlyZeRO(p.ETP, "etp"),
		{p.Zero > 0 && p.ZeroGroup < p.Replicas(), "zero_group", "DeepSpeed shards over all replicas"},
		{p.RecomputeSplit, "recompute_split", "the model saves its activations whole; use recompute_split false"},
	}
}

func megatronRefusals(p *ir.Plan) []refusal {
	return []refusal{
		{p.VPP > 1, "vpp", "megatron_lm_config has no virtual stages; use vpp 1"},
		{p.PP > 1 && p.Schedule != "1f1b", "schedule", "Megatron-LM runs 1f1b without virtual stages"},
		{p.Zero > 1, "zero", "use_distributed_optimizer is zero 1; use zero 0 or 1"},
		{p.Zero == 1 && p.ZeroGroup < p.Replicas(), "zero_group", "the distributed optimizer shards over all " +
			"replicas here"},
		{p.CP > 1 && p.CPKind != "ring", "cp_kind", "Megatron-LM's default is p2p; use cp_kind ring"},
		{p.RecomputeEvery > 1 || p.RecomputeSplit, "recompute_every", "recompute_method block saves every block's " +
			"input"},
	}
}
