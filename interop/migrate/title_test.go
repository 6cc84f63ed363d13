package migrate

import (
	"testing"

	"github.com/planc-dev/planc/interop"
)

// Arguments of Megatron-LM in YAML are not called a script.
func TestTitlesOfFiles(t *testing.T) {
	const arguments = "language_model:\n  num_layers: 8\n  activation_func: gelu\nmodel_parallel:\n" +
		"  tensor_model_parallel_size: 2\nmicro_batch_size: 1\n"
	const launch = "torchrun --nproc_per_node 8 pretrain_gpt.py "
	for _, c := range []struct{ name, text, want string }{
		{"cfg.yaml", arguments, "arguments of Megatron-LM in YAML"},
		{"run.sh", launch + "--num-layers 8 --micro-batch-size 1\n", "a script of Megatron-LM"},
		{"run.log", "------------------------ arguments ------------------------\n  micro_batch_size " +
			"................................ 1\n  num_layers ...................................... 8\n" +
			"-------------------- end of arguments ---------------------\n", "a log with the arguments of Megatron-LM"},
	} {
		s, err := Read([]interop.File{{Name: c.name, Data: []byte(c.text)}}, "megatron", interop.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := titleOf(s); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
