package torchtitan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// recipeReader reads the types, what is recomputed, and the optimizer.
type recipeReader struct{ *reader }

// readPrecision reads the types. By default parameters and their gradients are FP32, and GEMMs are BF16, which engine
// fsdp prices as bf16.
func (r *recipeReader) readPrecision() {
	dtype, ok := r.OneOf(dtypeKey, "bfloat16", "float32")
	if ok && dtype == "bfloat16" {
		r.Account(dtypeKey, interop.Unsupported, "keeps parameters, gradients and optimizer state in BF16, which is "+
			"8 bytes "+
			"a parameter instead of the 16 that planc counts")
	}
	mixed, ok := r.OneOf(mixedKey, "bfloat16", "float32")
	if !ok {
		mixed = "bfloat16"
	}
	precision, from := "bf16", mixedKey
	d := &r.dims
	switch {
	case dtype == "bfloat16":
		precision, from = "bf16", dtypeKey
	case mixed == "float32":
		precision = "f32"
	case !d.isSharded() && d.tp*d.pp > 1:
		// distributed/utils.py, maybe_enable_amp
		precision, from = "f32", shardKey
		r.Account(mixedKey, interop.IgnoredByTool, "torchtitan switches mixed precision off with tp or pp, unless "+
			"FSDP "+
			"shards over data_parallel_shard_degree or context_parallel_degree")
	}
	if r.converts("float8") && precision == "bf16" {
		precision, from = "fp8", convertersKey
	}
	if from == mixedKey && !r.Has(mixedKey) {
		from = "default of " + mixedKey
	}
	r.Import.DefaultField("train.precision", precision, from)
	if from == mixedKey || from == convertersKey {
		r.Take(from, interop.Field{Path: "train.precision", Value: precision})
	}
	if r.converts("mx") {
		r.Account(convertersKey, interop.Unsupported, "GEMMs in MXFP8 are faster than planc counts")
	}
}

// converts reports whether model.converters has a converter.
func (r *recipeReader) converts(name string) bool {
	n := r.Node(convertersKey)
	if n == nil {
		return false
	}
	for _, item := range n.Items {
		if strings.EqualFold(item.Text, name) {
			return true
		}
	}
	return false
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
