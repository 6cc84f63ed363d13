package accelerate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/deepspeed"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// reader reads a configuration of Accelerate.
type reader struct {
	*keytable.Reader
	im      *interop.Import
	ds      *interop.File // the ds_config.json that the file names; nil if it is not given
	given   int           // the number of devices that the user gives, which replaces that of the file; 0 if none
	perNode int           // the devices of a node of the given devices; 0 if not known
	isLocal bool          // FSDP shards over the devices of a node
	part    *interop.Part // the ds_config.json, for edits; nil if the file names none
}

// sections are the mappings of the file. Each kind of training reads one of them, and parallelism_config.
var sections = []string{"fsdp_config", "parallelism_config", "deepspeed_config", "megatron_lm_config", "fp8_config",
	"dynamo_config", "mpirun_config"}

// isSection reports whether a path is below a section.
func isSection(path string) bool {
	top, _, ok := strings.Cut(path, ".")
	return ok && slices.Contains(sections, top)
}

// kinds are the distributed types that run on GPUs, and the section that each reads.
var kinds = map[string]string{"NO": "", "MULTI_GPU": "", "FSDP": "fsdp_config", "DEEPSPEED": "deepspeed_config",
	"MEGATRON_LM": "megatron_lm_config"}

const kindKey = "distributed_type"

func (r *reader) read() {
	kind := r.Text(kindKey)
	section, ok := kinds[kind]
	switch {
	case kind == "":
		r.Wrong(kindKey, Missing, "", "%s is missing; Accelerate needs it: NO, MULTI_GPU, FSDP, DEEPSPEED or "+
			"MEGATRON_LM", kindKey)
	case !ok:
		if word, _ := r.OneOf(kindKey, "NO", "MULTI_GPU", "FSDP", "DEEPSPEED", "MEGATRON_LM"); word != "" {
			r.Wrong(kindKey, strict.UnknownValue, word, "%s is %s; Accelerate knows it in capital letters only",
				kindKey, strconv.Quote(kind))
		}
	}
	r.Take(kindKey)
	r.devices(kind)
	r.unread(section)
	switch kind {
	case "FSDP":
		r.fsdp()
	case "DEEPSPEED":
		r.im.Engine = "deepspeed"
		r.deepspeed()
	case "MEGATRON_LM":
		r.im.Engine = "megatron"
		r.megatron()
	case "NO", "MULTI_GPU":
		r.Take(kindKey, interop.Field{Path: "plan.zero", Value: "0"})
		r.parallelism(false)
		r.im.Values = r.ownValues
	}
	if !r.im.Has("plan.recompute") {
		r.im.DefaultField("plan.recompute", "none", "no recomputation in the file; pin plan.recompute if the script "+
			"calls gradient_checkpointing_enable()")
	}
	r.precision(kind)
	r.defaults()
	if !r.isLocal || r.im.DevicesPerNode > 0 {
		r.WholeGroup(r.im.Devices)
	}
	r.Finish(r.unknown)
}

// defaults accounts for values that are as good as absent.
func (r *reader) defaults() {
	backend := "dynamo_config.dynamo_backend"
	if short := "dynamo_config.backend"; r.Has(short) {
		backend = short
	}
	if strings.EqualFold(r.Text(backend), "no") {
		r.Account(backend, interop.NoEffect, "")
	}
}

// devices takes the number of processes: one for each GPU.
func (r *reader) devices(kind string) {
	n, ok := r.Int("num_processes")
	isSaid := ok && n != -1
	if kind != "NO" && !isSaid {
		takeMachines(r, ok)
	}
	switch {
	case r.given > 0 && r.im.Nodes.N*r.perNode == r.given:
		r.im.Devices, r.im.DevicesPerNode = r.given, r.perNode
		keytable.TakeDevices(r.Reader, "num_processes", r.given, "num_machines", r.im.Nodes.N)
		return
	case r.given > 0:
		r.im.Devices, r.im.DevicesPerNode = r.given, r.perNode
		r.Account("num_processes", interop.NoEffect, "replaced by the given number of devices")
		r.Account("num_machines", interop.NoEffect, "replaced by the given number of devices")
		return
	case !ok && kind == "NO":
		n = 1
	case n == -1:
		r.Account("num_processes", interop.Planned, "")
		return
	case ok && n < 1:
		r.Wrong("num_processes", strict.OutOfRange, "", "num_processes is %d; it must be at least 1", n)
		return
	case !ok:
		return
	}
	machines, ok := r.Positive("num_machines")
	if !ok {
		machines = 1
	}
	if n%machines != 0 {
		r.Wrong("num_processes", Conflict, "", "num_processes is %d, the number of all GPUs; it must be a multiple of "+
			"num_machines %d", n, machines)
		return
	}
	r.im.Devices, r.im.DevicesPerNode = n, n/machines
	keytable.TakeDevices(r.Reader, "num_processes", n, "num_machines", machines)
}

// takeMachines says the number of nodes whose devices the file does not say. isAny says that num_processes is -1.
func takeMachines(r *reader, isAny bool) {
	why := "num_processes is missing"
	if isAny {
		why = "num_processes is -1"
	}
	if n, ok := r.Positive("num_machines"); ok && n > 1 {
		r.im.Nodes = interop.NodeCount{N: n, Name: "num_machines", Pos: r.Node("num_machines").Pos, Why: why}
	}
}

// unread accounts for sections that the kind of training does not read.
func (r *reader) unread(section string) {
	for _, other := range []string{"fsdp_config", "deepspeed_config", "megatron_lm_config"} {
		if n := r.Node(other); other != section && n != nil && len(n.Fields) > 0 {
			r.Account(other, interop.IgnoredByTool, kindKey+" is "+r.Text(kindKey))
			for _, f := range n.Fields { // a misspelt key is named here too
				if _, isKnown := r.Table.Find(prefixed(other + "." + f.Key)); !isKnown {
					keytable.Ignore(r.Reader, other+"."+f.Key, "Accelerate")
				}
			}
		}
	}
}

// precision takes the types of parameters and state.
// Source: Accelerate 1.15.0: FSDP and DDP keep parameters in fp32 and compute in mixed_precision. FSDP also gathers
// parameters and reduces gradients in it (utils/dataclasses.py: set_mixed_precision), as planc's engine fsdp does.
func (r *reader) precision(kind string) {
	const key = "mixed_precision"
	text, ok := r.OneOf(key, "no", "bf16", "fp16", "fp8")
	if b, isBool := r.Node(key).Bool(); isBool && !b {
		text, ok = "no", true
	}
	if !ok {
		text = "no"
	}
	switch {
	case r.im.Has("train.precision") || r.ds != nil && text == "no":
		r.Account(key, interop.IgnoredByTool, "the ds_config.json says it")
		return
	case kind == "MEGATRON_LM":
	case kind == "FSDP" && r.isUnsharded():
		fields := func(p *ir.Plan) []interop.Field {
			if p.Zero == 0 && text != "no" {
				return interop.NoShard(text, key)
			}
			return typesOf("FSDP", text)
		}
		r.Take(key, fields(&ir.Plan{})...)
		r.im.Precision = fields
		return
	case kind == "DEEPSPEED":
		stage, _ := r.im.Field("plan.zero")
		r.Take(key, typesOfDeepSpeed(text, stage.Value == "0")...)
		r.im.Precision = func(p *ir.Plan) []interop.Field { return typesOfDeepSpeed(text, p.Zero == 0) }
		return
	default:
		r.im.Precision = func(p *ir.Plan) []interop.Field {
			if p.Zero == 0 {
				return typesOf("MULTI_GPU", text)
			}
			return typesOf("FSDP", text)
		}
	}
	r.Take(key, typesOf(kind, text)...)
}

// isUnsharded reports whether FSDP shards nothing: its strategy is NO_SHARD.
func (r *reader) isUnsharded() bool {
	zero, _ := r.im.Field("plan.zero")
	return zero.Value == "0"
}

// typesOf returns the fields of train.precision that mixed_precision says for a kind of training.
func typesOf(kind, mixed string) []interop.Field {
	const from = "mixed_precision"
	if mixed == "no" {
		mixed = "f32"
	}
	if mixed == "f32" || kind == "MEGATRON_LM" || kind == "FSDP" && mixed != "fp8" {
		return interop.Sharded(mixed, from)
	}
	return interop.Autocast(mixed, from)
}

// typesOfDeepSpeed returns the fields of train.precision that mixed_precision says with DeepSpeed. fp8 has the model's
// parameters and gradients in bf16.
// Source: Accelerate 1.15.0, utils/dataclasses.py: DeepSpeedPlugin.set_mixed_precision.
func typesOfDeepSpeed(mixed string, isStage0 bool) []interop.Field {
	field := func(name, value string) interop.Field {
		return interop.Field{Path: "train.precision." + name, Value: value, From: "mixed_precision"}
	}
	model := mixed
	switch mixed {
	case "no":
		return []interop.Field{field("compute", "f32")}
	case "fp8":
		model = "bf16"
	}
	return append([]interop.Field{field("compute", mixed), field("grads", model), field("reduce", model)},
		deepspeed.MasterTypes(model, isStage0)...)
}

// deepspeed takes deepspeed_config: a file, or keys of its own.
func (r *reader) deepspeed() {
	const section, file = "deepspeed_config.", "deepspeed_config.deepspeed_config_file"
	if path := r.Text(file); path != "" {
		r.namedConfig(path)
		return
	}
	stage, ok := r.Int(section + "zero_stage")
	switch {
	case ok && (stage < 0 || stage > 3):
		r.Wrong(section+"zero_stage", strict.OutOfRange, "", "zero_stage is %d; it must be 0 to 3", stage)
	case ok:
		r.TakeInt(section+"zero_stage", "plan.zero", stage)
	default:
		stage = 2
		r.im.DefaultField("plan.zero", "2", "default of zero_stage")
	}
	const accumulation = section + "gradient_accumulation_steps"
	if r.Text(accumulation) == "auto" { // DeepSpeedPlugin leaves it to the Trainer
		r.Account(accumulation, interop.Planned, "the Trainer's gradient_accumulation_steps")
	} else if steps, ok := r.Positive(accumulation); ok {
		r.TakeInt(accumulation, "plan.micro_batches", steps)
	}
	if clip, ok := r.Float(section + "gradient_clipping"); ok {
		r.Take(section+"gradient_clipping", interop.Field{Path: "train.optimizer.clip_norm",
			Value: strconv.FormatFloat(clip, 'g', -1, 64)})
	}
	for _, o := range []struct {
		key, what string
		least     int
	}{{"offload_optimizer_device", interop.OptimizerState, 1},
		{"offload_param_device", interop.Parameters, 3}} {
		device, ok := r.OneOf(section+o.key, "none", "cpu", "nvme")
		switch {
		case !ok || device == "none":
			continue
		case stage < o.least:
			r.Wrong(section+o.key, Conflict, "", "%s needs zero_stage %d, and it is %d", o.key, o.least, stage)
		}
		r.Account(section+o.key, interop.Unsupported, interop.OffloadNote(o.what, device))
	}
	r.parallelism(false)
}

// namedConfig reads the ds_config.json that the file names.
func (r *reader) namedConfig(path string) {
	const file = "deepspeed_config.deepspeed_config_file"
	r.Take(file)
	if r.ds == nil {
		r.Wrong(file, Missing, "", "%s has the ZeRO stage and the batch: give it as a second file", path)
		return
	}
	const mixed = "mixed_precision"
	if n := r.Node(mixed); n != nil && n.Kind != strict.Null {
		r.Wrong(mixed, Conflict, "", "%s and deepspeed_config_file are both given, and Accelerate refuses that: "+
			"remove the key; bf16.enabled or fp16.enabled in %s says the type", mixed, path)
	}
	for _, f := range r.Node("deepspeed_config").Fields {
		if inBoth[f.Key] {
			r.Wrong("deepspeed_config."+f.Key, Conflict, "", "%s and deepspeed_config_file are both given, and "+
				"Accelerate refuses that: move %s into %s", f.Key, f.Key, path)
		}
	}
	doc, diags := deepspeed.Read(r.im, *r.ds, nil, r.im.Devices)
	r.Diags = append(r.Diags, diags...)
	noteAutoTypes(r.im, doc)
	r.part = &interop.Part{Name: r.ds.Name, Prefix: file + ".", Doc: doc}
}

// noteAutoTypes notes that the type is unknown if a ds_config.json leaves it to mixed_precision, which the file lacks.
// Source: Accelerate 1.15.0, commands/launch.py; utils/dataclasses.py: DeepSpeedPlugin.set_mixed_precision.
func noteAutoTypes(im *interop.Import, doc *tree.Doc) {
	if im.Has("train.precision") || im.Has("train.precision.compute") {
		return
	}
	for _, key := range []string{"bf16.enabled", "bfloat16.enabled", "fp16.enabled"} {
		if n := doc.Root.Find(key); n != nil && n.Text == "auto" {
			im.AddNote(n.Pos, "%s is auto and mixed_precision is missing, which means FP32, unless the training "+
				"code passes mixed_precision or bf16. planc prices BF16: type --set train.precision=f32 if the code "+
				"passes none", key)
			return
		}
	}
}

// inBoth are keys that a ds_config.json has too.
// Source: Accelerate 1.15.0, utils/dataclasses.py: DeepSpeedPlugin._deepspeed_config_checks.
var inBoth = map[string]bool{"gradient_accumulation_steps": true, "gradient_clipping": true, "zero_stage": true,
	"offload_optimizer_device": true, "offload_param_device": true, "offload_optimizer_nvme_path": true,
	"offload_param_nvme_path": true, "zero3_save_16bit_model": true}

// megatron takes megatron_lm_config, whose keys are Megatron-LM's.
func (r *reader) megatron() {
	const section = "megatron_lm_config.megatron_lm_"
	for _, k := range []struct{ key, path, absent string }{{"tp_degree", "plan.tp", "1"}, {"pp_degree", "plan.pp", "1"},
		{"context_parallel_size", "plan.cp", "1"}, {"expert_model_parallel_size", "plan.ep", "1"},
		{"expert_tensor_parallel_size", "plan.etp", ""}, {"num_micro_batches", "plan.micro_batches", "1"}} {
		if n, ok := r.Positive(section + k.key); ok {
			r.TakeInt(section+k.key, k.path, n)
		} else if k.absent != "" {
			r.im.DefaultField(k.path, k.absent, "default of megatron_lm_"+k.key)
		}
	}
	if f, _ := r.im.Field("plan.cp"); f.Value != "1" {
		r.im.DefaultField("plan.cp_kind", "ring", "default of Megatron-LM")
	}
	r.im.DefaultField("plan.vpp", "1", "megatron_lm_config has no virtual stages")
	if f, _ := r.im.Field("plan.pp"); f.Value != "1" {
		r.im.DefaultField("plan.schedule", "1f1b", "Megatron-LM's schedule without virtual stages")
	}
	r.flag(section+"sequence_parallelism", "plan.sp", "false", "true")
	r.flag(section+"use_distributed_optimizer", "plan.zero", "0", "1")
	if clip, ok := r.Float(section + "gradient_clipping"); ok {
		r.Take(section+"gradient_clipping", interop.Field{Path: "train.optimizer.clip_norm",
			Value: strconv.FormatFloat(clip, 'g', -1, 64)})
	}
	granularity, ok := r.OneOf(section+"recompute_granularity", "full", "selective")
	switch {
	case ok:
		r.Take(section+"recompute_granularity", interop.Field{Path: "plan.recompute", Value: granularity})
		if granularity == "full" {
			r.recomputeBlocks(section)
		} else {
			r.AllLayers(section + "recompute_granularity")
		}
	default:
		r.flag(section+"recompute_activations", "plan.recompute", "none", "selective")
	}
	r.divide(1)
}

// recomputeBlocks takes which blocks full recomputation covers. Method block recomputes the first blocks of each chunk.
// Method uniform recomputes all, and saves one block input in recompute_num_layers.
func (r *reader) recomputeBlocks(section string) {
	const method, layers = "recompute_method", "recompute_num_layers"
	word, _ := r.OneOf(section+method, "block", "uniform")
	n, ok := r.Positive(section + layers)
	switch {
	case word == "" || !ok:
		r.Wrong(section+"recompute_granularity", Missing, "", "megatron_lm_recompute_granularity full needs "+
			"megatron_lm_recompute_method and megatron_lm_recompute_num_layers")
	case word == "block":
		r.TakeInt(section+layers, "plan.recompute_layers", n)
		keytable.WholeInputs(r.im, section+method)
	default:
		r.TakeInt(section+layers, "plan.recompute_every", n)
		r.AllLayers(section + method)
		r.im.Values = uniformValues
	}
	r.Take(section + method)
}

// truthWords are other words for true and false.
// Source: Accelerate 1.15.0, utils/environment.py: str_to_bool.
var truthWords = map[string]bool{"yes": true, "y": true, "on": true, "no": false, "n": false, "off": false}

// flag takes a key that is true or false.
func (r *reader) flag(path, field, off, on string) {
	value, ok := r.Bool(path)
	text := off
	if value {
		text = on
	}
	if ok {
		r.Take(path, interop.Field{Path: field, Value: text})
		return
	}
	r.im.DefaultField(field, off, "default of "+path[strings.LastIndexByte(path, '.')+1:])
}

// divide reports degrees whose product does not divide the number of processes.
func (r *reader) divide(dp int) {
	product, words := dp, []string{}
	for _, path := range []string{"plan.tp", "plan.pp", "plan.cp"} {
		f, ok := r.im.Field(path)
		n, err := strconv.Atoi(f.Value)
		if ok && err == nil && n > 1 {
			product *= n
			words = append(words, fmt.Sprintf("%s %d", f.From[strings.LastIndexByte(f.From, '.')+1:], n))
		}
	}
	n := r.im.Devices
	switch {
	case n == 0 || product == 0 || n%product == 0:
	case r.given > 0:
		r.Wrong("megatron_lm_config", Conflict, "", "the given number of devices, %d, is no multiple of %s: change "+
			"one of them", n, strings.Join(words, " · "))
	default:
		r.Wrong("num_processes", Conflict, "", "num_processes is %d; it must be a multiple of %s", n,
			strings.Join(words, " · "))
	}
}
