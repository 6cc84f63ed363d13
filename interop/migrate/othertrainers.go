package migrate

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
)

// otherTrainer is a trainer whose files planc does not read, although they have keys that other formats have too.
type otherTrainer struct {
	name   string
	needs  []string // keys that the file has
	anyOf  []string // of which it has at least one; nil: no others
	except []string // of which it has none
	advice string
}

// otherTrainers are known by their keys.
// Sources: Axolotl, src/axolotl/utils/schemas/config.py; NeMo 1.23,
// examples/nlp/language_modeling/conf/megatron_gpt_config.yaml.
var otherTrainers = []otherTrainer{
	{"Axolotl", []string{"base_model"}, []string{"sequence_len", "micro_batch_size", "num_epochs"},
		[]string{"per_device_train_batch_size"}, "write what it means as TrainingArguments: micro_batch_size is " +
			"per_device_train_batch_size, and the other keys of the batch, the precision and DeepSpeed keep their " +
			"names; sequence_len is --seq-len, and base_model is --model"},
	{"NeMo 1", []string{"trainer", "model.tensor_model_parallel_size"}, nil, nil, "write its model section as " +
		"options of Megatron-LM (--tensor-model-parallel-size), which have the same names, or give the " +
		"run_config.yaml of Megatron-Bridge"},
	{"NeMo 1", []string{"trainer", "model.micro_batch_size", "model.global_batch_size"}, nil, nil, "write its model " +
		"section as options of Megatron-LM (--micro-batch-size), which have the same names, or give the " +
		"run_config.yaml of Megatron-Bridge"},
}

// ofOtherTrainer returns an error if a file is of a trainer that planc does not read.
func ofOtherTrainer(files []interop.File) error {
	for _, f := range files {
		syntax := tree.SyntaxOf(f)
		if syntax == tree.TOML {
			continue
		}
		doc, _ := tree.Parse(syntax, f.Name, f.Data)
		has := func(key string) bool { return doc.Root.Find(key) != nil }
		for i := range otherTrainers {
			t := &otherTrainers[i]
			if slices.ContainsFunc(t.needs, func(key string) bool { return !has(key) }) ||
				t.anyOf != nil && !slices.ContainsFunc(t.anyOf, has) || slices.ContainsFunc(t.except, has) {
				continue
			}
			key := t.needs[len(t.needs)-1]
			return ir.Diags{{Pos: doc.Root.Nearest(key), Code: UnknownFormat, Msg: fmt.Sprintf("%s is a key of a "+
				"configuration of %s, which planc does not read: %s", key, t.name, t.advice)}}
		}
	}
	return nil
}

// trainerOption is an option of a script that is a key of TrainingArguments.
var trainerOption = regexp.MustCompile(`--per[_-]device[_-]train[_-]batch[_-]size`)

// optionsOfTrainer returns an error for a script that gives TrainingArguments as options.
func optionsOfTrainer(files []interop.File) error {
	for _, f := range files {
		at := trainerOption.FindIndex(f.Data)
		if at == nil || slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(f.Name)) {
			continue
		}
		before := string(f.Data[:at[0]])
		pos := f.Top()
		pos.Line, pos.Column = strings.Count(before, "\n")+1, at[0]-strings.LastIndexByte(before, '\n')
		return ir.Diags{{Pos: pos, Code: UnknownFormat, Msg: fmt.Sprintf("%s gives TrainingArguments as an option, "+
			"and planc reads them from YAML or JSON: write each option as a line of a file args.yaml "+
			"(per_device_train_batch_size: 4), and give that file with --format hf", f.Data[at[0]:at[1]])}}
	}
	return nil
}
