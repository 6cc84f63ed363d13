// Package accelerate reads and writes Accelerate's configuration file, which `accelerate config` writes and `accelerate
// launch --config_file` reads: PyTorch DDP and FSDP, DeepSpeed or Megatron-LM, by distributed_type. The file has
// neither a model nor a batch: a config.json of Hugging Face gives the model. A ds_config.json that the file names is a
// second file.
package accelerate

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

//go:embed keys.tsv
var keysTSV string

// Keys is every key that Accelerate knows.
var Keys = keytable.Parse(keysTSV)

const name = "accelerate"

// Format is the configuration file of Accelerate.
var Format = interop.Format{
	Name:      name,
	Title:     "a configuration of Accelerate",
	Tool:      "Accelerate",
	Engine:    engine,
	Engines:   []string{"deepspeed", "megatron"},
	Parts:     []string{"deepspeed"},
	Recognize: recognize,
	Import:    importFiles,
	Values:    values,
	Refusals:  refusals,
	Write:     write,
	Ext:       ".yaml",
}

// sure are keys that no other format has; likely are keys that others have too.
var (
	sure   = []string{"compute_environment", "distributed_type", "megatron_lm_config"}
	likely = []string{"num_processes", "num_machines", "machine_rank", "mixed_precision", "main_training_function"}
)

func recognize(f interop.File) interop.Confidence {
	syntax := tree.SyntaxOf(f)
	if syntax == tree.TOML {
		return interop.No
	}
	doc, _ := tree.Parse(syntax, f.Name, f.Data)
	has := func(key string) bool { return doc.Root.Get(key) != nil }
	count := 0
	for _, key := range likely {
		if has(key) {
			count++
		}
	}
	switch {
	case slices.ContainsFunc(sure, has):
		return interop.Certain
	case count > 1:
		return interop.Likely
	}
	return interop.No
}

// importFiles reads a configuration, and with it a config.json and a ds_config.json.
func importFiles(files []interop.File, o interop.Options) (*interop.Import, error) {
	im := &interop.Import{Format: name, Engine: engine}
	main, ds, diags := keytable.Split(im, files, recognize)
	if main == nil {
		diags.Addf(files[0].Top(), NoConfig, "no file is a configuration of Accelerate, which has keys "+
			"such as distributed_type and num_processes")
		return nil, diags.Err()
	}
	doc, wrong := tree.Parse(tree.SyntaxOf(*main), main.Name, main.Data)
	diags = append(diags, wrong...)
	if len(diags) > 0 {
		return nil, diags.Err()
	}
	r := &reader{Reader: keytable.NewReader(doc, Keys, im), im: im, ds: ds, given: o.Devices,
		perNode: o.DevicesPerNode}
	r.TruthWords = truthWords
	r.read()
	if err := append(diags, r.Diags...).Err(); err != nil {
		return nil, err
	}
	im.Files = append([]string{main.Name}, im.Files...)
	im.Doc = doc
	if r.part != nil {
		im.Files = append(im.Files, r.part.Name)
		im.Doc = interop.Parts{{Name: main.Name, Doc: doc}, *r.part}
		im.Values = func(t *interop.Target) []interop.Value { return namedValues(t, r.part.Prefix) }
	}
	im.DefaultField("train.engine", im.Engine, name)
	return im, nil
}

// engine is the engine of DDP and FSDP.
const engine = "fsdp"

// Codes of input errors.
const (
	// NoConfig is reported if none of the files is a configuration of Accelerate.
	NoConfig ir.Code = "NoConfig"
	// Conflict is reported for keys that contradict each other.
	Conflict ir.Code = "Conflict"
	// Missing is reported for a key without which Accelerate does not start.
	Missing ir.Code = "Missing"
)

// unknown reports keys that Accelerate does not know: at the top it refuses the file, in a section it ignores them.
func (r *reader) unknown(path string, f *tree.Field) {
	if row, ok := r.Table.Find(prefixed(path)); ok {
		keytable.AccountAs(r.Reader, path, row, f.Value)
		return
	}
	if r.Doc.Root.Get(path) == nil && isSection(path) {
		keytable.Ignore(r.Reader, path, "Accelerate")
		return
	}
	unknown := r.Table.Unknown(path)
	d := ir.Diag{Pos: r.Doc.Root.KeyPos(unknown), Code: strict.UnknownKey, Fix: r.Table.Nearest(path),
		Msg: "Accelerate has no key " + unknown + ", and refuses the file"}
	if !slices.Contains(r.Diags, d) { // each key of an unknown mapping
		r.Diags = append(r.Diags, d)
	}
}

// prefixes are the sections whose keys have a prefix that a file may leave out, and the text with which Accelerate
// recognizes a key that has it: a key that begins with "fsdp" or "fp8" gets no prefix, also without an underscore.
// Source: Accelerate 1.15.0, commands/launch.py: _validate_launch_command.
var prefixes = map[string]string{"fsdp_config": "fsdp", "fp8_config": "fp8", "dynamo_config": "dynamo_"}

// prefixed returns the path of a key with the prefix of its section.
func prefixed(path string) string {
	section, key, isNested := strings.Cut(path, ".")
	prefix, ok := prefixes[section]
	if !isNested || !ok || strings.HasPrefix(key, prefix) {
		return path
	}
	return section + "." + strings.TrimSuffix(prefix, "_") + "_" + key
}
