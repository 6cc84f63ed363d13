package spec

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// SetDevice decides what the job leaves open until its hardware is known: arch is the device's architecture,
// as sm_90a or cpu.
func (j *Job) SetDevice(arch string) {
	if !j.Train.Precision.IsZero() {
		return
	}
	name := DefaultPrecision(arch)
	j.Train.Precision = Presets[name]
	j.Guessed = append(j.Guessed, Guess{"train.precision", name, "default of " + arch})
}

// guess lists the deciding fields that have a default.
func (j *Job) guess() {
	add := func(path, value, why string) {
		if !j.Has(path) {
			j.Guessed = append(j.Guessed, Guess{path, value, why})
		}
	}
	add("train.optimizer.kind", j.Train.Optimizer.Kind, "default")
	add("objective.headroom", "0.1", "default")
}

// CheckCompile wants what a training program needs and a plan does not. The job has its device (SetDevice).
func CheckCompile(j *Job) error {
	var diags ir.Diags
	if err := CheckGenerate(j); err != nil {
		diags = err.(ir.Diags)
	}
	switch text := j.textSource(); {
	case j.Config != nil && j.Config.Bidirectional:
		diags.Addf(j.Pos("model"), Conflict,
			"a binary reads files, and %s, of family %s, does not learn what comes next, which is all that files say: "+
				"planc gen writes code for a program that feeds it by rt.Data", j.Config.Name, j.Config.Family)
	case len(j.Data.Train) == 0:
		diags.Addf(j.Pos("data"), Missing, "data.train is missing: the files to train on")
	case j.Config != nil && text != "" && j.Config.Vocab < byteTokens:
		diags.Addf(j.Pos("data.train"), Conflict,
			"%s is text, whose tokens are bytes (data.tokenizer), 0 to 255, and %s has a vocabulary of %d; %d tokens "+
				"are wanted, or a .bin file of tokens",
			text, j.Config.Name, j.Config.Vocab, byteTokens)
	}
	return diags.Err()
}

// CheckGenerate is CheckCompile for code that is part of a program which may bring its own data.
func CheckGenerate(j *Job) error {
	var diags ir.Diags
	if e := j.Train.Engine; e != "planc" {
		diags.Addf(j.Pos("train.engine"), strict.NotYet,
			"train.engine %s is priced, not compiled: plan and explain say what its runs would take; planc is "+
				"compiled", e)
	}
	if why := j.Train.Precision.Refused(); why != "" {
		diags.Addf(j.Pos("train.precision"), strict.OutOfRange, "%s", why)
	}
	if p := j.Train.Precision; j.Config != nil && j.Train.Experts.BiasRate > 0 &&
		(narrow(p.Grads) || narrow(p.Reduce)) {
		diags.Addf(j.Pos("train.precision"), Conflict,
			"train.precision adds gradients in 16 bits, in which experts' choices cannot be counted: f32 is wanted "+
				"for grads and reduce, or train.experts.bias_rate: 0")
	}
	if j.Train.Steps == 0 && j.Train.Epochs == 0 && j.Train.Tokens == 0 {
		diags.Addf(j.Pos("train"), Missing, "train.steps is missing (or epochs, or tokens)")
	}
	return diags.Err()
}

// narrow tells whether numbers of a type have 16 bits.
func narrow(elem string) bool { return elem == "bf16" || elem == "fp16" }

// byteTokens are the tokens of data.tokenizer bytes.
const byteTokens = 256

// textSource is the first of the job's files that the tokenizer reads, by its name; "" if all hold tokens.
func (j *Job) textSource() string {
	for _, s := range slices.Concat(j.Data.Train, j.Data.Valid.Files) {
		if !strings.EqualFold(filepath.Ext(s.Path), ".bin") && !strings.ContainsAny(filepath.Base(s.Path), "*?[") {
			return s.Path
		}
	}
	return ""
}
