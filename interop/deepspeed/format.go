// Package deepspeed reads and writes ds_config.json, DeepSpeed's configuration. The file has neither a model nor a
// number of ranks: a config.json of Hugging Face gives the model, and the user gives the hardware. Formats whose files
// name a ds_config.json read it too: TrainingArguments give the values that "auto" stands for.
package deepspeed

import (
	_ "embed"
	"slices"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
)

//go:embed keys.tsv
var keysTSV string

// Keys is every key that DeepSpeed knows.
var Keys = keytable.Parse(keysTSV)

// name is what users type, and the engine.
const name = "deepspeed"

// Format is ds_config.json.
var Format = interop.Format{
	Name:      name,
	Title:     "a configuration of DeepSpeed",
	Tool:      "DeepSpeed",
	Engine:    name,
	Recognize: recognize,
	Import:    importFiles,
	Values:    values,
	Refusals:  func(t *interop.Target) ir.Diags { return refusals(&t.Plan) },
	Write:     write,
	Ext:       ".json",
}

// sure are keys that no other format has; others are keys that ds_config.json shares.
var (
	sure   = []string{"zero_optimization", "train_micro_batch_size_per_gpu"}
	others = []string{"train_batch_size", "fp16", "bf16", "optimizer", "scheduler", "gradient_clipping",
		"gradient_accumulation_steps", "steps_per_print", "wall_clock_breakdown", "activation_checkpointing"}
)

func recognize(f interop.File) interop.Confidence {
	if tree.SyntaxOf(f) != tree.JSON {
		return interop.No
	}
	doc, _ := tree.Parse(tree.Hjson, f.Name, f.Data)
	has := func(key string) bool { return doc.Root.Get(key) != nil }
	count := 0
	for _, key := range others {
		if has(key) {
			count++
		}
	}
	const several = 3
	switch {
	case has("model_type"):
		return interop.No
	case slices.ContainsFunc(sure, has):
		return interop.Certain
	case count >= several || has("train_batch_size"):
		return interop.Likely
	}
	return interop.No
}

// importFiles reads a ds_config.json, and with it a config.json.
func importFiles(files []interop.File, o interop.Options) (*interop.Import, error) {
	im := &interop.Import{Format: name, Engine: name}
	var main *interop.File
	var diags ir.Diags
	for i, f := range files {
		switch {
		case keytable.IsModel(f):
			diags = append(diags, keytable.TakeModel(im, f)...)
		case main == nil && recognize(f) != interop.No:
			main = &files[i]
		case main == nil && len(files) == 1:
			main = &files[i]
		case main != nil && recognize(f) == interop.Certain:
			diags.Addf(f.Top(), Conflict, "%s is a configuration of DeepSpeed too: give the files of one training",
				main.Name)
		}
	}
	if main == nil {
		diags.Addf(files[0].Top(), NoConfig, "no file is a configuration of DeepSpeed, which has keys "+
			"such as zero_optimization and train_micro_batch_size_per_gpu")
		return nil, diags.Err()
	}
	doc, wrong := tree.Parse(tree.Hjson, main.Name, main.Data) // Accelerate and transformers read JSON
	diags = append(diags, wrong...)
	if len(wrong) == 0 {
		r := &reader{Reader: keytable.NewReader(doc, Keys, im), im: im, devices: o.Devices, isOwnLoop: true}
		diags = append(diags, r.read(nil)...)
	}
	if err := diags.Err(); err != nil {
		return nil, err
	}
	im.Files = append([]string{main.Name}, im.Files...)
	im.Doc = doc
	if !im.Has("plan.pp") {
		keepGlobalBatch(im, doc)
	}
	if on, _ := doc.Root.Find(partitionKey).Bool(); on {
		keepPartition(im)
	}
	im.DefaultField("train.engine", im.Engine, name)
	return im, nil
}

// Codes of input errors.
const (
	// NoConfig is reported if none of the files is a ds_config.json.
	NoConfig ir.Code = "NoConfig"
	// Conflict is reported for keys that contradict each other.
	Conflict ir.Code = "Conflict"
	// Missing is reported for a key without which DeepSpeed does not start.
	Missing ir.Code = "Missing"
)
