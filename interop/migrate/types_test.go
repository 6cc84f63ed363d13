package migrate

import (
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir/spec"
)

// Trainers that wrap a model with DDP compute in the same types, and those that wrap it with FSDP in the same others.
func TestTypesOfWrappersAreTheSame(t *testing.T) {
	model := []string{"model=llama3-8b", "train.seq_len=4096", "train.global_batch=64", "cluster.nodes=1"}
	yaml := func(text string) []interop.File { return []interop.File{{Name: "file.yaml", Data: []byte(text)}} }
	wrapped := map[string][][]interop.File{
		"DDP": {
			yaml("output_dir: out\nbf16: true\nper_device_train_batch_size: 2\n"),
			yaml("trainer: {devices: 8, strategy: ddp, precision: bf16-mixed}\ndata: {init_args: {batch_size: 2}}\n"),
			yaml("distributed_type: MULTI_GPU\nmixed_precision: bf16\nnum_processes: 8\n"),
			titanOf("data_parallel_shard_degree = 1\ndata_parallel_replicate_degree = 8"),
		},
		"FSDP without sharding": {
			yaml("output_dir: out\nbf16: true\nper_device_train_batch_size: 2\nfsdp: no_shard auto_wrap\n" +
				"fsdp_config: {version: 1}\n"),
			yaml("trainer:\n  devices: 8\n  precision: bf16-mixed\n  strategy: {class_path: lightning.pytorch." +
				"strategies.FSDPStrategy, init_args: {sharding_strategy: NO_SHARD}}\n" +
				"data: {init_args: {batch_size: 2}}\n"),
			yaml("distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\n" +
				"fsdp_config: {fsdp_sharding_strategy: NO_SHARD}\n"),
		},
		"FSDP": {
			yaml("output_dir: out\nbf16: true\nper_device_train_batch_size: 2\nfsdp: full_shard auto_wrap\n"),
			yaml("trainer: {devices: 8, strategy: fsdp, precision: bf16-mixed}\ndata: {init_args: {batch_size: 2}}\n"),
			yaml("distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\nfsdp_config: {fsdp_version: 2, " +
				"fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP}\n"),
			titanOf("data_parallel_shard_degree = 8"),
		},
	}
	types := map[string]spec.Precision{}
	for name, files := range wrapped {
		for _, f := range files {
			_, q := questionOfFiles(t, f, noFiles, onH100(model))
			if first, ok := types[name]; ok && first != q.Train.Precision {
				t.Errorf("%s: %+v, not %+v:\n%s", name, q.Train.Precision, first, f[0].Data)
			}
			types[name] = q.Train.Precision
		}
	}
	ddp, fsdp, whole := types["DDP"], types["FSDP"], types["FSDP without sharding"]
	if ddp == fsdp || whole == fsdp {
		t.Errorf("DDP and FSDP have the same types: %+v, %+v, %+v", ddp, whole, fsdp)
	}
	if whole.Reduce != "bf16" || ddp.Reduce != "f32" {
		t.Errorf("gradients are reduced in %s without sharding, in %s with DDP", whole.Reduce, ddp.Reduce)
	}
	whole.Reduce = ddp.Reduce
	if whole != ddp {
		t.Errorf("FSDP without sharding keeps %+v, DDP %+v", whole, ddp)
	}
}
