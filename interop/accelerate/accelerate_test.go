package accelerate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	_ "github.com/planc-dev/planc/golden/quickfuzz"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/accelerate"
	"github.com/planc-dev/planc/ir"
)

func load(texts ...string) (*interop.Import, error) {
	var files []interop.File
	for i, text := range texts {
		name := [...]string{"accelerate.yaml", "ds.json", "config.json"}[i]
		if strings.Contains(text, "model_type") {
			name = "config.json"
		}
		files = append(files, interop.File{Name: name, Data: []byte(text)})
	}
	return accelerate.Format.Import(files, interop.Options{})
}

func mustLoad(t *testing.T, texts ...string) *interop.Import {
	t.Helper()
	im, err := load(texts...)
	if err != nil {
		t.Fatal(err)
	}
	return im
}

func fieldsOf(im *interop.Import) map[string]string {
	out := map[string]string{}
	for _, f := range im.Fields {
		out[f.Path] = f.Value
	}
	return out
}

const fsdp2 = `compute_environment: LOCAL_MACHINE
distributed_type: FSDP
fsdp_config:
  fsdp_activation_checkpointing: true  # to fit
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_reshard_after_forward: true
  fsdp_version: 2
mixed_precision: bf16
num_machines: 2
num_processes: 16
parallelism_config:
  parallelism_config_dp_replicate_size: 2
  parallelism_config_dp_shard_size: 4
  parallelism_config_tp_size: 2
`

func TestImportSaysTheJob(t *testing.T) {
	im := mustLoad(t, fsdp2)
	want := map[string]string{"plan.zero": "3", "plan.dp": "8", "plan.tp": "2", "plan.cp": "1", "plan.pp": "1",
		"plan.ep": "1", "plan.sp": "false", "plan.zero_group": "4", "plan.recompute": "full",
		"train.engine": "fsdp", "train.precision.compute": "bf16", "train.precision.params": "f32",
		"train.precision.grads":  "f32",
		"train.precision.master": "none", "train.precision.reduce": "bf16"}
	if diff := cmp.Diff(want, fieldsOf(im)); diff != "" {
		t.Error(diff)
	}
	if im.Engine != "fsdp" || im.Devices != 16 || im.DevicesPerNode != 8 {
		t.Errorf("engine %s, %d devices, %d of a node", im.Engine, im.Devices, im.DevicesPerNode)
	}
}

// Fields that a file sets, by what the file has.
func TestImportOfSections(t *testing.T) {
	tests := []struct {
		name, engine, text string
		want               map[string]string
	}{
		{"DDP", "fsdp", "distributed_type: MULTI_GPU\nnum_processes: 8\nmixed_precision: fp16\n",
			map[string]string{"plan.zero": "0", "train.precision.compute": "fp16", "train.precision.reduce": "f32"}},
		{"FSDP 1", "fsdp", "distributed_type: FSDP\nnum_machines: 2\nnum_processes: 16\nfsdp_config:\n" +
			"  fsdp_sharding_strategy: HYBRID_SHARD_ZERO2\n  fsdp_offload_params: true\n",
			map[string]string{"plan.zero": "2", "plan.zero_group": "8", "plan.offload": "",
				"plan.recompute": "none"}},
		{"FSDP 1 by number", "fsdp", "distributed_type: FSDP\nnum_processes: 8\nfsdp_config: {sharding_strategy: 3}\n",
			map[string]string{"plan.zero": "0"}},
		{"context parallelism", "fsdp", "distributed_type: FSDP\nnum_processes: 8\nfsdp_config: {fsdp_version: 2}\n" +
			"parallelism_config:\n  parallelism_config_dp_shard_size: 2\n  parallelism_config_cp_size: 4\n" +
			"  parallelism_config_cp_comm_strategy: alltoall\n",
			map[string]string{"plan.zero": "3", "plan.cp": "4", "plan.cp_kind": "ring", "plan.dp": "2"}},
		{"DeepSpeed", "deepspeed", "distributed_type: DEEPSPEED\nnum_processes: 8\nmixed_precision: bf16\n" +
			"deepspeed_config:\n  zero_stage: 3\n  gradient_accumulation_steps: 4\n  offload_optimizer_device: cpu\n",
			map[string]string{"plan.zero": "3", "plan.micro_batches": "4", "plan.offload": "", "plan.recompute": "none",
				"train.precision.compute": "bf16", "train.precision.grads": "bf16", "train.precision.master": "f32"}},
		{"Megatron-LM", "megatron", "distributed_type: MEGATRON_LM\nnum_processes: 16\nmegatron_lm_config:\n" +
			"  megatron_lm_tp_degree: 2\n  megatron_lm_pp_degree: 4\n  megatron_lm_num_micro_batches: 8\n" +
			"  megatron_lm_sequence_parallelism: true\n  megatron_lm_use_distributed_optimizer: true\n" +
			"  megatron_lm_recompute_activations: true\n",
			map[string]string{"plan.tp": "2", "plan.pp": "4", "plan.micro_batches": "8", "plan.sp": "true",
				"plan.zero": "1", "plan.recompute": "selective", "train.precision.compute": "f32"}},
	}
	for _, test := range tests {
		im := mustLoad(t, test.text)
		got := fieldsOf(im)
		for path, value := range test.want {
			if got[path] != value {
				t.Errorf("%s: %s is %q, want %q", test.name, path, got[path], value)
			}
		}
		if im.Engine != test.engine {
			t.Errorf("%s: engine %s", test.name, im.Engine)
		}
	}
}

func TestTheNamedConfigIsASecondFile(t *testing.T) {
	const text = "distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n"
	im := mustLoad(t, text, `{"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true},
		"zero_optimization": {"stage": 2}}`)
	got := fieldsOf(im)
	if got["plan.zero"] != "2" || got["train.global_batch"] != "16" || got["train.precision.compute"] != "bf16" {
		t.Error(got)
	}
	if diff := cmp.Diff([]string{"accelerate.yaml", "ds.json"}, im.Files); diff != "" {
		t.Error(diff)
	}
}

func TestAllBlocksAreRecomputedIfTheModelIsKnown(t *testing.T) {
	got := fieldsOf(mustLoad(t, fsdp2, `{"model_type": "llama", "num_hidden_layers": 32}`))
	if got["plan.recompute_layers"] != "32" {
		t.Error(got["plan.recompute_layers"])
	}
}

func TestEveryKeyIsAccountedFor(t *testing.T) {
	im := mustLoad(t, "distributed_type: FSDP\nnum_processes: 8\nfsdp_config:\n  fsdp_version: 2\n"+
		"  fsdp_reshard_after_froward: false\n  fsdp_sharding_strategy: NO_SHARD\n  fsdp_min_num_params: 5\n"+
		"deepspeed_config: {zero_stage: 2}\nmain_training_function: main\n")
	var got []string
	for _, k := range im.Keys {
		got = append(got, k.Name+": "+string(k.Use)+": "+k.Note)
	}
	want := []string{
		"distributed_type: taken: ",
		"num_processes: taken: ",
		"fsdp_config.fsdp_version: taken: ",
		"fsdp_config.fsdp_reshard_after_froward: ignored by that tool: Accelerate does not read it; did you mean " +
			"fsdp_reshard_after_forward?",
		"fsdp_config.fsdp_sharding_strategy: ignored by that tool: fsdp_version 2 reads fsdp_reshard_after_forward",
		"fsdp_config.fsdp_min_num_params: not supported by planc: size_based_wrap gathers other units than whole " +
			"blocks: memory and overlap",
		"deepspeed_config.zero_stage: ignored by that tool: distributed_type is FSDP",
		"main_training_function: no effect on the plan: ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWrongFiles(t *testing.T) {
	const sizes = "distributed_type: FSDP\nnum_processes: 8\nfsdp_config: {fsdp_version: 2}\nparallelism_config:\n"
	tests := []struct{ text, want string }{
		{"num_processes: 8\n", "accelerate.yaml: distributed_type is missing; Accelerate needs it: NO, MULTI_GPU, " +
			"FSDP, " +
			"DEEPSPEED or MEGATRON_LM [Missing]"},
		{"distributed_type: FDSP\n", "accelerate.yaml:1:19: distributed_type is \"FDSP\"; use one of NO, " +
			"MULTI_GPU, FSDP, " +
			"DEEPSPEED, MEGATRON_LM; did you mean FSDP? [UnknownValue]"},
		{"distributed_type: MULTI_GPU\nnum_proceses: 8\n", "accelerate.yaml:2:1: Accelerate has no key " +
			"num_proceses, and " +
			"refuses the file; did you mean num_processes? [UnknownKey]"},
		{"distributed_type: FSDP\nfsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: FULL_SHARD}\n",
			"accelerate.yaml:2:60: fsdp_reshard_after_forward is FULL_SHARD; with fsdp_version 2 it must be true " +
				"(ZeRO 3) " +
				"or false (ZeRO 2); did you mean true? [WrongType]"},
		{sizes + "  parallelism_config_dp_replicate_size: 4\n  parallelism_config_tp_size: 2\n",
			"accelerate.yaml: dp_shard_size and cp_size are 1, so FSDP has no ranks to shard over: use " +
				"distributed_type " +
				"MULTI_GPU, or dp_shard_size 4 with dp_replicate_size 1 [Conflict]\n" +
				"accelerate.yaml:5:41: dp_replicate_size is 4 with dp_shard_size 1; Accelerate refuses that with " +
				"tp_size or " +
				"cp_size above 1: use dp_shard_size 4 and dp_replicate_size 1 [Conflict]"},
		{sizes + "  parallelism_config_dp_shard_size: 4\n  parallelism_config_tp_size: 4\n",
			"accelerate.yaml:2:16: num_processes is 8, but the sizes of parallelism_config multiply to " +
				"dp_replicate 1 · " +
				"dp_shard 4 · tp 4 · cp 1 = 16; did you mean 16? [Conflict]"},
		{sizes + "  parallelism_config_cp_size: 4\n  parallelism_config_sp_size: 2\n",
			"accelerate.yaml:6:31: cp_size is 4 and sp_size is 2; Accelerate runs one of them: set the other to " +
				"1; did you " +
				"mean 1? [Conflict]"},
		{"distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 2, offload_param_device: cpu}\n",
			"accelerate.yaml:2:57: offload_param_device needs zero_stage 3, and it is 2 [Conflict]"},
		{"distributed_type: DEEPSPEED\ndeepspeed_config: {deepspeed_config_file: ds.json}\n",
			"accelerate.yaml:2:43: ds.json has the ZeRO stage and the batch: give it as a second file [Missing]"},
		{"distributed_type: MULTI_GPU\nnum_machines: 3\nnum_processes: 8\n", "accelerate.yaml:3:16: num_processes " +
			"is 8, the " +
			"number of all GPUs; it must be a multiple of num_machines 3 [Conflict]"},
		{"distributed_type: MEGATRON_LM\nnum_processes: 8\nmegatron_lm_config: {megatron_lm_tp_degree: 3}\n",
			"accelerate.yaml:2:16: num_processes is 8; it must be a multiple of megatron_lm_tp_degree 3 [Conflict]"},
		{"distributed_type: FSDP\nfsdp_config:\n\tfsdp_version: 2\n",
			"accelerate.yaml:3:1: there is a tab here: indent YAML with spaces [Syntax]"},
	}
	for _, test := range tests {
		_, err := load(test.text)
		if err == nil || err.Error() != test.want {
			t.Errorf("%s\n%v\nwant %s", test.text, err, test.want)
		}
	}
}

func TestRecognize(t *testing.T) {
	for text, want := range map[string]interop.Confidence{
		fsdp2: interop.Certain, "num_processes: 8\nmixed_precision: bf16\n": interop.Likely, "a: 1": interop.No,
		"": interop.No, "{": interop.No,
	} {
		if got := accelerate.Format.Recognize(interop.File{Name: "a.yaml", Data: []byte(text)}); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestEditsKeepTheUsersFile(t *testing.T) {
	im := mustLoad(t, fsdp2)
	for _, v := range []interop.Value{{Key: "fsdp_config.fsdp_reshard_after_forward", Text: "false"},
		{Key: "parallelism_config.parallelism_config_dp_replicate_size", IsAbsent: true},
		{Key: "parallelism_config.parallelism_config_cp_size", Text: "2"},
		{Key: "fsdp_config.fsdp_activation_checkpointing", Text: "false"}} {
		if err := im.Doc.Set(v); err != nil {
			t.Fatal(err)
		}
	}
	want := strings.NewReplacer("reshard_after_forward: true", "reshard_after_forward: false", "checkpointing: true",
		"checkpointing: false", "  parallelism_config_dp_replicate_size: 2\n", "",
		"tp_size: 2\n", "tp_size: 2\n  parallelism_config_cp_size: 2\n").Replace(fsdp2)
	if diff := cmp.Diff(want, string(im.Doc.Bytes())); diff != "" {
		t.Error(diff)
	}
}

// Offload and a default are accounted for: the first is not priced, the second changes nothing.
func TestNotesOfKeys(t *testing.T) {
	im := mustLoad(t, "distributed_type: DEEPSPEED\nnum_processes: 8\nuse_cpu: false\ndeepspeed_config:\n"+
		"  zero_stage: 3\n  offload_param_device: nvme\n")
	want := map[string]string{"use_cpu": "no effect on the plan: the default",
		"deepspeed_config.offload_param_device": "not supported by planc: offload: keeps the parameters in NVMe"}
	for _, k := range im.Keys {
		if text := string(k.Use) + ": " + k.Note; want[k.Name] != "" && want[k.Name] != text {
			t.Errorf("%s: %s, want %s", k.Name, text, want[k.Name])
		}
	}
}

// A hybrid strategy shards over a node, and over nothing that is known if the node is not.
func TestGroupsOfGivenDevices(t *testing.T) {
	const text = "distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: HYBRID_SHARD}\n"
	files := []interop.File{{Name: "accelerate.yaml", Data: []byte(text)}}
	for perNode, want := range map[int]string{8: "8", 0: ""} {
		im, err := accelerate.Format.Import(files, interop.Options{Devices: 32, DevicesPerNode: perNode})
		if err != nil || fieldsOf(im)["plan.zero_group"] != want {
			t.Errorf("%d devices of a node: %v, %v", perNode, fieldsOf(im), err)
		}
	}
}

func FuzzImport(f *testing.F) {
	f.Add(fsdp2)
	f.Add("distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: x, gradient_clipping: []}\n")
	f.Add("distributed_type: MEGATRON_LM\nmegatron_lm_config: {megatron_lm_tp_degree: 0}\nfsdp_config: 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		accelerate.Format.Recognize(interop.File{Name: "a.yaml", Data: []byte(text)})
		im, err := load(text)
		var diags ir.Diags
		if err != nil {
			if !errors.As(err, &diags) {
				t.Fatal(err)
			}
			return
		}
		if string(im.Doc.Bytes()) != text {
			t.Fatal("an import changes the file")
		}
		im.JobText()
	})
}
