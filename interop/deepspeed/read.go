package deepspeed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// reader reads a ds_config.json.
type reader struct {
	*keytable.Reader
	im      *interop.Import
	devices int // 0: not known
}

// Read reads a ds_config.json into an import, also for formats whose files name one. auto has the values of keys that
// are "auto"; devices is the number of devices, 0 if nobody has said it.
func Read(im *interop.Import, f interop.File, auto map[string]Auto, devices int) (*tree.Doc, ir.Diags) {
	return read(im, tree.JSON, f, auto, devices)
}

// read reads a ds_config.json in a syntax. DeepSpeed itself reads Hjson; Accelerate and transformers read JSON.
func read(im *interop.Import, s tree.Syntax, f interop.File, auto map[string]Auto, devices int) (*tree.Doc, ir.Diags) {
	doc, diags := tree.Parse(s, f.Name, f.Data)
	if len(diags) > 0 {
		return doc, diags
	}
	return doc, ReadTree(im, doc, auto, devices)
}

// ReadTree reads a ds_config that is part of another file.
func ReadTree(im *interop.Import, doc *tree.Doc, auto map[string]Auto, devices int) ir.Diags {
	r := &reader{keytable.NewReader(doc, Keys, im), im, devices}
	r.Auto = "auto"
	for key, a := range auto {
		r.Fill(key, a.Value, a.From)
	}
	r.dottedKeys()
	r.parallel()
	r.zero()
	r.precision()
	r.readBatch()
	r.recompute(auto[checkpointing])
	r.optimizer()
	r.scheduler()
	r.WholeGroup(devices)
	r.Finish(r.unknown)
	return r.Diags
}

// dottedKeys reports keys such as "zero_optimization.stage", which DeepSpeed ignores because they are no sections.
func (r *reader) dottedKeys() {
	for _, f := range r.Doc.Root.Fields {
		section, below, ok := strings.Cut(f.Key, ".")
		if _, isKnown := r.Table.Find(f.Key); ok && isKnown {
			r.Diags.Addf(f.Pos, strict.UnknownKey, "%q is one key, which DeepSpeed ignores: write %q: {%q: ...}", f.Key,
				section, below)
		}
	}
}

// strictSections are the mappings whose unknown keys DeepSpeed refuses. It ignores those of all others.
// Source: DeepSpeed 0.19.8, runtime/config_utils.py: DeepSpeedConfigModel forbids extra fields.
var strictSections = []string{"zero_optimization", "bf16", "fp16", "tensor_parallel", "compile", "hybrid_engine",
	"tensorboard", "wandb", "csv_monitor", "comet", "weight_quantization", "comms_logger", "aio"}

func (r *reader) unknown(path string, f *tree.Field) {
	top, below, isNested := strings.Cut(path, ".")
	fix := r.Table.Nearest(path)
	if isNested && slices.Contains(strictSections[:4], top) {
		r.Diags = append(r.Diags, ir.Diag{Pos: f.Pos, Code: strict.UnknownKey, Fix: fix,
			Msg: fmt.Sprintf("%s has no key %s, and DeepSpeed refuses the file", top, below)})
		return
	}
	note := "DeepSpeed does not know it"
	if fix != "" {
		note += "; did you mean " + fix + "?"
	}
	r.Account(path, interop.IgnoredByTool, note)
}

// parallel takes the degrees of parallelism.
func (r *reader) parallel() {
	tp := r.degree("tensor_parallel.autotp_size", "plan.tp")
	r.im.DefaultField("plan.tp", "1", "no tensor_parallel.autotp_size")
	if tp > 1 {
		r.im.DefaultField("plan.sp", "false", "AutoTP does not shard activations over tp")
	}
	cp := r.degree("sequence_parallel_size", "plan.cp")
	if cp > 1 {
		r.Take("sequence_parallel_size", interop.Field{Path: "plan.cp_kind", Value: "heads"})
	}
	r.im.DefaultField("plan.cp", "1", "no sequence_parallel_size")
	if r.IsTrue("expert_parallel.enabled") {
		r.Take("expert_parallel.enabled")
		r.degree("expert_parallel.autoep_size", "plan.ep")
		r.degree("expert_parallel.expert_tensor_parallel_size", "plan.etp")
	}
	r.im.DefaultField("plan.ep", "1", "no expert_parallel.autoep_size")
	r.im.DefaultField("plan.etp", "1", "no expert_parallel.expert_tensor_parallel_size")
	if r.Has("pipeline") {
		r.Absent("pp", "the model's code decides: PipelineModule(num_stages=...)")
		return
	}
	r.im.DefaultField("plan.pp", "1", "no pipeline")
}

// degree takes a degree of parallelism. 0 means none.
func (r *reader) degree(path, field string) int {
	n, ok := r.Int(path)
	switch {
	case !ok:
		return 1
	case n < 0:
		r.Wrong(path, strict.OutOfRange, "", "%s is %d; it must be at least 1", path, n)
		return 1
	}
	r.TakeInt(path, field, max(n, 1))
	return max(n, 1)
}

// zero takes the stage of ZeRO, the groups over which it shards, and what it moves off the device.
func (r *reader) zero() {
	if value, ok := r.Doc.Root.Find("zero_optimization").Bool(); ok {
		stage := 0
		if value {
			stage = 1
		}
		r.TakeInt("zero_optimization", "plan.zero", stage)
		return
	}
	const stage = "zero_optimization.stage"
	n, ok := r.Int(stage)
	const limit = 3
	switch {
	case ok && (n < 0 || n > limit):
		r.Wrong(stage, strict.OutOfRange, "", "%s is %d; it must be 0 to 3", stage, n)
	case ok:
		r.TakeInt(stage, "plan.zero", n)
	case !r.IsAuto(stage):
		r.im.DefaultField("plan.zero", "0", "default of "+stage)
	}
	if r.IsTrue("zero_optimization.overlap_comm") {
		r.Account("zero_optimization.overlap_comm", interop.NoEffect, "")
	}
	r.groups(n)
	r.offload(n)
}

// groups takes the groups of ranks that share state.
func (r *reader) groups(stage int) {
	if n, ok := r.Positive("zero_optimization.mics_shard_size"); ok {
		r.TakeInt("zero_optimization.mics_shard_size", "plan.zero_group", n)
	}
	const hpz = "zero_optimization.zero_hpz_partition_size"
	n, ok := r.Int(hpz)
	switch {
	case !ok:
	case n <= 1:
		r.Account(hpz, interop.NoEffect, "")
	case stage != 3:
		r.Account(hpz, interop.NoEffect, "it needs stage 3")
	default:
		r.Account(hpz, interop.Unsupported, fmt.Sprintf("a second copy of the 16-bit parameters over %d ranks: more "+
			"memory, and the backward pass gathers inside these ranks", n))
	}
}

// offload accounts for what is moved off the device. planc prices the plan without it.
func (r *reader) offload(stage int) {
	add := func(path, what, device string, least int) {
		switch {
		case device == "" || device == "none":
			return
		case stage < least:
			r.Wrong(path, Conflict, "", "%s needs zero_optimization.stage %d, and it is %d", path, least, stage)
		}
		r.Account(path, interop.Unsupported, interop.OffloadNote(what, device))
	}
	const optimizer, params = "zero_optimization.offload_optimizer", "zero_optimization.offload_param"
	device := func(path string) string {
		word, _ := r.OneOf(path+".device", "none", "cpu", "nvme")
		return word
	}
	if r.IsTrue("zero_optimization.cpu_offload") {
		add("zero_optimization.cpu_offload", interop.OptimizerState, "cpu", 1)
	}
	if r.IsTrue("zero_optimization.cpu_offload_param") {
		add("zero_optimization.cpu_offload_param", interop.Parameters, "cpu", 3)
	}
	add(optimizer+".device", interop.OptimizerState, device(optimizer), 1)
	add(params+".device", interop.Parameters, device(params), 3)
	if r.IsTrue("activation_checkpointing.cpu_checkpointing") {
		add("activation_checkpointing.cpu_checkpointing", interop.SavedActivations, "cpu", 0)
	}
	if ratio, ok := r.Float(optimizer + ".ratio"); ok && ratio < 1 && stage != 3 {
		r.Wrong(optimizer+".ratio", Conflict, "", "%s.ratio below 1 needs zero_optimization.stage 3, and it is %d",
			optimizer, stage)
	}
}

// recompute takes what activation_checkpointing says. The section configures recomputation; gradient_checkpointing of
// TrainingArguments, or the model's code, switches it on. DeepSpeed itself recomputes nothing.
func (r *reader) recompute(argument Auto) {
	const split = "activation_checkpointing.partition_activations"
	switch on, ok := r.Bool(split); {
	case ok && on:
		r.Take(split, interop.Field{Path: "plan.recompute", Value: "full"})
		r.AllLayers(split)
		if f, ok := r.im.Field("plan.tp"); ok && f.Value != "1" {
			r.Take(split, interop.Field{Path: "plan.recompute_split", Value: "true"})
		}
	case argument.Value == "true":
		r.im.DefaultField("plan.recompute", "full", argument.From)
		r.AllLayers(argument.From)
	case argument.From != "":
		r.im.DefaultField("plan.recompute", "none", argument.From)
	default:
		r.im.DefaultField("plan.recompute", "none", "no gradient_checkpointing in the files")
	}
}
