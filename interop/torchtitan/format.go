// Package torchtitan reads and writes torchtitan's configurations. torchtitan has three dialects: version 0.2 reads
// TOML, version 0.3 has Python functions with the same keys, and the main branch has counted tokens instead of
// sequences since 2026-08-20. The package reads and writes TOML of 0.2, writes a function for 0.3, and refuses the keys
// of the main branch by name.
//
// Units differ from planc's in one place: training.local_batch_size has all micro-batches of a pipeline.
package torchtitan

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

// Keys is every key of torchtitan 0.2.
var Keys = keytable.Parse(keysTSV)

// engine is the engine in planc's job that prices torchtitan's plans.
const engine = "fsdp"

// Format is a TOML file of torchtitan 0.2.
var Format = interop.Format{
	Name:      "torchtitan",
	Title:     "a configuration of torchtitan 0.2",
	Tool:      "torchtitan",
	Engine:    engine,
	Recognize: recognize,
	Import:    importFiles,
	Values:    values,
	Refusals:  refusals,
	Write:     write,
	Ext:       ".toml",
}

// Function is a Python function of torchtitan 0.3 that returns a configuration. It is only exported.
var Function = interop.Format{
	Name:     "torchtitan:0.3",
	Title:    "a configuration function of torchtitan 0.3",
	Tool:     "torchtitan",
	Engine:   engine,
	Values:   functionValues,
	Refusals: functionRefusals,
	Write:    writeFunction,
	Ext:      ".py",
}

// Codes of input errors.
const (
	// NoConfig is reported if none of the files is a configuration of torchtitan.
	NoConfig ir.Code = "NoConfig"
	// Conflict is reported for keys that contradict each other.
	Conflict ir.Code = "Conflict"
	// WrongDialect is reported for keys of another version of torchtitan.
	WrongDialect ir.Code = "WrongDialect"
	// CannotExpress is reported for a plan that the file cannot say.
	CannotExpress ir.Code = "CannotExpress"
)

// recognize looks for keys that only torchtitan has, then for its tables.
func recognize(f interop.File) interop.Confidence {
	if tree.SyntaxOf(f) != tree.TOML {
		return interop.No
	}
	has := func(word string) bool { return bytes.Contains(f.Data, []byte(word)) }
	switch {
	case has("data_parallel_shard_degree") || has("selective_ac_option") || has("[activation_checkpoint]") ||
		has("[parallelism]") && has("[training]"):
		return interop.Certain
	case has("[training]") && has("[model]"):
		return interop.Likely
	case has("[training]") || has("[parallelism]"):
		return interop.Possible
	}
	return interop.No
}

// importFiles reads a TOML file, and with it the config.json of a model that torchtitan has no flavor of.
func importFiles(files []interop.File, o interop.Options) (*interop.Import, error) {
	im := &interop.Import{Format: "torchtitan", Engine: engine}
	var main *interop.File
	var diags ir.Diags
	for i, f := range files {
		switch {
		case keytable.IsModel(f):
			diags = append(diags, keytable.TakeModel(im, f)...)
		case main == nil:
			main = &files[i]
		default:
			diags.Addf(ir.Pos{File: f.Name}, NoConfig, "torchtitan reads one TOML file, and %s is given too; with it, "+
				"planc reads only the config.json of a model", main.Name)
		}
	}
	if main == nil {
		diags.Addf(ir.Pos{File: files[0].Name}, NoConfig, "no file is a configuration of torchtitan, which is TOML "+
			"with "+
			"[model], [training] and [parallelism]")
		return nil, diags.Err()
	}
	doc, wrong := tree.Parse(tree.TOML, main.Name, main.Data)
	diags = append(diags, wrong...)
	if err := diags.Err(); err != nil {
		return nil, err
	}
	im.Files = append([]string{main.Name}, im.Files...)
	im.Doc = doc
	im.Values = func(t *interop.Target) []interop.Value { return keepRest(doc, values(t)) }
	im.DefaultField("train.engine", engine, "torchtitan")
	r := &reader{Reader: keytable.NewReader(doc, Keys, im), devices: o.Devices, given: o.Model}
	r.read()
	if err := r.Err(); err != nil {
		return nil, err
	}
	return im, nil
}
