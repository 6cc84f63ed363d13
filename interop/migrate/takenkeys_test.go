package migrate

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/accelerate"
	"github.com/planc-dev/planc/interop/deepspeed"
	"github.com/planc-dev/planc/interop/formats"
	"github.com/planc-dev/planc/interop/hf"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/interop/lightning"
	"github.com/planc-dev/planc/interop/torchtitan"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// takenFormat is a format with files to which each key is added that the format's table calls taken.
type takenFormat struct {
	name  string
	table *keytable.Table
	files []string
	// values are tried in addition to numbers and booleans, by the last part of the key or by the whole key
	values map[string][]string
}

var takenFormats = []takenFormat{
	{"deepspeed", deepspeed.Keys, []string{
		`{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}}`,
		`{"train_micro_batch_size_per_gpu": 1, "fp16": {"enabled": true}, "zero_optimization": {"stage": 2},
  "optimizer": {"type": "SGD", "params": {"lr": 1e-3}}, "scheduler": {"type": "WarmupLR", "params": {}}}`,
		`{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 1},
  "optimizer": {"type": "Adam", "params": {"lr": 1e-3}}, "expert_parallel": {"enabled": true}}`,
		`{"train_micro_batch_size_per_gpu": 1, "expert_parallel": {"autoep_size": 2}}`,
		`{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 1}, "tensor_parallel": {"autotp_size": 2},
  "bf16": {"enabled": true, "bf16_master_weights_and_grads": true}, "scheduler": {"type": "WarmupLR"}}`},
		map[string][]string{"type": {"SGD", "WarmupCosineLR"}, "betas": {"[0.5, 0.6]"}, "device": {"cpu"},
			"communication_data_type": {"fp32"}, "grad_accum_dtype": {"fp32"}}},
	{"accelerate", accelerate.Keys, []string{
		"distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\nfsdp_config: {fsdp_version: 2}\n",
		"distributed_type: FSDP\nnum_processes: 8\nfsdp_config: {fsdp_version: 1}\n",
		"distributed_type: FSDP\nnum_processes: 8\nfsdp_config: {fsdp_version: 2}\n" +
			"parallelism_config: {parallelism_config_dp_shard_size: 4, parallelism_config_cp_size: 2}\n",
		"distributed_type: MULTI_GPU\nnum_processes: 8\n",
		"distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config: {zero_stage: 3}\n",
		"distributed_type: MEGATRON_LM\nnum_processes: 8\nmegatron_lm_config: {megatron_lm_tp_degree: 2}\n",
		"distributed_type: MEGATRON_LM\nnum_processes: 8\nmegatron_lm_config: {megatron_lm_recompute_method: block,\n" +
			"  megatron_lm_recompute_granularity: full, megatron_lm_recompute_num_layers: 1}\n"},
		map[string][]string{"distributed_type": {"DEEPSPEED"}, "mixed_precision": {"fp16"},
			"fsdp_sharding_strategy": {"SHARD_GRAD_OP"}, "parallelism_config_cp_comm_strategy": {"alltoall"},
			"offload_optimizer_device": {"cpu"}, "offload_param_device": {"cpu"},
			"megatron_lm_recompute_granularity": {"selective"}, "megatron_lm_recompute_method": {"uniform"}}},
	{"hf", hf.Keys, []string{"per_device_train_batch_size: 1\n",
		"per_device_train_batch_size: 1\nfsdp: true\nbf16: true\n",
		"per_device_train_batch_size: 1\nlr_scheduler_type: cosine\n"},
		map[string][]string{"fsdp": {"true"}, "deepspeed": {"{zero_optimization: {stage: 2}, train_batch_size: 8}"},
			"optim": {"sgd"}, "lr_scheduler_type": {"cosine"}}},
	{"torchtitan", torchtitan.Keys, []string{
		"[model]\nname = \"llama3\"\nflavor = \"8B\"\n[parallelism]\ntensor_parallel_degree = 2\n" +
			"context_parallel_degree = 2\n",
		"[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 8\n" +
			"[parallelism]\npipeline_parallel_degree = 2\n",
		"[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nsteps = 100\n[optimizer]\nlr = 1e-3\n",
		"[model]\nname = \"deepseek_v3\"\nflavor = \"16B\"\n[parallelism]\ndata_parallel_shard_degree = 8\n"},
		map[string][]string{"model.name": {`"deepseek_v3"`}, "flavor": {`"70B"`}, "converters": {`["float8"]`},
			"optimizer.name": {`"Adam"`}, "decay_type": {`"cosine"`}, "dtype": {`"bfloat16"`},
			"mixed_precision_param":      {`"float32"`},
			"fsdp_reshard_after_forward": {`"never"`}, "pipeline_parallel_schedule": {`"Interleaved1F1B"`},
			"context_parallel_rotate_method": {`"alltoall"`}, "pipeline_parallel_layers_per_stage": {"8"},
			"mode": {`"none"`}, "selective_ac_option": {`"op"`},
			"module_fqns_per_model_part": {`[["tok_embeddings"], ["norm"]]`}}},
	{"lightning", lightning.Keys, []string{
		"trainer: {devices: 8, precision: bf16-mixed}\ndata: {init_args: {batch_size: 1}}\n",
		"trainer:\n  devices: 8\n  strategy:\n    class_path: FSDPStrategy\n" +
			"    init_args: {sharding_strategy: FULL_SHARD}\n" +
			"optimizer:\n  class_path: torch.optim.AdamW\n  init_args: {lr: 1e-3}\n",
		"trainer:\n  devices: 8\n  strategy:\n    class_path: DeepSpeedStrategy\n    init_args: {stage: 2}\n",
		"trainer:\n  devices: 8\n  strategy:\n    class_path: ModelParallelStrategy\n" +
			"    init_args: {tensor_parallel_size: 2}\n"},
		map[string][]string{"strategy": {"fsdp"}, "class_path": {"DeepSpeedStrategy", "torch.optim.SGD"},
			"precision": {"16-mixed"}, "sharding_strategy": {"NO_SHARD"}, "device_mesh": {"[2, 4]"},
			"betas": {"[0.5, 0.6]"}, "activation_checkpointing_policy": {"[my.Block]"},
			"activation_checkpointing": {"[my.Block]"}, "config": {"{zero_optimization: {stage: 3}}", "ds.json"}}},
}

// tried returns the values of a key that are tried.
func (f *takenFormat) tried(key string) []string {
	last := key[strings.LastIndexByte(key, '.')+1:]
	return slices.Concat(f.values[key], f.values[last], []string{"true", "false", "2", "4", "0", "1", "7", "8", "0.25"})
}

// hasEffect reports whether a key with some value changes the job of one of the files, has a note, or is refused.
func (f *takenFormat) hasEffect(t *testing.T, key string) bool {
	format := formats.Find(f.name)
	o := interop.Options{Devices: 8, DevicesPerNode: 8}
	for _, text := range f.files {
		file := interop.File{Name: "file" + format.Ext, Data: []byte(text)}
		base, err := format.Import([]interop.File{file}, o)
		if err != nil {
			t.Fatalf("%s: %v\n%s", f.name, err, text)
		}
		for _, value := range f.tried(key) {
			fresh, _ := format.Import([]interop.File{file}, o)
			if err := fresh.Doc.Set(interop.Value{Key: key, Text: value}); err != nil {
				continue
			}
			changed, err := format.Import([]interop.File{{Name: file.Name, Data: fresh.Doc.Bytes()}}, o)
			if err != nil {
				if isRefused(err) {
					return true
				}
				continue
			}
			i := slices.IndexFunc(changed.Keys, func(k interop.Key) bool { return k.Name == key })
			if i >= 0 && changed.Keys[i].Note != "" || !bytes.Equal(withoutLines(changed), withoutLines(base)) {
				return true
			}
		}
	}
	return false
}

// isRefused reports whether an import refuses a file because of what a key says, and not because of its type, which the
// table has.
func isRefused(err error) bool {
	var diags ir.Diags
	return errors.As(err, &diags) && slices.ContainsFunc(diags, func(d ir.Diag) bool {
		return !slices.Contains([]ir.Code{strict.WrongType, strict.UnknownKey, strict.Syntax}, d.Code)
	})
}

// isSection reports whether a table has keys below a key.
func isSection(table *keytable.Table, key string) bool {
	return slices.ContainsFunc(table.Rows, func(r keytable.Row) bool { return strings.HasPrefix(r.Key, key+".") })
}

// withoutLines returns the text of a job without comments, which have the lines of keys.
func withoutLines(im *interop.Import) []byte {
	var out []string
	for line := range strings.Lines(string(im.JobText())) {
		line, _, _ = strings.Cut(line, "#")
		out = append(out, strings.TrimSpace(line))
	}
	return []byte(strings.Join(out, "\n"))
}

// Each key that a table calls taken changes the job, or has a note.
func TestTakenKeysHaveAnEffect(t *testing.T) {
	for _, f := range takenFormats {
		for _, row := range f.table.Rows {
			isOne := row.Use == interop.Taken && row.Type != "removed" && !isSection(f.table, row.Key)
			if isOne && !f.hasEffect(t, row.Key) {
				t.Errorf("%s: %s changes nothing in the job, and has no note", f.name, row.Key)
			}
		}
	}
}
