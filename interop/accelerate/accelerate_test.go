package accelerate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/costmodel"
	_ "github.com/planc-dev/planc/golden/quickfuzz"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/accelerate"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
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
		"train.engine": "fsdp", "train.precision.compute": "bf16", "plan.recompute_every": "1",
		"plan.recompute_split": "false"}
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
		{"a batch that the Trainer divides", "deepspeed", "distributed_type: DEEPSPEED\nnum_processes: 8\n" +
			"deepspeed_config:\n  zero_stage: 2\n  gradient_accumulation_steps: auto\n",
			map[string]string{"plan.zero": "2", "plan.micro_batches": ""}},
		{"other words for true", "fsdp", "distributed_type: FSDP\nnum_processes: 8\nfsdp_config:\n" +
			"  fsdp_version: 2\n  fsdp_activation_checkpointing: 'yes'\n  fsdp_reshard_after_forward: 'off'\n",
			map[string]string{"plan.zero": "2", "plan.recompute": "full"}},
		{"stage 0 of DeepSpeed", "deepspeed", "distributed_type: DEEPSPEED\nmixed_precision: bf16\n" +
			"deepspeed_config: {zero_stage: 0}\n", map[string]string{"plan.zero": "0",
			"train.precision.reduce": "bf16", "train.precision.master": "none", "train.precision.moments": "bf16"}},
		{"FP8 with DeepSpeed", "deepspeed", "distributed_type: DEEPSPEED\nmixed_precision: fp8\n" +
			"deepspeed_config: {zero_stage: 1}\n", map[string]string{"train.precision.compute": "fp8",
			"train.precision.grads": "bf16", "train.precision.reduce": "bf16", "train.precision.master": "f32"}},
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

// Accelerate refuses keys that the named ds_config.json has, too.
func TestKeysOfTheNamedConfigAreRefused(t *testing.T) {
	const text = "distributed_type: DEEPSPEED\n%s\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n  %s\n"
	for _, c := range []struct{ top, section, want string }{
		{"mixed_precision: bf16", "", "accelerate.yaml:2:18: mixed_precision and deepspeed_config_file are both " +
			"given, and Accelerate refuses that: remove the key; bf16.enabled or fp16.enabled in ds.json says the " +
			"type [Conflict]"},
		{"mixed_precision: null", "", ""},
		{"", "offload_param_nvme_path: none", "accelerate.yaml:5:28: offload_param_nvme_path and " +
			"deepspeed_config_file are both given, and Accelerate refuses that: move offload_param_nvme_path into " +
			"ds.json [Conflict]"},
		{"", "zero3_init_flag: true", ""},
	} {
		_, err := load(fmt.Sprintf(text, c.top, c.section), `{"train_micro_batch_size_per_gpu": 2,
			"zero_optimization": {"stage": 2}}`)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s %s\n%s\nwant %s", c.top, c.section, got, c.want)
		}
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
		"fsdp_config.fsdp_reshard_after_froward: ignored by that tool: Accelerate does not know it",
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

// A number of devices that the user gives replaces num_processes, so errors do not name that key.
func TestGivenDevicesContradictTheSizes(t *testing.T) {
	tests := []struct{ text, want string }{
		{"distributed_type: FSDP\nnum_processes: 8\nfsdp_config: {fsdp_version: 2}\nparallelism_config:\n" +
			"  parallelism_config_dp_shard_size: 4\n  parallelism_config_tp_size: 2\n",
			"accelerate.yaml:5:3: the sizes of parallelism_config multiply to dp_replicate 1 · dp_shard 4 · tp 2 · " +
				"cp 1 = 8, but the given number of devices is 18: change one of them [Conflict]"},
		{"distributed_type: MEGATRON_LM\nnum_processes: 8\nmegatron_lm_config:\n  megatron_lm_tp_degree: 4\n",
			"accelerate.yaml:4:3: the given number of devices, 18, is no multiple of megatron_lm_tp_degree 4: change " +
				"one of them [Conflict]"},
	}
	for _, test := range tests {
		file := interop.File{Name: "accelerate.yaml", Data: []byte(test.text)}
		_, err := accelerate.Format.Import([]interop.File{file}, interop.Options{Devices: 18})
		if err == nil || err.Error() != test.want {
			t.Errorf("got:\n%v\nwant:\n%s", err, test.want)
		}
	}
}

func TestWrongFiles(t *testing.T) {
	const sizes = "distributed_type: FSDP\nnum_processes: 8\nfsdp_config: {fsdp_version: 2}\nparallelism_config:\n"
	const noRanks = "accelerate.yaml:5:3: dp_shard_size and cp_size are 1, so FSDP has no ranks to shard over: "
	tests := []struct{ text, want string }{
		{"num_processes: 8\n", "accelerate.yaml:1:1: distributed_type is missing; Accelerate needs it: NO, " +
			"MULTI_GPU, FSDP, " +
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
			noRanks + "use dp_shard_size 4 with dp_replicate_size 1 [Conflict]"},
		{sizes + "  parallelism_config_tp_size: 2\n",
			noRanks + "use dp_shard_size 4 with dp_replicate_size 1 [Conflict]"},
		{sizes + "  parallelism_config_dp_replicate_size: 2\n",
			noRanks + "use distributed_type MULTI_GPU, or dp_shard_size 8 with dp_replicate_size 1 [Conflict]"},
		{sizes + "  parallelism_config_tp_size: 8\n",
			noRanks + "use distributed_type MULTI_GPU, or a smaller tp_size with dp_shard_size 2 [Conflict]"},
		{strings.Replace(sizes, "8", "1", 1) + "  parallelism_config_tp_size: 1\n",
			noRanks + "use distributed_type NO [Conflict]"},
		{sizes + "  parallelism_config_tp_size: 3\n",
			"accelerate.yaml:2:16: num_processes is 8, but the sizes of parallelism_config multiply to " +
				"dp_replicate 1 · dp_shard 1 · tp 3 · cp 1 = 3 [Conflict]"},
		{sizes + "  parallelism_config_cp_size: 4\n",
			"accelerate.yaml:5:3: num_processes is 8, but the sizes of parallelism_config multiply to " +
				"dp_replicate 1 · dp_shard 1 · tp 1 · cp 4 = 4: use dp_shard_size 2 [Conflict]"},
		{sizes + "  parallelism_config_dp_replicate_size: 2\n  parallelism_config_cp_size: 2\n",
			"accelerate.yaml:5:41: dp_replicate_size is 2 with dp_shard_size 1; Accelerate refuses that with " +
				"tp_size or cp_size above 1: use dp_shard_size 4 and dp_replicate_size 1 [Conflict]"},
		{sizes + "  parallelism_config_dp_shard_size: 4\n  parallelism_config_tp_size: 4\n",
			"accelerate.yaml:2:16: num_processes is 8, but the sizes of parallelism_config multiply to " +
				"dp_replicate 1 · " +
				"dp_shard 4 · tp 4 · cp 1 = 16; did you mean 16? [Conflict]"},
		{"distributed_type: multi_gpu\nnum_processes: 8\n", "accelerate.yaml:1:19: distributed_type is " +
			"\"multi_gpu\"; Accelerate knows it in capital letters only; did you mean MULTI_GPU? [UnknownValue]"},
		{sizes + "  parallelism_config_dp_shard_size: 4\n  parallelism_config_sp_size: 2\n",
			"accelerate.yaml:6:31: sp_size is 2, which Accelerate leaves to DeepSpeed, and distributed_type is FSDP: " +
				"use cp_size, or distributed_type DEEPSPEED; did you mean 1? [Conflict]"},
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

// An edit that adds FSDP adds the wrap policy, whose default shards the model as one unit.
func TestPlansOfFSDPHaveAWrapPolicy(t *testing.T) {
	plan := ir.Plan{DP: 8, TP: 1, PP: 1, CP: 1, EP: 1, ETP: 1, Zero: 3, ZeroGroup: 8, MicroBatch: 1, MicroBatches: 1}
	target := &interop.Target{Plan: plan, Job: &spec.Job{}, Hardware: &costmodel.Cluster{}}
	for _, v := range accelerate.Format.Values(target) {
		if v.Key == "fsdp_config.fsdp_auto_wrap_policy" && v.Text == "TRANSFORMER_BASED_WRAP" {
			return
		}
	}
	t.Error("no policy")
}

// A file without a wrap policy gets a note that says what Accelerate does, and what to write. Policies whose units
// planc does not price are in the keys, as in TrainingArguments.
func TestWrapPolicies(t *testing.T) {
	const missing = "accelerate.yaml:2:14: fsdp_auto_wrap_policy is missing, which means NO_WRAP: all blocks are one " +
		"unit of FSDP, whose parameters are gathered at once. planc prices each block as a unit: write " +
		"fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP"
	const stops = "Accelerate 1.15 stops with an error, because fsdp_activation_checkpointing needs an " +
		"fsdp_auto_wrap_policy other than NO_WRAP"
	const others = " gathers other units than whole blocks, which planc prices: memory and overlap. Use " +
		"TRANSFORMER_BASED_WRAP"
	for _, c := range []struct{ config, note, key string }{
		{"{fsdp_version: 2}", missing, ""},
		{"{}", missing, ""},
		{"{fsdp_version: 2, auto_wrap_policy: no_wrap}", "", "NO_WRAP" + others},
		{"{fsdp_version: 2, fsdp_activation_checkpointing: true}", missing + "accelerate.yaml:2:63: " + stops, ""},
		{"{fsdp_version: 2, auto_wrap_policy: NO_WRAP, activation_checkpointing: true}",
			"accelerate.yaml:2:85: " + stops, "NO_WRAP" + others},
		{"{fsdp_activation_checkpointing: true}", missing, ""},
		{"{fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP}", "", ""},
		{"{fsdp_auto_wrap_policy: SIZE_BASED_WRAP}", "", "SIZE_BASED_WRAP" + others},
		{"{fsdp_sharding_strategy: NO_SHARD}", "", ""},
		{"{fsdp_sharding_strategy: NO_SHARD, fsdp_auto_wrap_policy: NO_WRAP}", "", ""},
	} {
		note, key := "", ""
		im := mustLoad(t, "distributed_type: FSDP\nfsdp_config: "+c.config+"\n")
		for _, n := range im.Notes {
			note += n.String()
		}
		for _, k := range im.Keys {
			if k.Use == interop.Unsupported {
				key += k.Note
			}
		}
		if note != c.note || key != c.key {
			t.Errorf("%s: %q, %q; want %q, %q", c.config, note, key, c.note, c.key)
		}
	}
	for _, test := range []struct{ config, pos, shown string }{{"{fsdp_auto_wrap_policy: BLOCKS}", "38", `"BLOCKS"`},
		{"{fsdp_auto_wrap_policy: [1]}", "38", "a list"},
		{"{fsdp_sharding_strategy: NO_SHARD, fsdp_auto_wrap_policy: foo}", "72", `"foo"`}} {
		_, err := load("distributed_type: FSDP\nfsdp_config: " + test.config + "\n")
		want := "accelerate.yaml:2:" + test.pos + ": fsdp_config.fsdp_auto_wrap_policy is " + test.shown +
			"; use one of TRANSFORMER_BASED_WRAP, SIZE_BASED_WRAP, NO_WRAP [UnknownValue]"
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A misspelt key is named also in a section that the kind of training does not read.
func TestMisspeltKeysOfSectionsWithoutEffect(t *testing.T) {
	const text = "distributed_type: MULTI_GPU\nnum_processes: 8\nnum_machines: 1\nfsdp_config:\n" +
		"  fsdp_sharding_stratgy: FULL_SHARD\n  fsdp_version: 1\n"
	im := mustLoad(t, text)
	var notes []string
	for _, n := range im.Notes {
		if n.IsWarning {
			notes = append(notes, n.String())
		}
	}
	want := []string{"accelerate.yaml:5:3: Accelerate does not know fsdp_config.fsdp_sharding_stratgy and ignores " +
		"it; did you mean fsdp_sharding_strategy?"}
	if !slices.Equal(notes, want) {
		t.Errorf("%q, want %q", notes, want)
	}
	for _, k := range im.Keys {
		if k.Name == "fsdp_config.fsdp_version" && (k.Use != interop.IgnoredByTool || k.Note != "distributed_type is "+
			"MULTI_GPU") {
			t.Errorf("%+v", k)
		}
	}
}
