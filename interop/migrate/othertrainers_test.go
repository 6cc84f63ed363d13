package migrate

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
)

// Files of trainers that planc does not read are named, and not taken for files of others that have the same keys.
func TestOtherTrainers(t *testing.T) {
	const nemo = "trainer: {devices: 8, num_nodes: 2, precision: bf16}\nmodel:\n  micro_batch_size: 1\n"
	const options = "torchrun --nproc_per_node=4 train.py \\\n    --bf16 True \\\n"
	for _, c := range []struct{ name, text, format, want string }{
		{"a.yaml", "base_model: llama\nsequence_len: 8192\nmicro_batch_size: 2\n" +
			"gradient_accumulation_steps: 4\nbf16: true\ngradient_checkpointing: true\n", "", "" +
			"a.yaml:1:13: base_model is a key of a " +
			"configuration of Axolotl, which planc does not read: write what it means as TrainingArguments"},
		{"n.yaml", nemo + "  tensor_model_parallel_size: 4\n", "", "n.yaml:4:31: model.tensor_model_parallel_size is " +
			"a key of a configuration of NeMo 1, which planc does not read: write its model section as options of " +
			"Megatron-LM"},
		{"n.yaml", nemo + "  global_batch_size: 128\n", "", "n.yaml:4:22: model.global_batch_size is a key of a " +
			"configuration of NeMo 1"},
		{"train.sh", options + "    --per_device_train_batch_size 4\n", "", "train.sh:3:5: " +
			"--per_device_train_batch_size gives TrainingArguments as an option, and planc reads them from YAML or "},
		{"train.sh", options + "    --per-device-train-batch-size 4\n", "hf", "train.sh:3:5: " +
			"--per-device-train-batch-size gives TrainingArguments as an option"},
		{"train.sh", options, "", "train.sh:1:1: this is no file of a trainer that planc recognizes"},
		{"l.yaml", "trainer: {devices: 8, num_nodes: 2}\nmodel: {class_path: my.Model}\n", "", ""},
		{"h.yaml", "base_model: llama\nper_device_train_batch_size: 2\nbf16: true\n", "", ""},
	} {
		_, err := Read([]interop.File{{Name: c.name, Data: []byte(c.text)}}, c.format, interop.Options{Devices: 16})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.text, err)
		case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
			t.Errorf("%s: %v", c.text, err)
		}
	}
}
