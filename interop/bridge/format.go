// Package bridge reads, edits and writes the YAML of Megatron-Bridge: run_config.yaml, which every checkpoint has, and
// files of overrides. Its settings are Megatron-LM's in groups, so that package megatron decides what they mean.
package bridge

import (
	"bytes"
	_ "embed"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/interop/megatron"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
)

//go:embed keys.tsv
var keysTSV string

// Keys is every key of Megatron-Bridge.
var Keys = keytable.Parse(keysTSV)

const name = "bridge"

// Format is run_config.yaml.
var Format = interop.Format{
	Name:      name,
	Title:     "a run_config.yaml of Megatron-Bridge",
	Tool:      "Megatron-Bridge",
	Engine:    "megatron",
	Engines:   []string{"megatron-fsdp"},
	Recognize: recognize,
	Import:    importFiles,
	Values:    values,
	Refusals:  megatron.Refusals,
	Write:     write,
	Ext:       ".yaml",
}

// NoConfig is reported if none of the files is a configuration of Megatron-Bridge.
const NoConfig ir.Code = "NoConfig"

func recognize(f interop.File) interop.Confidence {
	if tree.SyntaxOf(f) != tree.YAML {
		return interop.No
	}
	has := func(word string) bool { return bytes.Contains(f.Data, []byte(word)) }
	switch {
	case has("megatron.bridge") || has("tensor_model_parallel_size:") && (has("train:") || has("model:")):
		return interop.Certain
	case has("pipeline_model_parallel_size:") || has("micro_batch_size:") && has("train:"):
		return interop.Likely
	}
	return interop.No
}

// importFiles reads a YAML file, and with it the config.json of a model that the file does not describe.
func importFiles(files []interop.File, o interop.Options) (*interop.Import, error) {
	var main *interop.File
	var model *interop.File
	var diags ir.Diags
	for i, f := range files {
		switch {
		case keytable.IsModel(f):
			model = &files[i]
		case main == nil:
			main = &files[i]
		default:
			diags.Addf(f.Top(), NoConfig, "planc reads one file of Megatron-Bridge, and %s is given "+
				"too; with "+
				"it, planc reads only the config.json of a model", main.Name)
		}
	}
	if main == nil {
		diags.Addf(files[0].Top(), NoConfig, "no file is a configuration of Megatron-Bridge, which is "+
			"YAML "+
			"with model, train and optimizer")
		return nil, diags.Err()
	}
	doc, wrong := tree.Parse(tree.YAML, main.Name, main.Data)
	diags = append(diags, wrong...)
	if err := diags.Err(); err != nil {
		return nil, err
	}
	r := &reader{doc: doc}
	r.read()
	if err := r.diags.Err(); err != nil {
		return nil, err
	}
	im, err := megatronImport(r, *main, o)
	if err != nil {
		return nil, err
	}
	im.Doc = doc
	if model != nil {
		if err := keytable.TakeModel(im, *model).Err(); err != nil {
			return nil, err
		}
	}
	return im, nil
}
