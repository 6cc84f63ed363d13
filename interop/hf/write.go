package hf

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/accelerate"
	"github.com/planc-dev/planc/interop/deepspeed"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// list collects values in their order.
type list []interop.Value

func (l *list) set(key, text string, plan ...string) {
	*l = append(*l, interop.Value{Key: key, Text: text, Plan: plan})
}

func (l *list) remove(key string, plan ...string) {
	*l = append(*l, interop.Value{Key: key, IsAbsent: true, Plan: plan})
}

// flag sets a key to true, or removes it: its default is false.
func (l *list) flag(is bool, key string, plan ...string) {
	if is {
		l.set(key, "true", plan...)
		return
	}
	*l = append(*l, interop.Value{Key: key, IsAbsent: true, Default: "false", Plan: plan})
}

// values returns the arguments that say a plan.
func values(t *interop.Target) []interop.Value {
	p := &t.Plan
	var l list
	l.set(microKey, strconv.Itoa(p.MicroBatch), "micro_batch")
	l.set(stepsKey, strconv.Itoa(p.MicroBatches), "micro_batches")
	l.flag(p.Precision.Compute == ir.BF16, "bf16", "precision")
	l.flag(p.Precision.Compute == ir.F16, "fp16", "precision")
	if t.Job.Train.Engine == "deepspeed" {
		l.flag(p.Recompute == "full", "gradient_checkpointing", "recompute")
		l.deepspeed(t)
		return l
	}
	isSharded := p.Zero > 0
	l.flag(p.Recompute == "full" && !isSharded, "gradient_checkpointing", "recompute")
	l.flag(isSharded, "fsdp", "zero")
	if isSharded {
		l.set("fsdp_config.reshard_after_forward", strconv.FormatBool(p.Zero == 3), "zero")
		l.flag(p.Recompute == "full", "fsdp_config.activation_checkpointing", "recompute")
		l.flag(strings.Contains(p.Offload, "params:cpu"), "fsdp_config.cpu_offload", "offload")
		l.flag(false, "fsdp_config.offload_params", "offload") // another name of cpu_offload
		l = append(l, interop.Value{Key: "fsdp_config.auto_wrap_policy", IsAbsent: true,
			Default: accelerate.WrapPolicies[0]})
	} else {
		for _, key := range []string{"reshard_after_forward", "activation_checkpointing", "cpu_offload",
			"offload_params", "auto_wrap_policy"} {
			l = append(l, interop.Value{Key: "fsdp_config." + key, IsAbsent: true, IsUnused: true})
		}
	}
	l.remove("deepspeed", "zero")
	l.degrees(p)
	return l
}

// versionKey is the version of FSDP.
const versionKey = "fsdp_config.version"

// degrees adds parallelism_config, unless its defaults say the plan.
func (l *list) degrees(p *ir.Plan) {
	isAlone := p.TP*p.CP == 1 && (p.Zero == 0 || replicas(p) == 1)
	if isAlone {
		*l = append(*l, interop.Value{Key: versionKey, IsAbsent: true, IsUnused: true})
		l.remove("parallelism_config", "tp", "cp", "zero_group")
		return
	}
	l.sizes(p)
}

// replicas returns the number of groups of ranks over which a plan shards.
func replicas(p *ir.Plan) int {
	if p.Zero == 0 {
		return p.DP
	}
	return max(1, p.Replicas()/max(1, p.ZeroGroup))
}

// sizes adds those of parallelism_config, and the version of FSDP that has it.
func (l *list) sizes(p *ir.Plan) {
	if p.Zero > 0 { // version 1, the default of transformers 4, has no parallelism_config
		l.set(versionKey, "2", "tp", "cp", "zero_group")
	} else {
		*l = append(*l, interop.Value{Key: versionKey, IsAbsent: true, IsUnused: true})
	}
	replicate := replicas(p)
	for _, s := range []struct {
		key  string
		n    int
		plan string
	}{{"dp_replicate_size", replicate, "zero_group"}, {"dp_shard_size", p.DP / replicate, "dp"},
		{"tp_size", p.TP, "tp"}, {"cp_size", p.CP, "cp"}, {"sp_size", 1, "cp_kind"}} {
		if s.n > 1 {
			l.set("parallelism_config."+s.key, strconv.Itoa(s.n), s.plan)
			continue
		}
		*l = append(*l, interop.Value{Key: "parallelism_config." + s.key, IsAbsent: true, Default: "1",
			Plan: []string{s.plan}})
	}
}

// withSizes returns values in which a file that has parallelism_config keeps it, with its comments: all sizes say the
// plan.
func withSizes(all []interop.Value, p *ir.Plan) []interop.Value {
	isOfSection := func(v interop.Value) bool { return v.Key == "parallelism_config" }
	if !slices.ContainsFunc(all, isOfSection) {
		return all
	}
	l := list(slices.DeleteFunc(all, func(v interop.Value) bool { return isOfSection(v) || v.Key == versionKey }))
	l.sizes(p)
	return l
}

// deepspeed adds a ds_config.json as a mapping. The arguments fill its batch and types.
func (l *list) deepspeed(t *interop.Target) {
	auto := map[string]bool{"train_micro_batch_size_per_gpu": true, "gradient_accumulation_steps": true,
		"bf16.enabled": true, "fp16.enabled": true}
	for _, v := range deepspeed.TrainerValues(t) {
		if auto[v.Key] {
			v.Text, v.IsAbsent = "auto", false
		}
		v.Key = "deepspeed." + v.Key
		*l = append(*l, v)
	}
}

// filled returns values in which keys of a ds_config.json keep the numbers that the document has: the arguments fill
// only those that are auto, and transformers refuses other numbers.
func filled(doc interop.Document, all []interop.Value, t *interop.Target) []interop.Value {
	own := map[string]interop.Value{}
	for _, v := range deepspeed.TrainerValues(t) {
		own["deepspeed."+v.Key] = v
	}
	for i, v := range all {
		text, ok := doc.Get(v.Key)
		if v.Key == "deepspeed.train_batch_size" && text == "auto" {
			all[i].IsAbsent, all[i].Text = false, text
		}
		if number, isOwn := own[v.Key]; isOwn && v.Text == "auto" && ok && text != "auto" {
			all[i].Text, all[i].IsAbsent = number.Text, number.IsAbsent
		}
	}
	return all
}

// write returns a whole file for a plan.
func write(t *interop.Target) ([]byte, error) {
	if err := refusals(t).Err(); err != nil {
		return nil, err
	}
	o := &t.Job.Train.Optimizer
	number := func(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
	l := list{{Key: "output_dir", Text: "output"}}
	l = append(l, values(t)...)
	if t.Job.Train.Steps > 0 {
		l.set("max_steps", strconv.Itoa(t.Job.Train.Steps))
	}
	l.set("learning_rate", number(o.LR))
	l.set("weight_decay", number(o.WeightDecay))
	l.set("adam_beta1", number(o.Betas[0]))
	l.set("adam_beta2", number(o.Betas[1]))
	l.set("adam_epsilon", number(o.Eps))
	l.set("max_grad_norm", number(o.ClipNorm))
	note := l.schedule(&t.Job.Train)
	data, err := tree.Write(tree.YAML, l)
	return append([]byte(note), data...), err
}

// schedule adds that of the learning rate. note is a comment about what TrainingArguments cannot say.
func (l *list) schedule(train *spec.Train) (note string) {
	s := &train.Schedule
	kind := s.Kind
	for name, own := range schedules {
		if own == s.Kind && name != "constant_with_warmup" {
			kind = name
		}
	}
	switch {
	case s.Kind == "constant" && s.Warmup > 0:
		kind = "constant_with_warmup"
	case s.Kind == "cosine" && s.MinLR > 0:
		kind = "cosine_with_min_lr"
		l.set("lr_scheduler_kwargs.min_lr", strconv.FormatFloat(s.MinLR, 'g', -1, 64))
	case s.Kind == "wsd":
		kind = "warmup_stable_decay"
		l.set("lr_scheduler_kwargs.num_decay_steps", strconv.Itoa(s.Decay))
		if s.MinLR > 0 && train.Optimizer.LR > 0 {
			l.set("lr_scheduler_kwargs.min_lr_ratio", strconv.FormatFloat(s.MinLR/train.Optimizer.LR, 'g', 7, 64))
		}
	case s.MinLR > 0 && s.Kind != "constant":
		note = fmt.Sprintf("# train.schedule.min_lr %g is not written: lr_scheduler_type %s falls to 0.\n", s.MinLR,
			kind)
	}
	l.set("lr_scheduler_type", kind)
	if s.Warmup > 0 {
		l.set("warmup_steps", strconv.Itoa(s.Warmup))
	}
	return note
}

// refusals returns why TrainingArguments cannot say a plan: what DeepSpeed or FSDP cannot.
func refusals(t *interop.Target) (diags ir.Diags) {
	p := &t.Plan
	isWhole := p.RecomputeLayers >= p.LargestChunk() && p.RecomputeEvery == 1 && !p.RecomputeSplit
	if p.Recompute == "selective" || p.Recompute == "full" && !isWhole {
		diags.Addf(ir.Pos{}, accelerate.CannotExpress, "plan.recompute: TrainingArguments cannot express it: "+
			"gradient_checkpointing recomputes every block; use recompute full over all blocks, or none")
		return diags
	}
	if t.Job.Train.Engine == "deepspeed" {
		return deepspeed.Format.Refusals(t)
	}
	if p.CPKind == "ring" {
		diags.Addf(ir.Pos{}, accelerate.CannotExpress, "plan.cp_kind: TrainingArguments cannot express it: cp_size "+
			"gathers keys and values; use cp_kind gather (`--set plan.cp_kind=gather`)")
	}
	copied := *t
	job := *t.Job
	job.Train.Engine = "fsdp"
	copied.Job = &job
	if t.Plan.Zero == 0 {
		copied.Plan.Recompute = "none" // gradient_checkpointing says it, which Accelerate does not have
	}
	return append(diags, accelerate.Format.Refusals(&copied)...)
}
