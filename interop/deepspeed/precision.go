package deepspeed

import (
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// names maps DeepSpeed's names of types to planc's.
var names = map[string]string{"fp32": "f32", "float32": "f32", "float": "f32", "torch.float32": "f32",
	"fp16": "fp16", "float16": "fp16", "half": "fp16", "torch.float16": "fp16",
	"bf16": "bf16", "bfloat16": "bf16", "torch.bfloat16": "bf16"}

// precision takes the types of parameters, gradients and optimizer state.
// Source: DeepSpeed 0.19.8, runtime/engine.py: get_data_types, communication_data_type, _do_optimizer_sanity_check.
func (r *reader) precision() {
	bf16 := "bf16"
	if r.Doc.Root.Get("bf16") == nil {
		bf16 = "bfloat16"
	}
	isBF16, okBF16 := r.Bool(bf16 + ".enabled")
	isFP16, okFP16 := r.Bool("fp16.enabled")
	r.staticScale()
	switch {
	case isBF16 && isFP16:
		r.Wrong("fp16.enabled", Conflict, "", "fp16.enabled and %s.enabled are both true; DeepSpeed runs one of them: "+
			"set one to false", bf16)
	case isBF16:
		r.narrow("bf16", bf16+".enabled")
	case isFP16:
		r.narrow("fp16", "fp16.enabled")
		r.lossScale()
	case r.IsAuto(bf16+".enabled") && !okBF16 || r.IsAuto("fp16.enabled") && !okFP16:
		return
	case r.IsTrue("torch_autocast.enabled"):
		r.Account("torch_autocast", interop.Unsupported, "parameters stay fp32, matmuls run in 16 bits")
		r.field("compute", "f32", "default of DeepSpeed")
	default:
		r.field("compute", "f32", "neither bf16 nor fp16 is enabled")
	}
	if okBF16 && !isBF16 {
		r.Take(bf16 + ".enabled")
	}
	if okFP16 && !isFP16 {
		r.Take("fp16.enabled")
	}
}

// Keys of the types in which gradients are accumulated and sent.
const (
	accumulateKey  = "data_types.grad_accum_dtype"
	communicateKey = "communication_data_type"
)

// field sets a field of train.precision.
func (r *reader) field(name, value, from string) {
	r.im.SetField(interop.Field{Path: "train.precision." + name, Value: value, From: from})
}

// staticScale returns the fixed scale of the loss, 0 if it is dynamic. DeepSpeed checks it also if fp16 is off.
func (r *reader) staticScale() float64 {
	const scale = "fp16.loss_scale"
	fixed, _ := r.Float(scale)
	if fixed < 0 {
		r.Wrong(scale, Conflict, "", "%s is %s; it must be 0 (dynamic) or more", scale, r.Text(scale))
	}
	return fixed
}

// narrow sets the types with 16-bit parameters: gradients have the same type unless data_types says another, and the
// optimizer keeps an fp32 master copy, except with bf16 and stage 0.
func (r *reader) narrow(compute, from string) {
	r.Take(from, interop.Field{Path: "train.precision.compute", Value: compute})
	stage, _ := r.im.Field("plan.zero")
	grads := r.dtype(accumulateKey, "grads", compute)
	if stage.Value == "0" && grads != compute {
		r.Wrong(accumulateKey, Conflict, "", "%s is %s with zero_optimization.stage 0: DeepSpeed accumulates in "+
			"another type than the model's only with stage 1, 2 or 3", accumulateKey, r.Text(accumulateKey))
	}
	reduce := names[r.Text(communicateKey)]
	switch {
	case reduce == "":
		r.field("reduce", compute, "default of "+communicateKey)
	case reduce == grads || grads == "f32":
		r.dtype(communicateKey, "reduce", compute)
	default:
		r.field("reduce", grads, accumulateKey)
		r.Account(communicateKey, interop.Unsupported, "gradients are sent in another type than they are "+
			"accumulated in")
	}
	r.master(compute, stage.Value)
}

// dtype takes the type that a key says, and returns planc's name of it.
func (r *reader) dtype(path, field, absent string) string {
	text, ok := r.OneOf(path, "fp32", "fp16", "bf16", "float32", "float16", "bfloat16", "float", "half")
	if !ok {
		r.field(field, absent, "default of "+path)
		return absent
	}
	r.Take(path, interop.Field{Path: "train.precision." + field, Value: names[text]})
	return names[text]
}

// master sets the types of the master copy and of the moments.
func (r *reader) master(compute, stage string) {
	isNarrow := r.IsTrue(masterKey)
	moments := "f32"
	if r.IsTrue(momentsKey) {
		moments = "bf16"
	}
	switch {
	case compute == "fp16" && r.IsTrue("fp16.fp16_master_weights_and_grads"):
		r.Take("fp16.fp16_master_weights_and_grads", interop.Field{Path: "train.precision.master", Value: "none"})
	case compute == "bf16" && isNarrow:
		r.Take(masterKey, interop.Field{Path: "train.precision.master", Value: "none"})
		r.Take(momentsKey, interop.Field{Path: "train.precision.moments", Value: moments})
	default:
		setTypes(r.im, MasterTypes(compute, stage == "0"))
		// with other types of gradients, an export like the file keeps them
		isPlain := compute == "bf16" && !r.Has(accumulateKey) && !r.Has(communicateKey)
		if moments == "f32" && (stage == "0" || isPlain) {
			r.im.Precision = func(p *ir.Plan) []interop.Field { return r.types(compute, p.Zero == 0) }
		}
	}
	if (isNarrow || moments == "bf16") && stage == "0" {
		r.Wrong(masterKey, Conflict, "", "%s needs zero_optimization.stage 1, 2 or 3", masterKey)
	}
}

// MasterTypes returns the types of the master copy and of the moments that DeepSpeed keeps without other keys.
func MasterTypes(compute string, isStage0 bool) []interop.Field {
	master, moments, from := "f32", "f32", "DeepSpeed keeps an fp32 master copy"
	if compute == "bf16" && isStage0 {
		master, moments, from = "none", "bf16", "bf16 with stage 0 keeps no fp32 master"
	}
	return []interop.Field{{Path: "train.precision.master", Value: master, From: from},
		{Path: "train.precision.moments", Value: moments, From: from}}
}

// types returns the types of a file with stage 0, or with another stage instead.
func (r *reader) types(compute string, isStage0 bool) []interop.Field {
	other := &interop.Import{}
	for _, f := range r.im.Fields {
		if strings.HasPrefix(f.Path, "train.precision.") {
			other.SetField(f)
		}
	}
	setTypes(other, MasterTypes(compute, isStage0))
	return other.Fields
}

// setTypes sets types of an import.
func setTypes(im *interop.Import, types []interop.Field) {
	for _, f := range types {
		im.SetField(f)
	}
}

// lossScale takes the scale of the loss: 0 is dynamic.
func (r *reader) lossScale() {
	const scale = "fp16.loss_scale"
	if fixed := r.staticScale(); fixed != 0 {
		r.Take(scale, interop.Field{Path: "train.precision.loss_scale", Value: number(fixed)})
		return
	}
	value := func(path string, absent int) int {
		if n, ok := r.Int(path); ok {
			r.Take(path)
			return n
		}
		return absent
	}
	const power, window, hysteresis, least = 16, 1000, 2, 1
	exponent := min(max(value("fp16.initial_scale_power", power), 0), 60)
	text := "{init: " + strconv.Itoa(1<<exponent) +
		", window: " + strconv.Itoa(value("fp16.loss_scale_window", window)) +
		", hysteresis: " + strconv.Itoa(value("fp16.hysteresis", hysteresis)) +
		", min: " + strconv.Itoa(value("fp16.min_loss_scale", least))
	if r.IsTrue("fp16.consecutive_hysteresis") {
		r.Take("fp16.consecutive_hysteresis")
		text += ", consecutive: true"
	}
	r.Take(scale)
	r.field("loss_scale", text+"}", "fp16")
}

// number returns a number as YAML and JSON write it.
func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
