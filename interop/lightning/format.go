// Package lightning reads YAML files of LightningCLI, edits them, and writes a Trainer in Python. Such a file has
// neither the model's shape nor the sequence length, because both are in the user's own classes.
package lightning

import (
	"bytes"
	_ "embed"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
)

//go:embed keys.tsv
var keysTSV string

// Keys is every argument of Lightning's Trainer and strategies.
var Keys = keytable.Parse(keysTSV)

const name = "lightning"

// Format is a YAML file of LightningCLI. A written file is a Trainer in Python.
var Format = interop.Format{
	Name:      name,
	Title:     "a configuration of LightningCLI",
	Written:   "a Trainer in Python",
	Tool:      "Lightning",
	Engine:    "fsdp",
	Engines:   []string{"deepspeed"},
	Recognize: recognize,
	Import:    importFiles,
	Values:    values,
	Refusals:  refusals,
	Write:     write,
	Ext:       ".py",
}

// Codes of input errors.
const (
	// NoConfig is reported if none of the files is a configuration of LightningCLI.
	NoConfig ir.Code = "NoConfig"
	// Conflict is reported for keys that contradict each other.
	Conflict ir.Code = "Conflict"
	// CannotExpress is reported for a plan that Lightning cannot run.
	CannotExpress ir.Code = "CannotExpress"
)

// recognize looks for a Trainer, and for words that only Lightning has.
func recognize(f interop.File) interop.Confidence {
	if tree.SyntaxOf(f) != tree.YAML || !bytes.Contains(f.Data, []byte("trainer:")) {
		return interop.No
	}
	for _, word := range []string{"accumulate_grad_batches:", "seed_everything:", "lightning.pytorch", "num_nodes:",
		"pytorch_lightning", "class_path:"} {
		if bytes.Contains(f.Data, []byte(word)) {
			return interop.Certain
		}
	}
	return interop.Possible
}

// importFiles reads a YAML file, and with it the config.json of the model.
func importFiles(files []interop.File, o interop.Options) (*interop.Import, error) {
	im := &interop.Import{Format: name, Engine: "fsdp"}
	var main *interop.File
	var diags ir.Diags
	for i, f := range files {
		switch {
		case keytable.IsModel(f):
			diags = append(diags, keytable.TakeModel(im, f)...)
		case main == nil:
			main = &files[i]
		default:
			diags.Addf(f.Top(), NoConfig, "planc reads one file of LightningCLI, and %s is given too; "+
				"with it, "+
				"planc reads only the config.json of a model", main.Name)
		}
	}
	if main == nil {
		diags.Addf(files[0].Top(), NoConfig, "no file is a configuration of LightningCLI, which is "+
			"YAML with "+
			"a mapping trainer")
		return nil, diags.Err()
	}
	doc, wrong := tree.Parse(tree.YAML, main.Name, main.Data)
	diags = append(diags, wrong...)
	part, wrong := sectionOf(doc)
	diags = append(diags, wrong...)
	if err := diags.Err(); err != nil {
		return nil, err
	}
	im.Files = append([]string{main.Name}, im.Files...)
	im.Doc = &document{part}
	r := &reader{Reader: keytable.NewReader(part.keys(), Keys, im), file: doc, devices: o.Devices}
	r.read()
	if !r.Has(batchKey) && r.Has(shortBatchKey) {
		im.Values = valuesOfFixedData
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return im, nil
}
