package spec

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// SetDevice chooses the values that depend on the hardware and that the job leaves open. arch is the device's
// architecture, such as sm_90a or cpu.
func (j *Job) SetDevice(arch string) {
	if !j.Train.Precision.IsZero() {
		return
	}
	name := DefaultPrecision(arch)
	j.Train.Precision = Presets[name]
	j.Assumed = append(j.Assumed, Assumption{"train.precision", name, "default of " + arch})
}

// assume adds the deciding fields that have a default and are absent from the job to the assumed ones.
func (j *Job) assume() {
	add := func(path, value, why string) {
		if !j.Has(path) {
			j.Assumed = append(j.Assumed, Assumption{path, value, why})
		}
	}
	add("train.optimizer.kind", j.Train.Optimizer.Kind, "default")
	add("objective.headroom", "0.1", "default")
}

// CheckCompile checks that the job has all that a training program needs, which is more than a plan needs. SetDevice
// must have been called.
func CheckCompile(j *Job) error {
	var diags ir.Diags
	if err := CheckGenerate(j); err != nil {
		diags = err.(ir.Diags)
	}
	switch text := j.textSource(); {
	case j.Config != nil && j.Config.Bidirectional:
		diags.Addf(j.Pos("model"), Conflict,
			"%s is of family %s, which is not trained by next-token prediction, and a compiled binary trains "+
				"only that way on its data files: use planc gen and feed your data through rt.Data", j.Config.Name,
			j.Config.Family)
	case len(j.Data.Train) == 0:
		diags.Addf(j.Pos("data"), Missing, "data.train is missing: list the files to train on")
	case text != "" && j.Data.Tokenizer != "bytes":
		diags.Addf(j.Pos("data.train"), Conflict,
			"%s is a text file, which must be converted to tokens of %s before training: planc data tokenize "+
				"--tokenizer %[2]s %[1]s -o data.bin", text, j.Data.Tokenizer)
	case j.Config != nil && text != "" && j.Config.Vocab < byteTokens:
		diags.Addf(j.Pos("data.train"), Conflict,
			"%s is a text file, which data.tokenizer bytes turns into tokens 0 to 255, but %s has a vocabulary "+
				"of %d: use a model with a vocabulary of at least %d, or a .bin file of tokens",
			text, j.Config.Name, j.Config.Vocab, byteTokens)
	}
	return diags.Err()
}

// CheckGenerate is CheckCompile for generated code, whose program may provide its own data.
func CheckGenerate(j *Job) error {
	var diags ir.Diags
	if e := j.Train.Engine; e != "planc" {
		diags.Addf(j.Pos("train.engine"), strict.NotYet,
			"train.engine is %s, which planc can price (planc plan, planc explain) but not compile: use "+
				"train.engine planc to compile", e)
	}
	if why := j.Train.Precision.Refused(); why != "" {
		diags.Addf(j.Pos("train.precision"), strict.OutOfRange, "%s", why)
	}
	if p := j.Train.Precision; j.Config != nil && j.Train.Experts.BiasRate > 0 &&
		(narrow(p.Grads) || narrow(p.Reduce)) {
		diags.Addf(j.Pos("train.precision"), Conflict,
			"train.precision accumulates or reduces gradients in 16 bits, which cannot count the experts' "+
				"choices exactly: use f32 for grads and reduce, or train.experts.bias_rate: 0")
	}
	if j.Train.Steps == 0 && j.Train.Epochs == 0 && j.Train.Tokens == 0 {
		diags.Addf(j.Pos("train"), Missing, "train.steps is missing (or epochs, or tokens)")
	}
	return diags.Err()
}

// narrow reports whether a type has 16 bits.
func narrow(elem string) bool { return elem == "bf16" || elem == "fp16" }

// byteTokens is the vocabulary size of data.tokenizer bytes.
const byteTokens = 256

// textSource returns the name of the first data file that needs the tokenizer, "" if all files contain tokens.
func (j *Job) textSource() string {
	for _, s := range slices.Concat(j.Data.Train, j.Data.Valid.Files) {
		if !strings.EqualFold(filepath.Ext(s.Path), ".bin") && !strings.ContainsAny(filepath.Base(s.Path), "*?[") {
			return s.Path
		}
	}
	return ""
}
