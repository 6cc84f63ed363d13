package hf

import (
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/accelerate"
	"github.com/planc-dev/planc/interop/deepspeed"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
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
	l.remove(key, plan...)
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
	} else {
		l.remove("fsdp_config", "zero")
	}
	l.remove("deepspeed", "zero")
	l.degrees(p)
	return l
}

// degrees adds the sizes of parallelism_config.
func (l *list) degrees(p *ir.Plan) {
	replicate := max(1, p.Replicas()/max(1, p.ZeroGroup))
	if p.Zero == 0 {
		replicate = p.DP
	}
	if p.TP*p.CP == 1 && (p.Zero == 0 || replicate == 1) {
		l.remove("parallelism_config", "tp", "cp", "zero_group")
		return
	}
	for _, s := range []struct {
		key  string
		n    int
		plan string
	}{{"dp_replicate_size", replicate, "zero_group"}, {"dp_shard_size", p.DP / replicate, "dp"},
		{"tp_size", p.TP, "tp"}, {"cp_size", p.CP, "cp"}} {
		if s.n > 1 {
			l.set("parallelism_config."+s.key, strconv.Itoa(s.n), s.plan)
			continue
		}
		l.remove("parallelism_config."+s.key, s.plan)
	}
}

// deepspeed adds a ds_config.json as a mapping. The arguments fill its batch and types.
func (l *list) deepspeed(t *interop.Target) {
	auto := map[string]bool{"train_micro_batch_size_per_gpu": true, "gradient_accumulation_steps": true,
		"bf16.enabled": true, "fp16.enabled": true}
	for _, v := range deepspeed.Format.Values(t) {
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
	for _, v := range deepspeed.Format.Values(t) {
		own["deepspeed."+v.Key] = v
	}
	for i, v := range all {
		text, ok := doc.Get(v.Key)
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
	return tree.Write(tree.YAML, l)
}

// refusals returns why TrainingArguments cannot say a plan: what DeepSpeed or FSDP cannot.
func refusals(t *interop.Target) (diags ir.Diags) {
	p := &t.Plan
	isWhole := p.RecomputeLayers >= p.LargestChunk() && p.RecomputeEvery == 1 && !p.RecomputeSplit
	if p.Recompute == "selective" || p.Recompute == "full" && !isWhole {
		diags.Addf(ir.Pos{}, accelerate.CannotExpress, "plan.recompute: TrainingArguments cannot say it: "+
			"gradient_checkpointing recomputes every block; use recompute full over all blocks, or none")
		return diags
	}
	if t.Job.Train.Engine == "deepspeed" {
		return deepspeed.Format.Refusals(t)
	}
	copied := *t
	job := *t.Job
	job.Train.Engine = "fsdp"
	copied.Job = &job
	if t.Plan.Zero == 0 {
		copied.Plan.Recompute = "none" // gradient_checkpointing says it, which Accelerate does not have
	}
	return accelerate.Format.Refusals(&copied)
}
