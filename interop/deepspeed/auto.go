package deepspeed

import (
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
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
	out[betasKey] = Auto{"[" + beta("adam_beta1", "0.9") + ", " + beta("adam_beta2", "0.999") + "]",
		"adam_beta1, adam_beta2"}
	return out
}

// Mismatch is a value of a ds_config.json that is neither "auto" nor what TrainingArguments say.
type Mismatch struct {
	Pos      ir.Pos
	Key      string
	Value    string
	Argument string
	Want     string // the argument's value, or its default
}

// counted are keys whose values transformers compares with numbers of steps. The data decides them unless an argument
// gives a number of at least 1; a smaller one is a fraction of all steps.
var counted = []string{"scheduler.params.warmup_num_steps", "scheduler.params.total_num_steps"}

// isCounted reports whether the arguments give a number of steps.
func isCounted(n *tree.Node) bool {
	if n == nil {
		return false
	}
	steps, err := strconv.ParseFloat(n.Text, 64)
	return err == nil && steps >= 1
}

// betasKey has two numbers, of which transformers compares each with an argument.
const betasKey = "optimizer.params.betas"

// betas returns the mismatches of the coefficients of Adam.
func betas(config *tree.Doc, find func(path string) *tree.Node) (out []Mismatch) {
	n := config.Root.Find(betasKey)
	if n == nil || n.Kind != strict.List || len(n.Items) != 2 {
		return nil
	}
	for i, a := range []struct{ name, value string }{{"adam_beta1", "0.9"}, {"adam_beta2", "0.999"}} {
		want := a.value
		if own := find(a.name); own != nil {
			want = own.Flow()
		}
		if item := n.Items[i]; !isSame(item.Flow(), want) {
			out = append(out, Mismatch{item.Pos, betasKey, item.Flow(), a.name, want})
		}
	}
	return out
}

// Mismatches returns the values of a ds_config.json that transformers refuses with some TrainingArguments.
// Source: transformers 5.23.0, integrations/deepspeed.py: fill_match.
func Mismatches(config, doc *tree.Doc) (out []Mismatch) {
	find := func(path string) *tree.Node {
		n := doc.Root.Find(path)
		if n == nil || n.Kind == strict.Null {
			return nil
		}
		return n
	}
	for _, a := range arguments {
		n, want := config.Root.Find(a.key), a.value
		if n == nil || n.Kind == strict.Null || n.Text == "auto" ||
			slices.Contains(counted, a.key) && !isCounted(find(a.argument)) {
			continue
		}
		if own := find(a.argument); own != nil {
			want = own.Flow()
			if on, isBool := own.Bool(); isBool {
				want = strconv.FormatBool(on)
			}
		}
		if on, _ := find(a.argument + "_full_eval").Bool(); on {
			want = "true"
		}
		if !isSame(n.Flow(), want) {
			out = append(out, Mismatch{n.Pos, a.key, n.Flow(), a.argument, want})
		}
	}
	return append(out, betas(config, find)...)
}

// isSame reports whether two values are the same number, or the same word.
func isSame(a, b string) bool {
	x, errX := strconv.ParseFloat(strings.Trim(a, `"`), 64)
	y, errY := strconv.ParseFloat(strings.Trim(b, `"`), 64)
	if errX == nil && errY == nil {
		return x == y
	}
	return strings.EqualFold(strings.Trim(a, `"`), strings.Trim(b, `"`))
}
