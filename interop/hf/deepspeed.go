package hf

import (
	"path/filepath"
	"strconv"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/deepspeed"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// dsKey names a ds_config.json or contains it. A command line can also say it: --deepspeed ds.json.
const dsKey = "deepspeed"

// runsDeepSpeed reports whether Trainer runs DeepSpeed: the file says it, or a ds_config.json is given with it.
func (r *reader) runsDeepSpeed() bool {
	return r.Has(dsKey) || r.ds != nil && deepspeed.Format.Recognize(*r.ds) != interop.No
}

// deepspeedReader reads the ds_config.json of a file of TrainingArguments.
type deepspeedReader struct{ *reader }

// read reads the ds_config.json that the file names or contains. Its "auto" values are these arguments.
func (r *deepspeedReader) read() {
	named := r.Node(dsKey)
	auto := deepspeed.FromArguments(r.Doc)
	switch {
	case named != nil && named.Kind == strict.Map:
		doc := &tree.Doc{File: r.Doc.File, Syntax: r.Doc.Syntax, Root: named}
		r.Diags = append(r.Diags, deepspeed.ReadTree(r.im, doc, auto, r.devices)...)
		r.finish(doc, dsKey)
		return
	case r.ds == nil:
		r.Wrong(dsKey, Missing, "", "%s has the ZeRO stage: give it as a second file", named.Flow())
		return
	case named != nil && filepath.Base(named.Text) != filepath.Base(r.ds.Name):
		r.im.Warn(named.Pos, "deepspeed names %s, and planc reads the given file %s", named.Flow(), r.ds.Name)
	}
	config, diags := deepspeed.Read(r.im, *r.ds, auto, r.devices)
	r.Diags = append(r.Diags, diags...)
	r.part = &interop.Part{Name: r.ds.Name, Prefix: dsKey + ".", Doc: config}
	if len(diags) == 0 {
		r.finish(config, r.ds.Name)
	}
}

// finish accounts for the arguments that fill the "auto" values of a ds_config.json, and compares them with
// its other values.
func (r *deepspeedReader) finish(config *tree.Doc, name string) {
	r.Take(dsKey)
	for _, path := range []string{microKey, stepsKey, "bf16", "fp16", "max_grad_norm", "learning_rate", "adam_beta1",
		"adam_beta2", "adam_epsilon", "weight_decay", "warmup_steps", "max_steps"} {
		if r.Has(path) {
			r.Account(path, interop.NoEffect, "filled into "+name+" if it is auto there")
		}
	}
	r.precisionConflict()
	for _, m := range deepspeed.Mismatches(config, r.Doc) {
		r.mismatch(m, name)
	}
}

// precisionConflict reports bf16 and fp16 that are both true.
func (r *reader) precisionConflict() bool {
	if r.IsTrue("bf16") && r.IsTrue("fp16") {
		r.Wrong("fp16", Conflict, "", "bf16 and fp16 are both true; TrainingArguments take one of them: set one "+
			"to false")
		return true
	}
	return false
}

// mismatch reports a value of the ds_config.json that is neither auto nor that of its argument, which transformers
// refuses. Without the argument, its default counts: that is a warning, because a command line may say the argument.
func (r *deepspeedReader) mismatch(m deepspeed.Mismatch, name string) {
	other := map[string]string{"fp16": "bf16", "bf16": "fp16"}[m.Argument]
	switch {
	case r.Has(m.Argument):
		r.Wrong(m.Argument, Conflict, "", "%s is %s, and %s of %s is %s, which transformers refuses: write %s there",
			m.Argument, m.Want, m.Key, name, m.Value, strconv.Quote("auto"))
	case other != "" && r.IsTrue(other):
		r.Wrong(other, Conflict, "", "%s is true, and %s of %s is %s, which transformers refuses: write %s there and "+
			"in %s.enabled", other, m.Key, name, m.Value, strconv.Quote("auto"), other)
	default:
		r.im.Warn(m.Pos, "%s is %s, and the file of arguments has no %s, whose default is %s: transformers refuses "+
			"such a mismatch; write %s", m.Key, m.Value, m.Argument, m.Want, strconv.Quote("auto"))
	}
}
