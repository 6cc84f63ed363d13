package deepspeed

import (
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
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

// choose sets a key if a condition holds. Otherwise, DeepSpeed's default must hold.
func (l *list) choose(is bool, key, text string, plan ...string) {
	*l = append(*l, interop.Value{Key: key, Text: text, IsAbsent: !is, Default: defaults[key], Plan: plan})
	if !is {
		(*l)[len(*l)-1].Text = ""
	}
}

// reset removes a key, or gives it its default.
func (l *list) reset(key string, plan ...string) { l.choose(false, key, "", plan...) }

// defaults are the values of keys that mean the same as their absence.
// Source: DeepSpeed 0.19.8, runtime/config.py, runtime/precision_config.py, runtime/zero/config.py,
// runtime/tensor_parallel/config.py, module_inject/auto_ep_config.py, runtime/activation_checkpointing/config.py.
var defaults = map[string]string{
	"zero_optimization.zero_hpz_partition_size":  "1",
	"zero_optimization.offload_optimizer.device": "none", "zero_optimization.offload_param.device": "none",
	"tensor_parallel.autotp_size": "0", "sequence_parallel_size": "1", "expert_parallel.enabled": "false",
	"expert_parallel.autoep_size": "1", "expert_parallel.expert_tensor_parallel_size": "1", "bf16.enabled": "false",
	"fp16.enabled": "false", "data_types.grad_accum_dtype": "null", "communication_data_type": "null",
	masterKey: "false", momentsKey: "false", partitionKey: "false",
	"activation_checkpointing.cpu_checkpointing": "false",
}

// values returns the keys that say a plan.
func values(t *interop.Target) []interop.Value {
	p := &t.Plan
	var l list
	l.remove(globalKey, "micro_batch", "micro_batches")
	l.set(microKey, strconv.Itoa(p.MicroBatch), "micro_batch")
	l.set(stepsKey, strconv.Itoa(p.MicroBatches), "micro_batches")
	l.precision(p)
	l.set("zero_optimization.stage", strconv.Itoa(p.Zero), "zero")
	l.reset("zero_optimization.zero_hpz_partition_size", "zero_group")
	l.remove("zero_optimization.mics_shard_size", "zero_group") // DeepSpeed 0.19.8 refuses the key
	l.offload("optimizer", "zero_optimization.offload_optimizer", p)
	l.offload("params", "zero_optimization.offload_param", p)
	l.choose(p.TP > 1, "tensor_parallel.autotp_size", strconv.Itoa(p.TP), "tp")
	l.choose(p.CP > 1, "sequence_parallel_size", strconv.Itoa(p.CP), "cp", "cp_kind")
	hasExperts := p.EP > 1 || p.ETP > 1
	l.choose(hasExperts, "expert_parallel.enabled", "true", "ep")
	l.choose(hasExperts, "expert_parallel.autoep_size", strconv.Itoa(p.EP), "ep")
	l.choose(p.ETP > 1, "expert_parallel.expert_tensor_parallel_size", strconv.Itoa(p.ETP), "etp")
	l.recompute(p)
	return l
}

// precision adds the keys that say the types. DeepSpeed accumulates and sends gradients in the model's type unless it
// gets another one.
func (l *list) precision(p *ir.Plan) {
	q := p.Precision
	isBF16, isFP16 := q.Params == ir.BF16, q.Params == ir.F16
	l.choose(isBF16, "bf16.enabled", "true", "precision")
	l.choose(isFP16, "fp16.enabled", "true", "precision")
	if p.Zero > 0 {
		l.choose(q.Grads != q.Params, "data_types.grad_accum_dtype", dtypes[q.Grads], "precision")
	} else {
		l.reset("data_types.grad_accum_dtype", "precision", "zero") // DeepSpeed refuses another one
	}
	isNarrow := p.Zero > 0 && isBF16 && q.Master == q.Params // DeepSpeed refuses the keys with stage 0
	l.choose(isNarrow, masterKey, "true", "precision", "zero")
	l.choose(isNarrow && q.Moments == ir.BF16, momentsKey, "true", "precision", "zero")
	l.choose(q.Reduce != q.Params, "communication_data_type", dtypes[q.Reduce], "precision")
}

// Keys that keep the optimizer's state in bf16.
const (
	masterKey  = "bf16.bf16_master_weights_and_grads"
	momentsKey = "bf16.bf16_optimizer_states"
)

// dtypes are DeepSpeed's names of types.
var dtypes = map[ir.Elem]string{ir.F32: "fp32", ir.BF16: "bf16", ir.F16: "fp16"}

// offload adds where a kind of state is kept.
func (l *list) offload(what, key string, p *ir.Plan) {
	for _, entry := range strings.Split(p.Offload, ",") {
		if device, ok := strings.CutPrefix(entry, what+":"); ok {
			l.set(key+".device", device, "offload")
			return
		}
	}
	least := 1
	if what == "params" {
		least = 3
	}
	if p.Zero < least {
		l.reset(key+".device", "offload", "zero") // DeepSpeed refuses another one
		return
	}
	l.reset(key+".device", "offload")
}

// recompute adds how activations are recomputed. The model's code switches recomputation on.
func (l *list) recompute(p *ir.Plan) {
	v := interop.Value{Key: partitionKey, Text: "true",
		Plan: []string{"recompute", "recompute_split", "tp"}, IsAbsent: !p.RecomputeSplit, // it splits over tp
		Default: defaults[partitionKey]}
	if p.Recompute == "full" {
		v.Why = "the model's code switches recomputation on: model.gradient_checkpointing_enable()"
	}
	*l = append(*l, v)
	l.choose(strings.Contains(p.Offload, "activations:cpu"), "activation_checkpointing.cpu_checkpointing", "true",
		"offload")
}

// write returns a whole file for a plan.
func write(t *interop.Target) ([]byte, error) {
	if diags := refusals(&t.Plan); len(diags) > 0 {
		return nil, diags.Err()
	}
	l := list(values(t))
	l.recipe(t)
	return tree.Write(tree.JSON, l)
}

// refusals returns why a ds_config.json cannot say a plan.
func refusals(p *ir.Plan) (diags ir.Diags) {
	q := p.Precision
	for _, r := range []struct {
		is   bool
		key  string
		why  string
		args []any
	}{
		{p.PP > 1, "pp %d", "the model's code says it: PipelineModule(num_stages=%[1]d); use pp 1", []any{p.PP}},
		{p.SP, "sp", "AutoTP does not shard activations over tp; use sp false", nil},
		{p.Zero > 0 && p.ZeroGroup < p.Replicas(), "zero_group %d",
			"DeepSpeed shards over all %[2]d replicas; use zero_group %[2]d", []any{p.ZeroGroup, p.Replicas()}},
		{p.Zero == 0 && q.Params == ir.BF16 && (q.Master != q.Params || q.Grads != q.Params), "zero 0",
			"DeepSpeed keeps no fp32 master copy with bf16 and stage 0; use zero 1", nil},
		{p.Zero == 0 && q.Params == ir.BF16 && q.Master == q.Params && q.Moments != ir.BF16, "zero 0",
			"DeepSpeed keeps the optimizer's moments in bf16 with bf16 and stage 0; use zero 1", nil},
		{p.Zero == 0 && q.Params == ir.F16 && q.Grads != q.Params, "zero 0",
			"DeepSpeed accumulates gradients in fp16 with fp16 and stage 0; use zero 1", nil},
		{p.CP > 1 && p.CPKind != "heads", "cp_kind " + p.CPKind, "DeepSpeed's sequence parallelism is Ulysses; use " +
			"cp_kind heads", nil},
		{q.Params == ir.F64 || q.FP8, "precision", "DeepSpeed trains in fp32, bf16 and fp16; use one of these", nil},
	} {
		if r.is {
			diags.Addf(ir.Pos{}, CannotExpress, "plan."+r.key+": a ds_config.json cannot express it: "+r.why, r.args...)
		}
	}
	return diags
}

// types are DeepSpeed's names of optimizers.
var types = map[string]string{"adamw": "AdamW", "adam": "Adam", "sgd": "SGD"}

// recipe adds the optimizer, the schedule and clipping.
func (l *list) recipe(t *interop.Target) {
	train := &t.Job.Train
	o := &train.Optimizer
	l.set("gradient_clipping", number(o.ClipNorm))
	l.set("optimizer.type", types[o.Kind])
	l.set("optimizer.params.lr", number(o.LR))
	l.set("optimizer.params.weight_decay", number(o.WeightDecay))
	if o.Kind == "sgd" {
		l.set("optimizer.params.momentum", number(o.Momentum))
	} else {
		l.set("optimizer.params.betas", "["+number(o.Betas[0])+", "+number(o.Betas[1])+"]")
		l.set("optimizer.params.eps", number(o.Eps))
	}
	if o.Kind == "adam" {
		l.set("optimizer.params.adam_w_mode", "false")
	}
	l.schedule(t)
}

// schedule adds the scheduler.
func (l *list) schedule(t *interop.Target) {
	train := &t.Job.Train
	s := &train.Schedule
	steps, warmup := strconv.Itoa(train.Steps), strconv.Itoa(s.Warmup)
	switch {
	case s.Kind == "constant" && s.Warmup > 0:
		l.set("scheduler.type", "WarmupLR")
		l.set("scheduler.params.warmup_max_lr", number(train.Optimizer.LR))
	case s.Kind == "linear" && train.Steps > 0:
		l.set("scheduler.type", "WarmupDecayLR")
		l.set("scheduler.params.warmup_max_lr", number(train.Optimizer.LR))
		l.set("scheduler.params.total_num_steps", steps)
	case s.Kind == "cosine" && train.Steps > 0:
		l.set("scheduler.type", "WarmupCosineLR")
		l.set("scheduler.params.total_num_steps", steps)
		if train.Optimizer.LR > 0 {
			l.set("scheduler.params.cos_min_ratio", number(s.MinLR/train.Optimizer.LR))
		}
	default:
		return
	}
	l.set("scheduler.params.warmup_num_steps", warmup)
	l.set("scheduler.params.warmup_type", "linear")
}
