package lightning

import (
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// readBatch reads the batch. The batch size of the data module is that of a replica's micro-batch.
func (r *reader) readBatch() {
	steps, ok := r.Positive(accumulateKey)
	if !ok {
		steps = 1
	}
	r.take(accumulateKey, "plan.micro_batches", strconv.Itoa(steps))
	key := batchKey
	if !r.Has(batchKey) && r.Has(shortBatchKey) {
		key = shortBatchKey
	}
	micro, ok := r.Positive(key)
	if !ok {
		r.Absent(batchKey, "give the batch (--global-batch): micro-batch × "+accumulateKey+" × replicas")
		return
	}
	r.take(key, "plan.micro_batch", strconv.Itoa(micro))
	if r.devices > 0 && r.devices%r.tp == 0 {
		replicas := r.devices / r.tp
		batch, _ := r.GlobalBatch(key, micro, accumulateKey, steps, replicas)
		r.Import.DefaultField("train.global_batch", strconv.Itoa(batch), key+" · "+accumulateKey+" · "+
			strconv.Itoa(replicas)+" data-parallel ranks")
	}
}

// precisions are Trainer's precisions with planc's. Of a pure one, planc prices the mixed one.
var precisions = []struct {
	name, plan string
	isPure     bool
}{
	{"bf16-mixed", "bf16", false}, {"16-mixed", "fp16", false}, {"32-true", "f32", false}, {"64-true", "f64", false},
	{"bf16-true", "bf16", true}, {"16-true", "fp16", true}, {"transformer-engine", "fp8", false},
	{"transformer-engine-float16", "fp8", false}, {"bf16", "bf16", false}, {"16", "fp16", false}, {"32", "f32", false},
	{"64", "f64", false},
}

func (r *reader) readPrecision() {
	var names []string
	for _, p := range precisions {
		names = append(names, p.name)
	}
	name, ok := r.OneOf(precisionKey, names...)
	if !ok {
		if r.Node(precisionKey) == nil {
			r.Import.DefaultField("train.precision.compute", "f32", "default of "+precisionKey)
		}
		return
	}
	for _, p := range precisions {
		switch {
		case p.name != name:
		case p.isPure:
			r.Account(precisionKey, interop.Unsupported, "keeps parameters, gradients and optimizer state in 16 "+
				"bits, which is "+
				"half of the memory that planc counts")
			r.Import.DefaultField("train.precision.compute", p.plan, precisionKey)
		default:
			r.takeTypes(p.plan)
		}
	}
}

// takeTypes takes the types of mixed precision, which depend on whether FSDP wraps the model, as it also does with tp.
func (r *reader) takeTypes(compute string) {
	if r.strategy == nil || r.strategy.kind == deepspeed || r.strategy.kind == unpriced {
		r.Take(precisionKey, interop.Field{Path: "train.precision.compute", Value: compute})
		return
	}
	zero, _ := r.Import.Field("plan.zero")
	isUnsharded := zero.Value == "0" && r.strategy.kind == fsdp // NO_SHARD
	fields := func(isSharded bool) []interop.Field {
		switch {
		case isSharded:
			return interop.Sharded(compute, precisionKey)
		case isUnsharded:
			return interop.NoShard(compute, precisionKey)
		}
		return interop.Autocast(compute, precisionKey)
	}
	isSharded := r.strategy.kind != ddp && r.strategy.kind != single && !isUnsharded
	r.Take(precisionKey, fields(isSharded)...)
	if zero.Value != "0" || !isSharded {
		r.Import.Precision = func(p *ir.Plan) []interop.Field { return fields(p.Zero > 0 || p.TP > 1) }
	}
}

// readRecipe reads the optimizer and the length of the training.
func (r *reader) readRecipe() {
	if v, ok := r.Float("trainer.gradient_clip_val"); ok {
		r.Take("trainer.gradient_clip_val", interop.Field{Path: "train.optimizer.clip_norm", Value: decimal(v)})
	} else {
		r.Import.DefaultField("train.optimizer.clip_norm", "0", "default of trainer.gradient_clip_val")
	}
	steps, ok := r.Int("trainer.max_steps")
	hasSteps := ok && steps > 0
	if hasSteps {
		r.Take("trainer.max_steps", interop.Field{Path: "train.steps", Value: strconv.Itoa(steps)})
	}
	if epochs, ok := r.Int("trainer.max_epochs"); ok && epochs > 0 && !hasSteps {
		r.Take("trainer.max_epochs", interop.Field{Path: "train.epochs", Value: strconv.Itoa(epochs)})
	}
	if n := r.Node("seed_everything"); n != nil && n.Kind == strict.Int {
		if seed, ok := n.Int(); ok && seed >= 0 {
			r.Take("seed_everything", interop.Field{Path: "train.seed", Value: strconv.Itoa(seed)})
		}
	}
	r.readOptimizer()
}

// readOptimizer reads an optimizer of PyTorch that the file names.
func (r *reader) readOptimizer() {
	class := r.Text("optimizer.class_path")
	kinds := map[string]string{"AdamW": "adamw", "Adam": "adam", "SGD": "sgd", "FusedAdam": "adamw"}
	name := class[strings.LastIndexByte(class, '.')+1:]
	kind := kinds[name]
	if kind == "" {
		if class != "" {
			r.Account("optimizer.class_path", interop.Unsupported, interop.OtherOptimizerNote(name))
		}
		return
	}
	r.Take("optimizer.class_path", interop.Field{Path: "train.optimizer.kind", Value: kind})
	for _, name := range []string{"lr", "eps", "weight_decay", "momentum"} {
		key := "optimizer.init_args." + name
		if v, ok := r.Float(key); ok {
			r.Take(key, interop.Field{Path: "train.optimizer." + name, Value: decimal(v)})
		}
	}
	if n := r.Node("optimizer.init_args.betas"); n != nil && n.Kind == strict.List {
		r.Take("optimizer.init_args.betas", interop.Field{Path: "train.optimizer.betas", Value: n.Flow()})
	}
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'g', 7, 64) }
