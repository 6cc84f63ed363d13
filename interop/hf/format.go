// Package hf reads and writes TrainingArguments of Hugging Face's transformers, as the YAML or JSON that
// HfArgumentParser reads. Scripts add arguments of their own to the same file. A ds_config.json that the file names is
// a second file, and so is the config.json of the model.
package hf

import (
	_ "embed"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/deepspeed"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
)

//go:embed keys.tsv
var keysTSV string

// Keys is every field of TrainingArguments.
var Keys = keytable.Parse(keysTSV)

const name = "hf"

// Format is a file of TrainingArguments.
var Format = interop.Format{
	Name:      name,
	Title:     "a file of Hugging Face TrainingArguments",
	Tool:      "Transformers",
	Engine:    "fsdp",
	Engines:   []string{"deepspeed"},
	Parts:     []string{"deepspeed"},
	Recognize: recognize,
	Import:    importFiles,
	Values:    values,
	Refusals:  refusals,
	Write:     write,
	Ext:       ".yaml",
}

func recognize(f interop.File) interop.Confidence {
	syntax := tree.SyntaxOf(f)
	if syntax == tree.TOML {
		return interop.No
	}
	doc, _ := tree.Parse(syntax, f.Name, f.Data)
	count := 0
	for _, field := range doc.Root.Fields {
		if _, ok := Keys.Find(field.Key); ok {
			count++
		}
	}
	has := func(key string) bool { return doc.Root.Get(key) != nil }
	const several = 3
	switch {
	case has(microKey):
		return interop.Certain
	case count >= several || has(dsKey) || has("output_dir"):
		return interop.Possible
	}
	return interop.No
}

// isMain returns how surely a file has TrainingArguments and is no ds_config.json, which has keys of the same names.
func isMain(f interop.File) interop.Confidence {
	sure := recognize(f)
	if deepspeed.Format.Recognize(f) > sure {
		return interop.No
	}
	return sure
}

// importFiles reads a file of arguments, and with it a config.json and a ds_config.json.
func importFiles(files []interop.File, o interop.Options) (*interop.Import, error) {
	im := &interop.Import{Format: name, Engine: "fsdp"}
	main, ds, diags := keytable.Split(im, files, isMain)
	if main == nil {
		diags.Addf(files[0].Top(), NoConfig, "no file has TrainingArguments, such as "+
			"per_device_train_batch_size")
		return nil, diags.Err()
	}
	doc, wrong := tree.Parse(tree.SyntaxOf(*main), main.Name, main.Data)
	diags = append(diags, wrong...)
	if len(diags) > 0 {
		return nil, diags.Err()
	}
	r := &reader{Reader: keytable.NewReader(doc, Keys, im), im: im, ds: ds, devices: o.Devices,
		perNode: o.DevicesPerNode}
	r.read()
	if err := append(diags, r.Diags...).Err(); err != nil {
		return nil, err
	}
	im.Files = append([]string{main.Name}, im.Files...)
	im.Doc = doc
	if r.part != nil {
		im.Files = append(im.Files, r.part.Name)
		im.Doc = interop.Parts{{Name: main.Name, Doc: doc}, *r.part}
	}
	if r.runsDeepSpeed() {
		im.Values = func(t *interop.Target) []interop.Value { return filled(im.Doc, values(t), t) }
	}
	im.DefaultField("train.engine", im.Engine, name)
	return im, nil
}

// Codes of input errors.
const (
	// NoConfig is reported if none of the files has TrainingArguments.
	NoConfig ir.Code = "NoConfig"
	// Conflict is reported for keys that contradict each other.
	Conflict ir.Code = "Conflict"
	// Missing is reported for a file that is named and not given.
	Missing ir.Code = "Missing"
)
