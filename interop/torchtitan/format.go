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
	"maps"
	"slices"

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
	Refusals:  tomlRefusals,
	Write:     write,
	Ext:       ".toml",
	// A script that starts torchtitan takes variables.
	HasVariables: true,
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
	// Undefined is reported for a value that a script takes from its environment.
	Undefined ir.Code = "Undefined"
)

// recognize looks for a script that starts torchtitan, for keys that only torchtitan has, then for its tables.
func recognize(f interop.File) interop.Confidence {
	if isScript(f) {
		return interop.Certain
	}
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

// importFiles reads a TOML file, and with it the script that starts torchtitan with the file, and the config.json of a
// model that torchtitan has no flavor of.
func importFiles(files []interop.File, o interop.Options) (*interop.Import, error) {
	im := &interop.Import{Format: "torchtitan", Engine: engine}
	main, s, diags := sortFiles(im, files, o)
	if err := diags.Err(); err != nil {
		return nil, err
	}
	doc, diags := tree.Parse(tree.TOML, main.Name, main.Data)
	if err := diags.Err(); err != nil {
		return nil, err
	}
	im.DefaultField("train.engine", engine, "torchtitan")
	if s != nil {
		return im, s.importWith(im, doc, o)
	}
	im.Files = append([]string{main.Name}, im.Files...)
	for _, name := range slices.Sorted(maps.Keys(o.Define)) {
		im.AddNote(ir.Pos{}, "--define %s=%s has no effect: %s is no script", name, o.Define[name], main.Name)
	}
	im.Doc = doc
	im.Values = func(t *interop.Target) []interop.Value { return keepDerived(doc, t, values(t)) }
	return im, readKeys(im, doc, o.Devices, o)
}

// sortFiles returns the TOML file and the script of an import, and takes the config.json of a model. s is nil if no
// file is a script.
func sortFiles(im *interop.Import, files []interop.File, o interop.Options) (main interop.File, s *script,
	diags ir.Diags) {
	var given *interop.File
	for i, f := range files {
		switch {
		case keytable.IsModel(f):
			diags = append(diags, keytable.TakeModel(im, f)...)
		case isScript(f) && s == nil:
			s = readScript(f, o)
		case given == nil && !isScript(f):
			given = &files[i]
		default:
			diags.Addf(f.Top(), NoConfig, "torchtitan reads one TOML file, and %s is given too; with it, planc reads "+
				"the script that starts torchtitan, and the config.json of a model", files[0].Name)
		}
	}
	switch {
	case s != nil && s.command == nil:
		return main, s, append(diags, s.diags...)
	case s != nil:
		file, wrong := s.configFile(given, o)
		return file, s, append(diags, wrong...)
	case given == nil:
		diags.Addf(files[0].Top(), NoConfig, "no file is a configuration of torchtitan, which is TOML with [model], "+
			"[training] and [parallelism]")
		return main, nil, diags
	}
	return *given, nil, diags
}

// readKeys reads the keys of a file into an import. devices is 0 if the number is not known.
func readKeys(im *interop.Import, doc *tree.Doc, devices int, o interop.Options) error {
	r := &reader{Reader: keytable.NewReader(doc, Keys, im), devices: devices, given: o.Model}
	r.read()
	if r.model != "" {
		im.Refusals = func(t *interop.Target) ir.Diags { return refusalsOf(r.model, &t.Plan) }
	}
	return r.Err()
}
