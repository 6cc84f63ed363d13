package hf

import (
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
)

// reader reads a file of TrainingArguments.
type reader struct {
	*keytable.Reader
	im       *interop.Import
	ds       *interop.File // the file that deepspeed or fsdp_config names; nil if it is not given
	devices  int           // 0: not known
	perNode  int           // the devices of a node; 0: not known
	offloads bool          // fsdp has the word offload
	isLocal  bool          // FSDP shards over the devices of a node
	part     *interop.Part // the file that deepspeed or fsdp_config names; nil if the main file has everything
	// fsdp reads fsdp_config: the reader itself, or that of the file which fsdp_config names.
	fsdp *reader
}

func (r *reader) read() {
	r.openConfig()
	r.degrees()
	r.recompute()
	switch {
	case r.runsDeepSpeed():
		r.im.Engine = "deepspeed"
		(&deepspeedReader{r}).read()
	default:
		r.sharding()
		r.precision()
		r.batch()
	}
	r.optimizer()
	(&recipeReader{r}).read()
	r.script()
	if !r.fsdp.isLocal || r.perNode > 0 {
		r.WholeGroup(r.devices)
	}
	r.Finish(r.unknown)
	if r.fsdp != r {
		r.fsdp.Finish(r.fsdp.unknown)
		r.Diags = append(r.Diags, r.fsdp.Diags...)
	}
}

// unknown accounts for arguments that are not of TrainingArguments: a script adds its own.
func (r *reader) unknown(path string, f *tree.Field) {
	note := "not of TrainingArguments: the script's own"
	near, fix := r.Table.Nearest(path), r.Table.NearestTaken(path)
	switch {
	case !strings.Contains(path, ".") && fix != "" && !r.Has(fix):
		r.im.Warn(f.Pos, "%s is not of TrainingArguments; did you mean %s? HfArgumentParser refuses arguments that "+
			"the script does not add", path, fix)
	case near != "":
		note += "; did you mean " + near + "?"
	}
	r.Account(path, interop.NoEffect, note)
}

const (
	microKey = "per_device_train_batch_size"
	stepsKey = "gradient_accumulation_steps"
)

// batch takes the batch of a device and the number of micro-batches.
func (r *reader) batch() {
	take := func(path, field, absent string) int {
		if n, ok := r.Positive(path); ok {
			r.TakeInt(path, field, n)
			return n
		}
		r.im.DefaultField(field, absent, "default of "+path)
		n, _ := strconv.Atoi(absent)
		return n
	}
	micro, steps := take(microKey, "plan.micro_batch", "8"), take(stepsKey, "plan.micro_batches", "1")
	if r.IsTrue("auto_find_batch_size") {
		r.Account("auto_find_batch_size", interop.Unsupported, "the batch is halved until it fits")
	}
	dp := r.ranks()
	if dp == 0 {
		r.Absent("train.global_batch", "depends on the number of devices: "+microKey+" · "+stepsKey+
			" · data-parallel ranks")
		return
	}
	batch, _ := r.GlobalBatch(microKey, micro, stepsKey, steps, dp)
	r.im.SetField(interop.Field{Path: "train.global_batch", Value: strconv.Itoa(batch),
		From: microKey + " · " + stepsKey + " · " + strconv.Itoa(dp) + " data-parallel ranks"})
}

// ranks returns the number of data-parallel ranks, 0 if it is not known.
func (r *reader) ranks() int {
	dp := r.devices
	for _, path := range []string{"plan.tp", "plan.cp"} {
		f, _ := r.im.Field(path)
		n, err := strconv.Atoi(f.Value)
		if err != nil || n < 1 || dp%n != 0 {
			if dp > 0 && n > 0 {
				r.Diags.Addf(f.Pos, Conflict, "%s %d must divide %d devices", f.From, n, r.devices)
			}
			return 0
		}
		dp /= n
	}
	return dp
}

// precision takes the types of parameters and state. With DDP, parameters and gradients stay in fp32, and matmuls run
// in 16 bits. With FSDP, they are those of the engine: each rank stores its part in fp32, and FSDP gathers and reduces
// 16 bits. With no_shard it only reduces 16 bits.
func (r *reader) precision() {
	isBF16, isFP16 := r.IsTrue("bf16"), r.IsTrue("fp16")
	compute, from := "f32", "bf16"
	switch {
	case r.precisionConflict():
		return
	case isBF16:
		compute = "bf16"
	case isFP16:
		compute, from = "fp16", "fp16"
	}
	r.Take("bf16")
	r.Take("fp16")
	if !r.Has(from) {
		from = "neither bf16 nor fp16"
	}
	zero, _ := r.im.Field("plan.zero")
	isUnsharded := zero.Value == "0" && runsFSDP(r.Node("fsdp")) // no_shard
	fields := func(isSharded bool) []interop.Field {
		switch {
		case isSharded:
			return interop.Sharded(compute, from)
		case isUnsharded:
			return interop.NoShard(compute, from)
		}
		return interop.Autocast(compute, from)
	}
	for _, f := range fields(zero.Value != "0") {
		if r.Has(from) {
			r.Take(from, f)
		} else {
			r.im.SetField(f)
		}
	}
	r.im.Precision = func(p *ir.Plan) []interop.Field { return fields(p.Zero > 0) }
}

// recompute takes whether every block's activations are recomputed. Trainer reads fsdp_config only with fsdp.
func (r *reader) recompute() {
	r.checkpointing("gradient_checkpointing", "activation_checkpointing")
	if runsFSDP(r.Node("fsdp")) {
		r.fsdp.checkpointing("fsdp_config.activation_checkpointing", "fsdp_config.fsdp_activation_checkpointing")
	}
	r.im.DefaultField("plan.recompute", "none", "default of gradient_checkpointing")
}

// checkpointing takes keys that switch recomputation on.
func (r *reader) checkpointing(paths ...string) {
	for _, path := range paths {
		on, ok := r.Bool(path)
		if !ok {
			continue
		}
		r.Take(path)
		if on {
			r.Take(path, interop.Field{Path: "plan.recompute", Value: "full"})
			r.AllLayers(path)
		}
	}
}

// degrees takes parallelism_config, whose names are those of Accelerate's ParallelismConfig.
func (r *reader) degrees() {
	const section = "parallelism_config."
	size := func(key, field string) int {
		n, ok := r.Positive(section + key)
		if !ok {
			n = 1
		}
		if field != "" && ok {
			r.TakeInt(section+key, field, n)
		}
		return n
	}
	size("tp_size", "plan.tp")
	cp, ulysses := size("cp_size", "plan.cp"), size("sp_size", "")
	replicate, shard := size("dp_replicate_size", ""), size("dp_shard_size", "")
	switch {
	case cp > 1 && ulysses > 1:
		r.Wrong(section+"sp_size", Conflict, "1", "cp_size is %d and sp_size is %d; Accelerate runs one of them: "+
			"set the "+
			"other to 1", cp, ulysses)
	case ulysses > 1:
		r.TakeInt(section+"sp_size", "plan.cp", ulysses)
		r.Take(section+"sp_size", interop.Field{Path: "plan.cp_kind", Value: "heads"})
	case cp > 1:
		r.Take(section+"cp_size", interop.Field{Path: "plan.cp_kind", Value: "gather"})
	}
	if dp := keytable.Product(replicate, shard); dp > 1 {
		r.TakeInt(section+"dp_shard_size", "plan.dp", dp)
		r.Take(section + "dp_replicate_size")
	}
	if group := keytable.Product(shard, cp); replicate > 1 && group > 1 {
		r.TakeInt(section+"dp_replicate_size", "plan.zero_group", group)
	}
	for path, from := range map[string]string{"plan.tp": "tp_size", "plan.cp": "cp_size"} {
		r.im.DefaultField(path, "1", "no parallelism_config."+from)
	}
	r.im.DefaultField("plan.pp", "1", "Trainer has no pipeline")
	r.im.DefaultField("plan.ep", "1", "no expert parallelism")
	r.im.DefaultField("plan.sp", "false", "transformers' tensor parallelism keeps whole activations in norms")
}

// optimizers maps transformers' names to planc's.
var optimizers = []struct{ prefix, kind string }{{"adamw_torch_8bit", ""}, {"adamw_torch_4bit", ""},
	{"adamw_torch", "adamw"}, {"adamw_apex", "adamw"}, {"adamw_hf", "adamw"}, {"sgd", "sgd"}}

// optimizer takes the optimizer.
func (r *reader) optimizer() {
	if r.im.Has("train.optimizer.kind") {
		return
	}
	optim := r.Text("optim")
	if optim == "" {
		r.im.DefaultField("train.optimizer.kind", "adamw", "default of optim")
		return
	}
	for _, o := range optimizers {
		if strings.HasPrefix(optim, o.prefix) && o.kind != "" {
			r.Take("optim", interop.Field{Path: "train.optimizer.kind", Value: o.kind})
			return
		}
	}
	r.Account("optim", interop.Unsupported, interop.OtherOptimizerNote(optim))
}

// adapters are arguments of scripts that say what is trained, with the values for which it is all parameters: TRL has
// use_peft, and a quantized model can only be trained by adapters; LLaMA-Factory has finetuning_type.
var adapters = map[string][]string{"use_peft": {"false"}, "load_in_4bit": {"false"}, "load_in_8bit": {"false"},
	"use_lora": {"false"}, "finetuning_type": {"full", "freeze"}, "quantization_bit": nil}

// quantized are the adapters that quantize the model.
var quantized = []string{"load_in_4bit", "load_in_8bit", "quantization_bit"}

// script takes arguments that scripts add, and that say what TrainingArguments lack.
func (r *reader) script() {
	for _, path := range []string{"max_seq_length", "max_length", "block_size"} {
		if n, ok := r.Positive(path); ok {
			r.TakeInt(path, "train.seq_len", n)
			break
		}
	}
	for path, all := range adapters {
		note := interop.AdaptersNote
		if slices.Contains(quantized, path) {
			note = interop.QuantizedNote
		}
		if text := r.Text(path); text != "" && !slices.Contains(all, strings.ToLower(text)) {
			r.Account(path, interop.Unsupported, note)
		}
	}
	if r.Text("rlhf_type") != "" { // of ms-swift; LLaMA-Factory has stage
		r.Account("rlhf_type", interop.Unsupported, interop.PreferenceNote)
	}
	if slices.Contains([]string{"dpo", "kto", "ppo", "rm"}, r.Text("stage")) {
		r.Account("stage", interop.Unsupported, interop.PreferenceNote)
	}
	if r.Has("model_name_or_path") && !r.im.Has("model") {
		r.Account("model_name_or_path", interop.Planned, "give its config.json as a second file, or --model")
	}
}
