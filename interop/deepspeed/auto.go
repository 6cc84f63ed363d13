package deepspeed

import (
	"slices"
	"strconv"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// Auto is the value that TrainingArguments give to a key that is "auto".
type Auto struct {
	Value string // as JSON
	From  string // the argument: "per_device_train_batch_size"
}

// arguments maps keys that may be "auto" to the arguments that fill them, with the arguments' defaults.
// Source: transformers 5.23.0, integrations/deepspeed.py: trainer_config_process.
var arguments = []struct{ key, argument, value string }{
	{"train_micro_batch_size_per_gpu", "per_device_train_batch_size", "8"},
	{"gradient_accumulation_steps", "gradient_accumulation_steps", "1"},
	{"gradient_clipping", "max_grad_norm", "1.0"},
	{"optimizer.params.lr", "learning_rate", "5e-05"},
	{"optimizer.params.eps", "adam_epsilon", "1e-08"},
	{"optimizer.params.weight_decay", "weight_decay", "0.0"},
	{"scheduler.params.warmup_max_lr", "learning_rate", "5e-05"},
	{"scheduler.params.warmup_num_steps", "warmup_steps", "0"},
	{"scheduler.params.total_num_steps", "max_steps", ""},
	{"fp16.enabled", "fp16", "false"},
	{"bf16.enabled", "bf16", "false"},
}

// checkpointing is the argument that makes the model recompute every block. A ds_config.json has no such key.
const checkpointing = "gradient_checkpointing"

// FromArguments returns the values that TrainingArguments give to keys that are "auto", and gradient_checkpointing.
func FromArguments(doc *tree.Doc) map[string]Auto {
	out := map[string]Auto{}
	for _, a := range arguments {
		value := a.value
		if n := doc.Root.Find(a.argument); n != nil && n.Kind != strict.Null {
			value = n.Flow()
		}
		if value != "" && value != "-1" {
			out[a.key] = Auto{value, a.argument}
		}
	}
	beta := func(name, value string) string {
		if n := doc.Root.Find(name); n != nil && n.Text != "" {
			return n.Text
		}
		return value
	}
	out[checkpointing] = Auto{"false", "default of " + checkpointing}
	for _, name := range []string{checkpointing, "activation_checkpointing"} {
		if on, ok := doc.Root.Find(name).Bool(); ok {
			out[checkpointing] = Auto{strconv.FormatBool(on), name}
		}
	}
	out["optimizer.params.betas"] = Auto{"[" + beta("adam_beta1", "0.9") + ", " + beta("adam_beta2", "0.999") + "]",
		"adam_beta1, adam_beta2"}
	return out
}

// argumentPrefix begins the keys of a file of TrainingArguments that belongs to a ds_config.json.
const argumentPrefix = "arguments."

// autoValues returns the keys that say a plan if a file of TrainingArguments fills the values that are auto: those keys
// are the arguments.
func autoValues(doc *tree.Doc, t *interop.Target) []interop.Value {
	out := values(t)
	for i, v := range out {
		text, _ := doc.Get(v.Key)
		for _, a := range arguments {
			if a.key == v.Key && text == "auto" {
				out[i].Key = argumentPrefix + a.argument
			}
		}
	}
	if text, _ := doc.Get(globalKey); text == "auto" {
		out = slices.DeleteFunc(out, func(v interop.Value) bool { return v.Key == globalKey })
	}
	return append(out, interop.Value{Key: argumentPrefix + checkpointing, Text: "true",
		IsAbsent: t.Plan.Recompute != "full", Plan: []string{"recompute"}})
}
