package migrate

import (
	"testing"

	"github.com/planc-dev/planc/interop"
)

// Scripts that start a trainer with a configuration name it, and both together are read.
func TestScriptsThatStartAConfiguration(t *testing.T) {
	const (
		deepspeed = "deepspeed --num_gpus 8 train.py --deepspeed ds.json\n"
		titan     = "CONFIG_FILE=${CONFIG_FILE:-\"./configs/llama.toml\"}\ntorchrun --nproc_per_node=${NGPU:-8} " +
			"-m torchtitan.train --job.config_file ${CONFIG_FILE}\n"
		ds   = `{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}`
		toml = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 1\n[parallelism]\n" +
			"tensor_parallel_degree = 2\n"
	)
	for _, c := range []struct{ script, alone, config, text, note string }{
		{deepspeed, "run.sh:1:45: this script starts a trainer with --deepspeed ds.json, which has the " +
			"plan: give that file, alone or after run.sh [UnknownFormat]", "ds.json", ds,
			"run.sh:1:45: the plan is that of ds.json; planc reads only the number of devices from run.sh"},
		{"deepspeed --num_gpus 8 train.py --deepspeed=ds.json\n", "run.sh:1:33: this script starts a trainer with " +
			"--deepspeed ds.json, which has the plan: give that file, alone or after run.sh [UnknownFormat]", "ds.json",
			ds, "run.sh:1:33: the plan is that of ds.json; planc reads only the number of devices from run.sh"},
		{titan, "run.sh:1:29: this script starts a trainer with --job.config_file ./configs/llama.toml, which has " +
			"the plan: give that file, alone or after run.sh [UnknownFormat]", "configs/llama.toml", toml,
			"run.sh:1:29: the plan is that of ./configs/llama.toml; planc reads only the number of devices from " +
				"run.sh"},
	} {
		script := interop.File{Name: "run.sh", Data: []byte(c.script)}
		_, err := Read([]interop.File{script}, "", interop.Options{})
		if err == nil || err.Error() != c.alone {
			t.Errorf("got  %v\nwant %s", err, c.alone)
		}
		s, err := Read([]interop.File{script, {Name: c.config, Data: []byte(c.text)}}, "", interop.Options{})
		if err != nil {
			t.Error(err)
			continue
		}
		if s.Devices != 8 || len(s.Notes) != 1 || s.Notes[0].String() != c.note || s.Main() != c.config {
			t.Errorf("%s: %d devices, notes %v", s.Main(), s.Devices, s.Notes)
		}
	}
}
