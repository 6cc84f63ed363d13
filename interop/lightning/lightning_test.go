package lightning

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	_ "github.com/planc-dev/planc/golden/quickfuzz"
	"github.com/planc-dev/planc/interop"
)

func read(text string, devices int) (*interop.Import, error) {
	return Format.Import([]interop.File{{Name: "config.yaml", Data: []byte(text)}}, interop.Options{Devices: devices})
}

// fields returns some fields of the job of an import.
func fields(im *interop.Import, paths string) string {
	var out []string
	for _, path := range strings.Fields(paths) {
		f, _ := im.Field(path)
		out = append(out, f.Value)
	}
	return strings.Join(out, " ")
}

const plan = "train.engine plan.dp plan.tp plan.zero plan.zero_group plan.micro_batch plan.micro_batches " +
	"plan.recompute " +
	"train.precision.compute train.global_batch"

// The strategies are read as Lightning runs them, by name or by class.
func TestStrategies(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"trainer: {devices: 8, precision: bf16-mixed}\ndata: {init_args: {batch_size: 4}}",
			"fsdp 8 1 0  4 1 none bf16 32"},
		{"trainer: {devices: 8, num_nodes: 2, strategy: fsdp, accumulate_grad_batches: 2, precision: 32}\n" +
			"data: {batch_size: 1}", "fsdp 16 1 3 16 1 2 none f32 32"},
		{"trainer:\n  devices: [0, 1, 2, 3]\n  num_nodes: 2\n  strategy:\n    class_path: FSDPStrategy\n    " +
			"init_args:\n" +
			"      sharding_strategy: HYBRID_SHARD\n      activation_checkpointing_policy: [m.Block]\n",
			"fsdp 8 1 3 4  1 full f32 "},
		{"trainer:\n  devices: 8\n  strategy:\n    class_path: lightning.pytorch.strategies.FSDPStrategy\n    " +
			"init_args:\n" +
			"      sharding_strategy: SHARD_GRAD_OP\n      device_mesh: [4, 2]\n", "fsdp 8 1 2 2  1 none f32 "},
		{"trainer: {devices: 8, strategy: deepspeed_stage_1, precision: 16-mixed}", "deepspeed 8 1 1 8  1 none fp16 "},
		{"trainer: {devices: 8, strategy: deepspeed}", "deepspeed 8 1 2 8  1 none f32 "},
		{"trainer: {devices: 8, strategy: {class_path: DeepSpeedStrategy, init_args: {stage: 3}}}",
			"deepspeed 8 1 3 8  1 none f32 "},
		{"trainer: {devices: 8, strategy: {class_path: DeepSpeedStrategy, init_args: {zero_optimization: false}}}",
			"deepspeed 8 1 0   1 none f32 "},
		{"trainer: {devices: 8, num_nodes: 4, strategy: {class_path: ModelParallelStrategy}}",
			"fsdp 4 8 3 4  1 none f32 "},
		{"trainer: {devices: 8, strategy: {class_path: ModelParallelStrategy, init_args: {tensor_parallel_size: 2}}}",
			"fsdp 4 2 3 4  1 none f32 "},
		{"trainer: {devices: auto, strategy: ddp}", "fsdp  1 0   1 none f32 "},
	} {
		im, err := read(c.text, 0)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := fields(im, plan); got != c.want {
			t.Errorf("%s\n%q, want %q", c.text, got, c.want)
		}
	}
}

// PyTorch's wrapper gets the arguments that FSDPStrategy does not have. A probably misspelt one is a warning.
func TestMisspeltArgumentsOfAStrategy(t *testing.T) {
	const text = "trainer:\n  strategy:\n    class_path: FSDPStrategy\n    init_args:\n      "
	for argument, want := range map[string]string{
		"sharding_stategy: SHARD_GRAD_OP": "config.yaml:5:7: sharding_stategy is no argument of Lightning's " +
			"strategy, which passes it to PyTorch's wrapper; did you mean sharding_strategy?",
		"limit_all_gathers: true": "",
	} {
		im, err := read(text+argument+"\n", 8)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, n := range im.Notes {
			if n.IsWarning {
				got += n.String()
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", argument, got, want)
		}
	}
}

// An option that is off changes nothing.
func TestOptionsThatAreOff(t *testing.T) {
	im, err := read("trainer:\n  strategy:\n    class_path: FSDPStrategy\n    init_args:\n"+
		"      cpu_offload: false\n      activation_checkpointing_policy: null\n", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range im.Keys {
		if k.Use == interop.Unsupported {
			t.Errorf("%+v", k)
		}
	}
	if got := fields(im, "plan.recompute"); got != "none" {
		t.Errorf("recompute %s", got)
	}
}

// Common errors are reported at their key, with what is allowed and what to type.
func TestWrongFiles(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		devices int
		want    string
	}{
		"a misspelt argument": {"trainer:\n  devices: 8\n  strategi: ddp\n", 0,
			"config.yaml:3:3: Lightning 2.6 has no argument trainer.strategi; did you mean strategy? [UnknownKey]"},
		"a misspelt strategy": {"trainer:\n  strategy: deepspeed_stage3\n", 0,
			"config.yaml:2:13: trainer.strategy is \"deepspeed_stage3\"; use one of auto, ddp, " +
				"ddp_find_unused_parameters_false, ddp_find_unused_parameters_true, ddp_spawn, ddp_fork, " +
				"ddp_notebook, " +
				"fsdp, fsdp_cpu_offload, deepspeed, deepspeed_stage_1, deepspeed_stage_2, deepspeed_stage_2_offload, " +
				"deepspeed_stage_3, deepspeed_stage_3_offload, deepspeed_stage_3_offload_nvme, single_device, " +
				"model_parallel; did you mean deepspeed_stage_3? [UnknownValue]"},
		"an unknown class": {"trainer:\n  strategy:\n    class_path: my.Strategy\n", 0,
			"config.yaml:3:17: trainer.strategy.class_path is \"my.Strategy\"; planc knows DDPStrategy, " +
				"FSDPStrategy, " +
				"DeepSpeedStrategy, ModelParallelStrategy and SingleDeviceStrategy of lightning.pytorch.strategies " +
				"[UnknownValue]"},
		"an unknown sharding strategy": {"trainer:\n  strategy:\n    class_path: FSDPStrategy\n    init_args:\n" +
			"      sharding_strategy: FULL_SHARDING\n", 0,
			"config.yaml:5:26: trainer.strategy.init_args.sharding_strategy is \"FULL_SHARDING\"; use one of " +
				"FULL_SHARD, " +
				"SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, _HYBRID_SHARD_ZERO2; did you mean FULL_SHARD? [UnknownValue]"},
		"an argument that the strategy does not have": {"trainer:\n  strategy:\n    class_path: DeepSpeedStrategy\n" +
			"    init_args:\n      stages: 2\n", 0,
			"config.yaml:5:7: Lightning 2.6 has no argument trainer.strategy.init_args.stages; did you mean stage? " +
				"[UnknownKey]"},
		"a stage that does not exist": {"trainer:\n  strategy:\n    class_path: DeepSpeedStrategy\n    init_args: " +
			"{stage: 4}\n", 0,
			"config.yaml:4:24: trainer.strategy.init_args.stage is 4; it must be 0, 1, 2 or 3 [OutOfRange]"},
		"devices that contradict the cluster": {"trainer:\n  devices: 4\n  num_nodes: 2\n", 16,
			"config.yaml:2:12: trainer.devices 4 × trainer.num_nodes 2 are 8 devices, not 16: change one of them, " +
				"or the " +
				"number of devices that you give [Conflict]"},
		"a wrong key below fit": {"seed_everything: 1\nfit:\n  trainer:\n    num_nodes: 0\n", 0,
			"config.yaml:4:16: trainer.num_nodes is 0; it must be at least 1 [OutOfRange]"},
		"a misspelt argument below fit": {"fit:\n  trainer:\n    strategi: ddp\n", 0,
			"config.yaml:3:5: Lightning 2.6 has no argument trainer.strategi; did you mean strategy? [UnknownKey]"},
		"a subcommand that does not train": {"validate:\n  trainer:\n    devices: 8\n", 0,
			"config.yaml:1:1: the file has keys of validate and none of fit, which trains: give the file that you " +
				"give to the subcommand fit [NoConfig]"},
		"no nodes": {"trainer:\n  num_nodes: 0\n", 0,
			"config.yaml:2:14: trainer.num_nodes is 0; it must be at least 1 [OutOfRange]"},
		"an unknown precision": {"trainer:\n  precision: bf16-mix\n", 0,
			"config.yaml:2:14: trainer.precision is \"bf16-mix\"; use one of bf16-mixed, 16-mixed, 32-true, 64-true, " +
				"bf16-true, 16-true, transformer-engine, transformer-engine-float16, bf16, 16, 32, 64; did you mean " +
				"bf16-mixed? [UnknownValue]"},
		"sizes that are not the devices": {"trainer:\n  devices: 8\n  strategy:\n    class_path: " +
			"ModelParallelStrategy\n" +
			"    init_args: {tensor_parallel_size: 4, data_parallel_size: 4}\n", 0,
			"config.yaml:5:39: trainer.strategy.init_args.tensor_parallel_size 4 × " +
				"trainer.strategy.init_args.data_parallel_size 4 must be the 8 devices: " +
				"trainer.strategy.init_args.tensor_parallel_size: 2 [Conflict]"},
		"a mesh with one dimension": {"trainer:\n  strategy:\n    class_path: FSDPStrategy\n    init_args: " +
			"{device_mesh: [8]}\n", 0,
			"config.yaml:4:30: trainer.strategy.init_args.device_mesh must be a list of two numbers: replicas, and " +
				"ranks " +
				"that share one copy [WrongType]"},
	} {
		_, err := read(c.text, c.devices)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

// A strategy that is a name becomes a mapping when an argument is set, and back. Comments stay.
func TestEdits(t *testing.T) {
	im, err := read("# ours\ntrainer:\n  devices: 8 # all\n  strategy: fsdp\nmodel:\n  class_path: my.Model\n", 0)
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		v    interop.Value
		want string
	}{
		{interop.Value{Key: shardingKey, Text: "SHARD_GRAD_OP"}, "# ours\ntrainer:\n  devices: 8 # all\n  strategy: " +
			"{class_path: lightning.pytorch.strategies.FSDPStrategy, init_args: " +
			"{sharding_strategy: SHARD_GRAD_OP}}\nmodel:\n  class_path: my.Model\n"},
		{interop.Value{Key: strategyKey, Text: "ddp"}, "# ours\ntrainer:\n  devices: 8 # all\n  strategy: " +
			"ddp\nmodel:\n" +
			"  class_path: my.Model\n"},
	}
	for _, s := range steps {
		if err := im.Doc.Set(s.v); err != nil {
			t.Fatalf("%+v: %v", s.v, err)
		}
		if diff := cmp.Diff(s.want, string(im.Doc.Bytes())); diff != "" {
			t.Errorf("%+v: %s", s.v, diff)
		}
	}
}

// subcommands is a file with keys of several subcommands.
const subcommands = `seed_everything: 1
validate:
  trainer: {devices: 1}
  ckpt_path: best.ckpt
fit:
  seed_everything: 7
  trainer:
    devices: 8 # all
    strategy: fsdp
    precision: bf16-mixed
  data: {batch_size: 4}
test:
  trainer: {devices: 2, strategy: ddp}
`

// The keys below fit are read, and those of other subcommands have no effect.
func TestKeysBelowFit(t *testing.T) {
	im, err := read(subcommands, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fields(im, plan+" train.seed"), "fsdp 8 1 3 8 4 1 none bf16 32 7"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	var keys []string
	for _, k := range im.Keys {
		if k.Pos.Line > 0 {
			keys = append(keys, fmt.Sprintf("%d %s: %s %s", k.Pos.Line, k.Name, k.Use, k.Note))
		}
	}
	want := []string{
		"1 seed_everything: no effect on the plan not below fit",
		"3 validate.trainer.devices: no effect on the plan not below fit",
		"4 validate.ckpt_path: no effect on the plan not below fit",
		"6 seed_everything: taken ", "8 trainer.devices: taken ", "9 trainer.strategy: taken ",
		"10 trainer.precision: taken ", "11 data.batch_size: taken ",
		"13 test.trainer.devices: no effect on the plan not below fit",
		"13 test.trainer.strategy: no effect on the plan not below fit",
	}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Error(diff)
	}
}

// Edits of a file with subcommands change the keys below fit.
func TestEditsBelowFit(t *testing.T) {
	im, err := read(subcommands, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []interop.Value{{Key: shardingKey, Text: "SHARD_GRAD_OP"}, {Key: accumulateKey, Text: "2"},
		{Key: shortBatchKey, Text: "2"}, {Key: precisionKey, IsAbsent: true}} {
		if err := im.Doc.Set(v); err != nil {
			t.Fatalf("%+v: %v", v, err)
		}
	}
	want := strings.NewReplacer("    strategy: fsdp\n    precision: bf16-mixed\n",
		"    strategy: {class_path: lightning.pytorch.strategies.FSDPStrategy, init_args: "+
			"{sharding_strategy: SHARD_GRAD_OP}}\n    accumulate_grad_batches: 2\n", "batch_size: 4",
		"batch_size: 2").Replace(subcommands)
	if diff := cmp.Diff(want, string(im.Doc.Bytes())); diff != "" {
		t.Error(diff)
	}
}

// Import never panics, an edit says what it sets, and an edit of nothing keeps the bytes.
func FuzzImport(f *testing.F) {
	f.Add("trainer: {devices: 8, strategy: fsdp}", 8)
	f.Add("trainer:\n  strategy:\n    class_path: FSDPStrategy\n    init_args: {device_mesh: [2, x]}\n", 0)
	f.Add(subcommands, 0)
	f.Add("trainer:\n  devices: [0, 1]\n  num_nodes: 3\ndata: {batch_size: -1}\n", 6)
	f.Fuzz(func(t *testing.T, text string, devices int) {
		Format.Recognize(interop.File{Name: "config.yaml", Data: []byte(text)})
		im, err := read(text, devices)
		if err != nil {
			return
		}
		if string(im.Doc.Bytes()) != text {
			t.Fatal("an unedited file has changed")
		}
		im.JobText()
		v := interop.Value{Key: shardingKey, Text: "HYBRID_SHARD"}
		if err := im.Doc.Set(v); err != nil {
			return
		}
		if got, ok := im.Doc.Get(v.Key); !ok || got != v.Text {
			t.Fatalf("set %s to %s, got %q", v.Key, v.Text, got)
		}
		if err := im.Doc.Remove(v.Key); err != nil {
			return
		}
		if _, ok := im.Doc.Get(v.Key); ok {
			t.Fatal("a removed key is there")
		}
	})
}

// A strategy's name becomes a mapping at its place, with the user's comment.
func TestNamesAreExpandedInPlace(t *testing.T) {
	const text = "trainer:\n  strategy: fsdp   # because of memory\n  devices: 8\n  precision: bf16-mixed\n"
	im, err := read(text, 8)
	if err != nil {
		t.Fatal(err)
	}
	if err := im.Doc.Set(interop.Value{Key: shardingKey, Text: "SHARD_GRAD_OP"}); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(text, "fsdp ", "{class_path: "+strategiesPackage+
		"FSDPStrategy, init_args: {sharding_strategy: SHARD_GRAD_OP}} ", 1)
	if got := string(im.Doc.Bytes()); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
