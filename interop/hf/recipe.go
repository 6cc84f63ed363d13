package hf

import (
	"math"
	"strconv"

	"github.com/planc-dev/planc/interop"
)

// recipeReader reads the arguments that do not decide the plan.
type recipeReader struct{ *reader }

// read takes them into the job.
func (r *recipeReader) read() {
	steps, hasSteps := r.Int("max_steps")
	hasSteps = hasSteps && steps > 0
	if epochs, ok := r.Float("num_train_epochs"); ok && epochs > 0 && !hasSteps {
		r.Take("num_train_epochs", interop.Field{Path: "train.epochs", Value: floatText(epochs)})
	}
	if seed, ok := r.Int("seed"); ok && seed >= 0 {
		r.TakeInt("seed", "train.seed", seed)
	}
	if r.im.Engine == "deepspeed" {
		return
	}
	for _, k := range []struct{ key, field string }{{"learning_rate", "lr"}, {"weight_decay", "weight_decay"},
		{"adam_epsilon", "eps"}, {"max_grad_norm", "clip_norm"}} {
		if value, ok := r.Float(k.key); ok {
			r.Take(k.key, interop.Field{Path: "train.optimizer." + k.field, Value: floatText(value)})
		}
	}
	r.betas()
	if hasSteps {
		r.TakeInt("max_steps", "train.steps", steps)
	}
	r.schedule(steps)
}

func floatText(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// betas takes the decay rates of Adam's moments.
func (r *recipeReader) betas() {
	const first, second = "adam_beta1", "adam_beta2"
	if kind, _ := r.im.Field("train.optimizer.kind"); kind.Value == "sgd" || !r.Has(first) && !r.Has(second) {
		return
	}
	rate := func(path string, absent float64) string {
		if value, ok := r.Float(path); ok {
			return floatText(value)
		}
		return floatText(absent)
	}
	value := "[" + rate(first, 0.9) + ", " + rate(second, 0.999) + "]"
	for _, path := range []string{first, second} {
		if r.Has(path) {
			r.Take(path, interop.Field{Path: "train.optimizer.betas", Value: value})
		}
	}
}

// schedules maps transformers' schedules to planc's.
var schedules = map[string]string{"linear": "linear", "cosine": "cosine", "constant": "constant",
	"constant_with_warmup": "constant", "inverse_sqrt": "inverse_sqrt"}

// schedule takes the schedule of the learning rate. Warm-up steps below 1 are a fraction of all steps.
// Source: transformers 5.23.0, training_args.py: get_warmup_steps.
func (r *recipeReader) schedule(steps int) {
	const warmup, kindKey, more = "warmup_steps", "lr_scheduler_type", "lr_scheduler_kwargs"
	switch n, ok := r.Float(warmup); {
	case !ok || n <= 0:
	case n >= 1:
		r.TakeInt(warmup, "train.schedule.warmup", int(n))
	case steps > 0:
		r.TakeInt(warmup, "train.schedule.warmup", int(math.Ceil(n*float64(steps))))
	default:
		r.Account(warmup, interop.Unsupported, "is a fraction of the steps, which planc needs to read it: add "+
			"max_steps")
	}
	switch text := r.Text(kindKey); {
	case text == "":
	case schedules[text] != "":
		r.Take(kindKey, interop.Field{Path: "train.schedule.kind", Value: schedules[text]})
	default:
		r.Account(kindKey, interop.Unsupported, "planc reads linear, cosine, constant, constant_with_warmup and "+
			"inverse_sqrt")
	}
	if r.Has(more) {
		r.Account(more, interop.Unsupported, "planc does not read the parameters of a schedule")
	}
}
