package spec

import (
	"slices"
	"strings"
	"testing"
)

// The fields are those that a job file takes, each with its meaning.
func TestFields(t *testing.T) {
	fields := Fields()
	at := func(path string) Field {
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Path == path })
		if i < 0 {
			t.Fatalf("no field %s", path)
		}
		return fields[i]
	}
	for _, f := range fields {
		if f.Doc == "" {
			t.Errorf("%s has no meaning", f.Path)
		}
		if !f.Group && (f.Default == "" || f.Example == "") {
			t.Errorf("%s has default %q and example %q", f.Path, f.Default, f.Example)
		}
	}
	if f := at("train.optimizer"); !f.Group {
		t.Errorf("%+v is no group", f)
	}
	if f := at("train.optimizer.kind"); f.Group || f.Class != "d" || !slices.Contains(f.Enum, "sgd") {
		t.Errorf("%+v", f)
	}
	if f := at("plan.tp"); f.Class != "d" || f.Group {
		t.Errorf("%+v: pins decide the plan", f)
	}
	if f := at("train.on_nonfinite"); !slices.Contains(f.Supported, "skip") {
		t.Errorf("%+v", f)
	}
	if len(fields) < 60 {
		t.Errorf("%d fields", len(fields))
	}
}

// The example of a field is taken, or refused as not supported yet if the field is.
func TestFieldExamples(t *testing.T) {
	instead := map[string]string{ // keys that exclude each other
		"train.global_batch_tokens": "train.global_batch=null", "train.optimizer.momentum": "train.optimizer.kind=sgd",
		"train.schedule.decay": "train.schedule.kind=wsd", "objective.rate": "objective.kind=devices",
		"objective.days":              "objective.kind=devices train.steps=5",
		"train.checkpoint.keep_every": "train.checkpoint.keep_last=3",
		"train.on_spike":              "train.checkpoint.every=5",
		"train.early_stop.metric":     "train.eval.every=5", "train.early_stop.patience": "train.eval.every=5",
		"train.early_stop.min_delta": "train.eval.every=5 train.early_stop.patience=2",
		"train.checkpoint.top_k":     "train.checkpoint.best=valid_loss",
		"train.experts.bias_rate":    "model=deepseek-v3", "train.precision.rounding": "train.precision.master=none",
	}
	for _, f := range Fields() {
		if f.Group {
			continue
		}
		sets := []string{f.Path + "=" + f.Example}
		sets = append(sets, strings.Fields(instead[f.Path])...)
		if strings.HasPrefix(f.Path, "train.precision.loss_scale.") || f.Path == "train.precision.loss_scale" {
			sets = append([]string{"train.precision=fp16"}, sets...)
		} else if strings.HasPrefix(f.Path, "train.precision.") {
			sets = append([]string{"train.precision=bf16"}, sets...)
		}
		if strings.HasPrefix(f.Path, "train.experts.") {
			sets = append([]string{"model=qwen3-30b-a3b"}, sets...)
		}
		_, err := tryLoad(small, sets...)
		later := len(f.Supported) == 1 && f.Supported[0] == NoneSupported
		if later != (err != nil) || later && !strings.Contains(err.Error(), "not supported yet") {
			t.Errorf("%v: %v", sets, err)
		}
	}
}
