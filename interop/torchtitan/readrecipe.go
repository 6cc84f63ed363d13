package torchtitan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// recipeReader reads the types, what is recomputed, and the optimizer.
type recipeReader struct{ *reader }

// readPrecision reads the types. By default parameters and their gradients are FP32, and GEMMs are BF16, with FSDP or
// with autocast.
func (r *recipeReader) readPrecision() {
	dtype, ok := r.OneOf(dtypeKey, "bfloat16", "float32")
	r.checkConverters()
	if ok && dtype == "bfloat16" {
		r.Account(dtypeKey, interop.Unsupported, "keeps parameters, gradients and optimizer state in BF16, which is "+
			"8 bytes a parameter instead of the 16 that planc counts")
		r.narrow(dtypeKey)
		return
	}
	mixed, ok := r.OneOf(mixedKey, "bfloat16", "float32")
	if ok && mixed == "float32" {
		r.Take(mixedKey, interop.Sharded("f32", mixedKey)...)
		r.noteConverters(mixedKey)
		return
	}
	r.narrow(mixedKey)
}

// narrow sets the types of matmuls in BF16 or FP8, which a key says or its default. torchtitan switches autocast off
// with tp or pp (distributed/utils.py, maybe_enable_amp).
func (r *recipeReader) narrow(key string) {
	compute, from := "bf16", key
	switch {
	case r.converts(float8Names...):
		compute, from = "fp8", convertersKey
	case !r.Has(key):
		from = "default of " + key
	}
	types := func(isSharded bool, tp, pp int) []interop.Field {
		switch {
		case isSharded || key == dtypeKey:
			return interop.Sharded(compute, from)
		case tp*pp > 1:
			return interop.Sharded("f32", shardKey)
		}
		return interop.Autocast(compute, from)
	}
	d := &r.dims
	fields := types(d.isSharded(), d.tp, d.pp)
	switch {
	case fields[0].Value == "f32":
		r.Account(mixedKey, interop.IgnoredByTool, "torchtitan switches mixed precision off with tp or pp, unless "+
			"FSDP shards over data_parallel_shard_degree or context_parallel_degree")
		from = shardKey
	case from == mixedKey, from == convertersKey:
		r.Take(from, fields...)
	}
	for _, f := range fields {
		r.Import.DefaultField(f.Path, f.Value, f.From)
	}
	if key != dtypeKey {
		r.Import.Precision = func(p *ir.Plan) []interop.Field { return types(p.Zero > 0, p.TP, p.PP) }
	}
	r.noteConverters(from)
}

// Names of model.converters: those of 0.1 and, with a dot, those of 0.2, which are the names of the sections that
// configure them.
var (
	float8Names  = []string{"float8", "quantize.linear.float8"}
	mxNames      = []string{"mx", "quantize.linear.mx"}
	expertsNames = []string{"quantize.grouped_mm.float8", "quantize.grouped_mm.mx"}
)

// customKey names a module of the user's, which may register converters.
const customKey = "experimental.custom_import"

// checkConverters reports converters that torchtitan does not have.
func (r *recipeReader) checkConverters() {
	n := r.Node(convertersKey)
	if n == nil {
		return
	}
	known := slices.Concat(float8Names, mxNames, expertsNames)
	for _, item := range n.Items {
		switch {
		case slices.Contains(known, item.Text):
		case r.Text(customKey) != "":
			r.Account(convertersKey, interop.Unsupported, item.Text+" is a converter of "+customKey)
		default:
			r.Wrong(convertersKey, strict.UnknownValue, ir.Nearest(item.Text, known), "%s has %s; use %s",
				convertersKey, strconv.Quote(item.Text), strings.Join(known, ", "))
		}
	}
}

// noteConverters accounts for converters whose GEMMs planc does not price. from is the key that decides the precision.
func (r *recipeReader) noteConverters(from string) {
	switch {
	case r.converts(mxNames...):
		r.Account(convertersKey, interop.Unsupported, "GEMMs in MXFP8 are faster than planc counts")
	case from != convertersKey && r.converts(expertsNames...):
		r.Account(convertersKey, interop.Unsupported, "experts' GEMMs in FP8 are faster than planc counts")
	}
}

// converts reports whether model.converters has a converter with one of some names.
func (r *recipeReader) converts(names ...string) bool {
	n := r.Node(convertersKey)
	return n != nil && slices.ContainsFunc(n.Items, func(item *tree.Node) bool {
		return slices.Contains(names, item.Text)
	})
}

// defaultEvery is the default of selective_ac_option.
const defaultEvery = "2"

// readRecompute reads what is recomputed. With a number n, selective recomputes every n-th block whole. With "op" it
// recomputes every second GEMM and all element-wise operations, which planc prices as selective.
func (r *recipeReader) readRecompute() {
	mode, ok := r.OneOf(acKey, "selective", "full", "memory_budget", "none")
	from := acKey
	if !ok {
		mode, from = "selective", "default of "+acKey
	}
	option := r.Text(acOptionKey)
	if option == "" {
		option = defaultEvery
	}
	every, err := strconv.Atoi(option)
	switch {
	case mode == "none":
		r.recompute(from, "none", 1)
	case mode == "full":
		r.recompute(from, "full", 1)
	case mode == "memory_budget":
		r.Account(acKey, interop.Unsupported, "torch.compile chooses what is recomputed; planc chooses its own")
		return
	case option == "op":
		r.recompute(from, "selective", 1)
	case err != nil || every < 0:
		r.Wrong(acOptionKey, strict.UnknownValue, "", "%s is %q; it must be \"op\", or in quotes the number n of "+
			"\"every n-th block\"", acOptionKey, option)
		return
	default:
		r.recompute(from, "full", max(1, every))
	}
	if mode != "selective" {
		r.Account(acOptionKey, interop.IgnoredByTool, "only mode selective reads it")
	}
}

// recompute records the plan's keys, with one recomputed block in so many.
func (r *recipeReader) recompute(from, kind string, every int) {
	layers := r.largest
	if layers == 0 && r.dims.pp == 1 {
		layers = r.layers
	}
	blocks := layers / every
	if layers > 0 && blocks == 0 {
		kind = "none"
	}
	r.Import.DefaultField("plan.recompute", kind, from)
	r.Take(acKey, interop.Field{Path: "plan.recompute", Value: kind})
	if kind == "none" || layers == 0 {
		return
	}
	field := interop.Field{Path: "plan.recompute_layers", Value: strconv.Itoa(blocks)}
	r.Import.DefaultField(field.Path, field.Value, from)
	r.Import.DefaultField("plan.recompute_every", "1", from)
	if every > 1 || r.Has(acOptionKey) {
		r.Take(acOptionKey, field)
	}
}

// optimizers maps torchtitan's names of optimizers.
var optimizers = map[string]string{"AdamW": "adamw", "Adam": "adam"}

// readRecipe reads the optimizer and the schedule of the learning rate.
func (r *recipeReader) readRecipe() {
	if name, ok := r.OneOf("optimizer.name", "AdamW", "Adam"); ok {
		r.Take("optimizer.name", interop.Field{Path: "train.optimizer.kind", Value: optimizers[name]})
	}
	r.Import.DefaultField("train.optimizer.kind", "adamw", "default of optimizer.name")
	r.number("optimizer.lr", "train.optimizer.lr")
	r.number("optimizer.eps", "train.optimizer.eps")
	r.number("optimizer.weight_decay", "train.optimizer.weight_decay")
	r.number("training.max_norm", "train.optimizer.clip_norm")
	r.readBetas()
	r.count("training.steps", "train.steps")
	r.count("lr_scheduler.warmup_steps", "train.schedule.warmup")
	r.count("debug.seed", "train.seed")
	r.readDecay()
}

// readDecay reads the shape of the learning rate. With decay_ratio it stays at its peak until that part of the steps is
// left.
func (r *recipeReader) readDecay() {
	kind, ok := r.OneOf("lr_scheduler.decay_type", "linear", "sqrt", "cosine")
	ratio, hasRatio := r.Float("lr_scheduler.decay_ratio")
	steps, hasSteps := r.Int("training.steps")
	switch {
	case hasRatio && hasSteps && ratio > 0:
		decay := max(1, int(ratio*float64(steps)))
		r.Take("lr_scheduler.decay_ratio", interop.Field{Path: "train.schedule.kind", Value: "wsd"},
			interop.Field{Path: "train.schedule.decay", Value: strconv.Itoa(decay)})
	case ok && kind != "sqrt":
		r.Take("lr_scheduler.decay_type", interop.Field{Path: "train.schedule.kind", Value: kind})
	}
	factor, ok := r.Float("lr_scheduler.min_lr_factor")
	lr, hasLR := r.Float("optimizer.lr")
	if ok && hasLR {
		r.Take("lr_scheduler.min_lr_factor", interop.Field{Path: "train.schedule.min_lr", Value: decimal(factor * lr)})
	}
}

// readBetas reads both betas, because planc's job has them in one list.
func (r *recipeReader) readBetas() {
	if !r.Has("optimizer.beta1") && !r.Has("optimizer.beta2") {
		return
	}
	betas := []string{"0.9", "0.95"}
	for i, key := range []string{"optimizer.beta1", "optimizer.beta2"} {
		if v, ok := r.Float(key); ok {
			betas[i] = decimal(v)
		}
	}
	value := fmt.Sprintf("[%s]", strings.Join(betas, ", "))
	for _, key := range []string{"optimizer.beta1", "optimizer.beta2"} {
		r.Take(key, interop.Field{Path: "train.optimizer.betas", Value: value})
	}
}

// decimal returns a number in the form of a job file, rounded to what an FP32 can tell apart.
func decimal(v float64) string { return strconv.FormatFloat(v, 'g', 7, 64) }

// number takes a number.
func (r *recipeReader) number(key, path string) {
	if v, ok := r.Float(key); ok {
		r.Take(key, interop.Field{Path: path, Value: decimal(v)})
	}
}

// count takes a whole number.
func (r *recipeReader) count(key, path string) {
	if v, ok := r.Int(key); ok && v >= 0 {
		r.TakeInt(key, path, v)
	}
}
