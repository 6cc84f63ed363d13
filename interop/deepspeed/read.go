package deepspeed

import (
	"bytes"
	"encoding/json"
	"errors"
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
	// isOwnLoop says that the training code calls DeepSpeed itself. Accelerate and transformers run no PipelineModule.
	isOwnLoop bool
}

// Read reads a ds_config.json into an import, also for formats whose files name one. auto has the values of keys that
// are "auto"; devices is the number of devices, 0 if nobody has said it.
func Read(im *interop.Import, f interop.File, auto map[string]Auto, devices int) (*tree.Doc, ir.Diags) {
	if diags := strictly(f); len(diags) > 0 {
		doc, wrong := tree.Parse(tree.JSON, f.Name, f.Data)
		return doc, append(wrong, diags...)[:1]
	}
	doc, diags := tree.Parse(tree.JSON, f.Name, f.Data)
	if len(diags) > 0 {
		return doc, diags
	}
	return doc, ReadTree(im, doc, auto, devices)
}

// stagesKey is the number of pipeline stages.
const stagesKey = "pipeline.stages"

// strictly reports the first comment or trailing comma, which Python's json refuses.
// Source: Accelerate 1.15.0, utils/deepspeed.py: HfDeepSpeedConfig.
func strictly(f interop.File) (diags ir.Diags) {
	var value any
	var wrong *json.SyntaxError
	data := bytes.TrimPrefix(f.Data, []byte("\ufeff"))
	if !errors.As(json.Unmarshal(data, &value), &wrong) || wrong.Offset < 1 || wrong.Offset > int64(len(data)) {
		return nil
	}
	before := data[:wrong.Offset-1]
	at := ir.Pos{File: f.Name, Line: 1 + bytes.Count(before, []byte("\n")),
		Column: len(before) - bytes.LastIndexByte(before, '\n')}
	switch data[wrong.Offset-1] {
	case '/', '#':
		diags.Addf(at, strict.Syntax, "Accelerate and transformers read this file as JSON, which has no comments: "+
			"remove this one")
	case '}', ']':
		diags.Addf(at, strict.Syntax, "Accelerate and transformers read this file as JSON, which has no comma before "+
			"a closing bracket: remove it")
	}
	return diags
}

// ReadTree reads a ds_config that is part of another file.
func ReadTree(im *interop.Import, doc *tree.Doc, auto map[string]Auto, devices int) ir.Diags {
	r := &reader{Reader: keytable.NewReader(doc, Keys, im), im: im, devices: devices}
	return r.read(auto)
}

// read reads all keys. auto has the values of keys that are "auto".
func (r *reader) read(auto map[string]Auto) ir.Diags {
	r.Auto = "auto"
	for key, a := range auto {
		r.Fill(key, a.Value, a.From)
	}
	r.dottedKeys()
	r.quotedNumbers()
	r.parallel()
	r.zero()
	r.precision()
	r.readBatch()
	r.recompute(auto[checkpointing])
	r.optimizer()
	r.scheduler()
	r.WholeGroup(r.devices)
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
	if isNested && slices.Contains(strictSections[:4], top) {
		r.Diags = append(r.Diags, ir.Diag{Pos: f.Pos, Code: strict.UnknownKey, Fix: r.Table.Nearest(path),
			Msg: fmt.Sprintf("%s has no key %s, and DeepSpeed refuses the file", top, below)})
		return
	}
	keytable.Ignore(r.Reader, path, "DeepSpeed")
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
	r.pipeline()
}

// pipeline takes the number of stages. DeepSpeed does not read it: a PipelineModule gets it from the training code.
// Source: DeepSpeed 0.19.8, runtime/pipe/module.py: PipelineModule; runtime/config.py: get_pipeline_config;
// runtime/pipe/engine.py: forward, which only train_batch may call.
func (r *reader) pipeline() {
	if !r.Has("pipeline") {
		r.im.DefaultField("plan.pp", "1", "no pipeline")
		return
	}
	if !r.isOwnLoop {
		r.Account("pipeline", interop.NoEffect, "Accelerate and transformers run no PipelineModule")
		r.im.DefaultField("plan.pp", "1", "Accelerate and transformers run no PipelineModule")
		return
	}
	if stage, ok := r.Int("zero_optimization.stage"); ok && stage > 1 {
		why := fmt.Sprintf("a PipelineModule does not run with zero_optimization.stage %d", stage)
		r.Account("pipeline", interop.IgnoredByTool, "DeepSpeed does not read it, and "+why)
		r.im.DefaultField("plan.pp", "1", why)
		return
	}
	r.im.InCode = []string{"pp"}
	if n, ok := r.Positive(stagesKey); ok {
		r.TakeInt(stagesKey, "plan.pp", n)
		r.im.AddNote(r.Doc.Root.Find(stagesKey).Pos, "%s %d is taken as pp %d; DeepSpeed does not read it, and the "+
			"model's code must say it too: PipelineModule(num_stages=%d)", stagesKey, n, n, n)
		return
	}
	r.Absent("pp", "the model's code decides: PipelineModule(num_stages=...); give it with --set plan.pp")
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
	r.limits()
	r.groups(n)
	r.offload(n)
}

// elements are the keys that DeepSpeed refuses below a number.
// Source: DeepSpeed 0.19.8, runtime/zero/config.py: DeepSpeedZeroConfig.
var elements = []struct {
	key   string
	least float64
}{
	{"reduce_bucket_size", 1}, {"allgather_bucket_size", 0}, {"sub_group_size", 0}, {"zero_hpz_partition_size", 0},
	{"stage3_prefetch_bucket_size", 0}, {"stage3_param_persistence_threshold", 0},
	{"stage3_model_persistence_threshold", 0}, {"stage3_max_live_parameters", 0}, {"stage3_max_reuse_distance", 0},
}

// limits reports numbers that are too small.
func (r *reader) limits() {
	for _, e := range elements {
		path := "zero_optimization." + e.key
		if n, ok := r.Node(path).Float(); ok && n < e.least { // DeepSpeed also reads true, and numbers in quotes
			r.Wrong(path, strict.OutOfRange, "", "%s is %g; it must be at least %g", path, n, e.least)
		}
	}
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
		r.Account(hpz, interop.Unsupported, fmt.Sprintf(interop.ZeroPlusPlus+"a second copy of the 16-bit parameters "+
			"over %d ranks: more memory, and the backward pass gathers inside these ranks", n))
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
	const oldOptimizer, oldParams = "zero_optimization.cpu_offload", "zero_optimization.cpu_offload_param"
	for _, names := range [][2]string{{oldOptimizer, optimizer}, {oldParams, params}} {
		if r.Has(names[0]) && r.Has(names[1]) {
			r.Wrong(names[0], Conflict, "", "%s is the old name of %s, and DeepSpeed refuses a file with both: remove "+
				"%[1]s", names[0], names[1])
		}
	}
	if r.IsTrue(oldOptimizer) {
		add(oldOptimizer, interop.OptimizerState, "cpu", 1)
	}
	if r.IsTrue(oldParams) {
		add(oldParams, interop.Parameters, "cpu", 3)
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

// recompute takes what says that activations are recomputed. The section activation_checkpointing only configures
// DeepSpeed's own checkpoint function, which the model's code must call. gradient_checkpointing of TrainingArguments
// calls PyTorch's.
func (r *reader) recompute(argument Auto) {
	accountPartition(r)
	switch {
	case argument.Value == "true":
		r.im.DefaultField("plan.recompute", "full", argument.From)
		r.AllLayers(argument.From)
	case argument.From != "":
		r.im.DefaultField("plan.recompute", "none", argument.From)
	default:
		r.im.DefaultField("plan.recompute", "none", "no gradient_checkpointing in the files")
	}
	if f := r.Doc.Root.Nearest("activation_checkpointing"); r.isOwnLoop && r.Has("activation_checkpointing") {
		r.im.AddNote(f, "activation_checkpointing does not switch recomputation on: planc prices a model that "+
			"recomputes nothing, unless --set plan.recompute=full says that its code recomputes all blocks")
	}
}
