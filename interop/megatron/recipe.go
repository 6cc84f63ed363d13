package megatron

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
)

// recipeReader sets the fields of the training recipe.
type recipeReader struct{ *importer }

// read reads batch, precision and optimizer.
func (im *recipeReader) read() {
	im.batch()
	im.precision()
	im.optimizer()
	im.length()
}

func (im *recipeReader) batch() {
	s := im.s
	seq := "seq_length"
	if !s.has(seq) && s.has("encoder_seq_length") {
		seq = "encoder_seq_length"
	}
	if s.has(seq) {
		im.set("train.seq_len", s.number(seq), seq)
	}
	const dest = globalDest
	switch {
	case s.text(dest) != "":
		im.set("train.global_batch", s.number(dest), dest)
		return
	case s.has(scheduleDest):
		return
	}
	if n := im.replicas(); n > 0 {
		dp := n / max(1, s.number("context_parallel_size"))
		im.assume("train.global_batch", dp*s.number("micro_batch_size"), "default of "+im.name(dest)+
			": one micro-batch of each replica")
	}
}

// elems maps Megatron-LM's names of types to planc's.
var elems = map[string]string{"fp32": "f32", "bf16": "bf16", "fp16": "fp16"}

// precision sets the types of state. The preset's name is enough if the options are at their defaults.
func (im *recipeReader) precision() {
	s := im.s
	compute, dest := "f32", ""
	for _, flag := range []string{"bf16", "fp16"} {
		isDefault := !s.has(flag) && s.flag("fp16") && flag == "bf16"
		if s.flag(flag) && !isDefault {
			if dest != "" {
				im.fail(flag, "%s and %s exclude each other: remove one", im.name(dest), im.name(flag))
			}
			compute, dest = flag, flag
		}
	}
	set := func(path, value, dest string) { im.set("train.precision."+path, value, dest) }
	name := compute
	if s.has("fp8") {
		name = "fp8"
	}
	im.used("bf16", "fp16", "use_precision_aware_optimizer")
	types := im.stateTypes(compute)
	if len(types) == 0 {
		switch {
		case name == "fp8":
			im.set("train.precision", "fp8", "fp8")
			if dest == "" {
				im.out.Warn(im.s.pos("fp8"), "%s without %s keeps parameters, gradients and activations in "+
					"FP32, and planc prices them in BF16: add %[2]s", im.name("fp8"), im.name("bf16"))
			}
		case dest == "":
			im.assume("train.precision", "f32", "neither "+im.name("bf16")+" nor "+im.name("fp16"))
		default:
			im.set("train.precision", name, dest)
		}
		return
	}
	if name == "fp8" {
		set("compute", "fp8", "fp8")
	} else {
		set("compute", compute, dest)
	}
	for _, t := range types {
		set(t.key, t.elem, t.dest)
	}
}

// stateType is the type of a kind of state, where it differs from the preset's.
type stateType struct{ key, elem, dest string }

// stateTypes returns the types that options change.
func (im *recipeReader) stateTypes(compute string) (out []stateType) {
	s := im.s
	if compute == "bf16" && s.flag("grad_reduce_in_bf16") {
		out = append(out, stateType{"grads", "bf16", "grad_reduce_in_bf16"}, stateType{"reduce", "bf16",
			"grad_reduce_in_bf16"})
	}
	if compute == "fp16" && s.flag("accumulate_allreduce_grads_in_fp32") {
		im.note("accumulate_allreduce_grads_in_fp32", "gradients are accumulated and reduced in fp32, and planc "+
			"prices fp16: 2 bytes a parameter more, and twice the bytes to reduce")
	}
	if !s.flag("use_precision_aware_optimizer") {
		return out
	}
	for _, t := range []stateType{{key: "grads", dest: "main_grads_dtype"}, {key: "master", dest: "main_params_dtype"},
		{key: "moments", dest: "exp_avg_dtype"}} {
		text := s.text(t.dest)
		t.elem = elems[text]
		switch {
		case t.elem == "" && s.has(t.dest):
			im.note(t.dest, "planc has no state in "+text+", and prices fp32")
		case t.elem != "f32" && s.has(t.dest):
			out = append(out, t)
		}
	}
	if second := s.text("exp_avg_sq_dtype"); second != s.text("exp_avg_dtype") {
		im.note("exp_avg_sq_dtype", "planc has one type for both moments, and takes "+im.name("exp_avg_dtype"))
	}
	const aware = "use_precision_aware_optimizer"
	switch {
	case compute == "bf16" && !s.has("fp8") && elems[s.text("main_params_dtype")] == "f32":
		im.note(aware, "with bf16 weights, TransformerEngine keeps 2 of the 4 bytes of a main parameter "+
			"(store_param_remainders); planc prices 4")
	case len(out) == 0:
		im.note(aware, "")
	}
	return out
}

// optimizer sets the optimizer.
func (im *recipeReader) optimizer() {
	const dest = "optimizer"
	switch kind := im.s.text(dest); kind {
	case "adam":
		im.set("train.optimizer.kind", "adamw", dest)
	case "sgd":
		im.set("train.optimizer.kind", "sgd", dest)
	default:
		im.note(dest, interop.OtherOptimizerNote(kind))
	}
	if !im.s.has("lr") {
		return
	}
	im.set("train.optimizer.lr", im.s.text("lr"), "lr")
	switch im.s.text(dest) {
	case "adam":
		im.betas()
	case "sgd":
		im.set("train.optimizer.momentum", floatText(im.s.float("sgd_momentum")), "sgd_momentum")
	}
	im.set("train.optimizer.weight_decay", im.s.text("weight_decay"), "weight_decay")
	im.set("train.optimizer.clip_norm", im.s.text("clip_grad"), "clip_grad")
	(&rateReader{im.importer}).read()
}

func (im *recipeReader) betas() {
	s := im.s
	const first, second = "adam_beta1", "adam_beta2"
	dest := first
	if !s.has(first) {
		dest = second
	}
	im.used(first, second)
	im.set("train.optimizer.betas", "["+s.text(first)+", "+s.text(second)+"]", dest)
	im.set("train.optimizer.eps", floatText(s.float("adam_eps")), "adam_eps")
}

// length sets the number of steps.
func (im *recipeReader) length() {
	s := im.s
	steps, dest := s.steps()
	if steps > 0 {
		im.set("train.steps", steps, dest)
	}
	if s.has("seed") && s.number("seed") >= 0 {
		im.set("train.seed", s.number("seed"), "seed")
	}
}

// floatText returns a number as YAML.
func floatText(x float64) string {
	text := strconv.FormatFloat(x, 'g', -1, 64)
	if strings.Contains(text, "e") && !strings.Contains(text, ".") {
		return fmt.Sprintf("%.1e", x)
	}
	return text
}
