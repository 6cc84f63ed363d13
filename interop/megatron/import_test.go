package megatron

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/planner"
)

// importText imports a file's text.
func importText(t *testing.T, text string, o interop.Options) *interop.Import {
	t.Helper()
	im, err := Import([]interop.File{{Name: "run.sh", Data: []byte(text)}}, o)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return im
}

// values returns the values of an import's fields by path, without those that are defaults.
func values(im *interop.Import) map[string]string {
	out := map[string]string{}
	for _, f := range im.Fields {
		out[f.Path] = f.Value
	}
	return out
}

// load reads an import's job on a cluster, which fails the test if planc refuses it.
func load(t *testing.T, im *interop.Import, cluster string) *planner.Question {
	t.Helper()
	text := string(im.JobText()) + "cluster: " + cluster + "\n"
	q, err := planner.Load("job.yaml", func(string) ([]byte, error) { return []byte(text), nil })
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return q
}

// arguments of a small model, to which tests add.
const small = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 8 --hidden-size 1024 " +
	"--num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 2 " +
	"--global-batch-size 64 --bf16 --tokenizer-type GPT2BPETokenizer "

func TestImportOfAScript(t *testing.T) {
	data, err := os.ReadFile("testdata/llama70.sh")
	if err != nil {
		t.Fatal(err)
	}
	im := importText(t, string(data), interop.Options{})
	got := values(im)
	for path, want := range map[string]string{
		"model.model_type": "llama", "model.num_hidden_layers": "80", "model.hidden_size": "8192",
		"model.intermediate_size": "28672", "model.num_attention_heads": "64", "model.num_key_value_heads": "8",
		"model.vocab_size": "128256", "model.tie_word_embeddings": "false", "model.mlp_bias": "false",

		"train.engine": "megatron", "train.seq_len": "8192", "train.global_batch": "128", "train.precision": "bf16",
		"train.optimizer.lr": "1.5e-4", "train.steps": "1000", "plan.tp": "4", "plan.pp": "4", "plan.cp": "1",
		"plan.sp":   "true",
		"plan.zero": "1", "plan.zero_group": "4", "plan.micro_batch": "1", "plan.schedule": "1f1b",
		"plan.recompute": "none", "plan.axis_order": "[tp, dp, pp]",
	} {
		if got[path] != want {
			t.Errorf("%s is %q, want %q", path, got[path], want)
		}
	}
	if im.Devices != 64 || im.DevicesPerNode != 8 {
		t.Errorf("%d devices, %d a node", im.Devices, im.DevicesPerNode)
	}
	if diff := cmp.Diff(map[string]string{"CUDA_DEVICE_MAX_CONNECTIONS": "1"}, im.Env); diff != "" {
		t.Error(diff)
	}
	f, _ := im.Field("plan.tp")
	if f.Pos.String() != "run.sh:44:5" || f.From != "--tensor-model-parallel-size" {
		t.Errorf("plan.tp comes from %+v", f)
	}
	if n := load(t, im, "8xdgx-h100").Config.Layers; n != 80 {
		t.Errorf("%d layers", n)
	}
}

// Each line adds options to a small model, and says which fields follow.
func TestPlanOfOptions(t *testing.T) {
	for _, c := range []struct{ options, want string }{
		{"", "tp 1, pp 1, zero 0, zero_group 1, recompute none, schedule none, vpp 1, cp_kind none, " +
			"axis_order [tp, dp]"},
		{"--use-distributed-optimizer", "zero 1, zero_group 8"},
		{"--use-distributed-optimizer --num-distributed-optimizer-instances 2", "zero 1, zero_group 4"},
		{"--use-distributed-optimizer --tensor-model-parallel-size 8", "zero 1, zero_group 1, sp false"},
		{"--context-parallel-size 2", "cp 2, cp_kind ring, axis_order [tp, cp, dp]"},
		{"--context-parallel-size 2 --cp-comm-type a2a", "cp_kind heads"},
		{"--context-parallel-size 2 --cp-comm-type all_gather", "cp_kind gather"},
		{"--tensor-model-parallel-size 2 --sequence-parallel", "tp 2, sp true"},
		{"--sequence-parallel", "sp false"},
		{"--pipeline-model-parallel-size 4", "pp 4, schedule 1f1b, axis_order [tp, dp, pp]"},
		{"--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2", "vpp 2, schedule interleaved"},
		{"--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 4", "vpp 4"},
		{"--pipeline-model-parallel-size 2 --decoder-first-pipeline-num-layers 3", "stage_layers [3, 5]"},
		{"--pipeline-model-parallel-size 4 --decoder-last-pipeline-num-layers 2", "stage_layers [2, 2, 2, 2]"},
		{"--pipeline-model-parallel-size 2 --num-layers 6 --account-for-embedding-in-pipeline-split " +
			"--account-for-loss-in-pipeline-split", "stage_layers [3, 3]"},
		{"--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*3|t*2|(t|)*1t*2,L'",
			"vpp 2, schedule interleaved, stage_layers [3, 2, 1, 2]"},
		{"--recompute-activations", "recompute selective, recompute_layers 8"},
		{"--recompute-granularity full --recompute-method uniform --recompute-num-layers 2",
			"recompute full, recompute_layers 8, recompute_every 2"},
		{"--recompute-granularity full --recompute-method block --recompute-num-layers 3 " +
			"--tensor-model-parallel-size 2 --distribute-saved-activations",
			"recompute full, recompute_layers 3, recompute_every 1, recompute_split true"},
		{"--use-megatron-fsdp", "zero 3, zero_group 8"},
		{"--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads", "zero 2"},
		{"--use-tp-pp-dp-mapping --pipeline-model-parallel-size 2", "axis_order [tp, dp, pp]"},
	} {
		im, err := Import([]interop.File{{Name: "run.sh", Data: []byte(small + c.options)}}, interop.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.options, err)
			continue
		}
		got := values(im)
		for path, want := range wanted(c.want) {
			if got["plan."+path] != want {
				t.Errorf("%s: %s is %q, want %q", c.options, path, got["plan."+path], want)
			}
		}
		load(t, im, "8xh100")
	}
}

// wanted reads "tp 2, stage_layers [3, 5]".
func wanted(text string) map[string]string {
	out := map[string]string{}
	for text != "" {
		key, rest, _ := strings.Cut(text, " ")
		end := strings.Index(rest, ", ")
		if strings.HasPrefix(rest, "[") {
			end = strings.IndexByte(rest, ']') + 1
		}
		if end < 0 || end >= len(rest) {
			out[key] = rest
			break
		}
		out[key], text = rest[:end], strings.TrimPrefix(rest[end:], ", ")
	}
	return out
}

func TestModelOfOptions(t *testing.T) {
	const rotary = "--position-embedding-type rope --normalization RMSNorm --swiglu --disable-bias-linear " +
		"--untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0 "
	for _, c := range []struct{ options, want string }{
		{"", "gpt2"}, {rotary, "llama"}, {rotary + "--add-qkv-bias", "qwen2"},
		{rotary + "--qk-layernorm --kv-channels 128", "qwen3"},
		{"--use-rotary-position-embeddings --rotary-percent 0.25", "gpt_neox"},
		{rotary + "--num-experts 8 --moe-router-topk 2", "mixtral"},
		{rotary + "--num-experts 8 --qk-layernorm --moe-ffn-hidden-size 512 --expert-model-parallel-size 4",
			"qwen3_moe"},
		{rotary + "--num-experts 8 --moe-shared-expert-intermediate-size 1024", "qwen2_moe"},
		{rotary + "--num-experts 8 --moe-router-topk 2 --moe-shared-expert-intermediate-size 1024 " +
			"--moe-ffn-hidden-size 512 --multi-latent-attention --moe-router-score-function sigmoid " +
			"--moe-router-enable-expert-bias --kv-lora-rank 128 --moe-layer-freq ([0]*1+[1]*7)", "deepseek_v3"},
		{"--group-query-attention --num-query-groups 4 --squared-relu", "llama"},
		{"--merge-file gpt2-merges.txt", "gpt2"},
	} {
		script := small + strings.NewReplacer("(", "'(", ")", ")'").Replace(c.options)
		im := importText(t, script, interop.Options{})
		if got := values(im)["model.model_type"]; got != c.want {
			t.Errorf("%s: %s, want %s", c.options, got, c.want)
			continue
		}
		q := load(t, im, "8xh100")
		if q.Config.Layers != 8 || q.Config.Hidden != 1024 || q.Config.Heads != 16 || q.Config.Vocab != 50257 {
			t.Errorf("%s: %+v", c.options, q.Config)
		}
	}
}

// The list in a log gives the same job as the script that printed it.
func TestImportOfALog(t *testing.T) {
	log := `[rank0]: using world size: 8
0: ------------------------ arguments ------------------------
0:   bf16 ............................................ True
0:   data_parallel_size .............................. 2
0:   global_batch_size ............................... 64
0:   hidden_size ..................................... 1024
0:   max_position_embeddings ......................... 2048
0:   micro_batch_size ................................ 2
0:   num_attention_heads ............................. 16
0:   num_layers ...................................... 8
0:   encoder_num_layers .............................. 8
0:   recompute_granularity ........................... full
0:   recompute_method ................................ uniform
0:   recompute_num_layers ............................ 2
0:   recompute_modules ............................... ['core_attn']
0:   seq_length ...................................... 2048
0:   sequence_parallel ............................... True
0:   tensor_model_parallel_size ...................... 4
0:   tokenizer_type .................................. GPT2BPETokenizer
0:   use_distributed_optimizer ....................... True
0:   world_size ...................................... 8
0: -------------------- end of arguments ---------------------
`
	script := small + "--tensor-model-parallel-size 4 --sequence-parallel --use-distributed-optimizer " +
		"--recompute-granularity full --recompute-method uniform --recompute-num-layers 2"
	got, want := importText(t, log, interop.Options{}), importText(t, script, interop.Options{})
	if diff := cmp.Diff(values(want), values(got)); diff != "" {
		t.Error(diff)
	}
	if got.Devices != 8 {
		t.Errorf("%d devices", got.Devices)
	}
}

// What Megatron-LM computes before it prints its arguments is not taken for what the user has set. The lines are those
// of its own parser (megatron-core 0.19.2) for a model without experts with --tensor-model-parallel-size 4.
func TestComputedValuesOfALog(t *testing.T) {
	log := `------------------------ arguments ------------------------
  bf16 ............................................ True
  end_weight_decay ................................ 0.01
  expert_tensor_parallel_num_weight_shards ........ 4
  expert_tensor_parallel_size ..................... 4
  global_batch_size ............................... 64
  hidden_size ..................................... 1024
  max_position_embeddings ......................... 2048
  micro_batch_size ................................ 2
  num_attention_heads ............................. 16
  num_experts ..................................... None
  num_layers ...................................... 8
  seq_length ...................................... 2048
  start_weight_decay .............................. 0.01
  tensor_model_parallel_size ...................... 4
  tensor_parallel_num_weight_shards ............... 4
  weight_decay .................................... 0.01
  world_size ...................................... 8
-------------------- end of arguments ---------------------
`
	im := importText(t, log, interop.Options{})
	if got := values(im); got["plan.etp"] != "1" || got["plan.tp"] != "4" {
		t.Errorf("%v", got)
	}
	uses := map[string]interop.Use{}
	for _, k := range im.Keys {
		uses[k.Name] = k.Use
	}
	for _, name := range []string{"end_weight_decay", "expert_tensor_parallel_num_weight_shards",
		"expert_tensor_parallel_size", "start_weight_decay", "tensor_parallel_num_weight_shards"} {
		if uses[name] != interop.NoEffect {
			t.Errorf("%s: %q", name, uses[name])
		}
	}
	log = strings.Replace(log, "end_weight_decay ................................ 0.01",
		"end_weight_decay ................................ 0.1", 1)
	for _, k := range importText(t, log, interop.Options{}).Keys {
		if k.Name == "end_weight_decay" && k.Use != interop.Unsupported {
			t.Errorf("another %s: %q", k.Name, k.Use)
		}
	}
}

// Arguments without a launcher, over several lines.
func TestImportOfArguments(t *testing.T) {
	_, line, _ := strings.Cut(small, ".py ")
	im := importText(t, strings.ReplaceAll(line, " --", "\n  --"), interop.Options{Devices: 16})
	if got := values(im); got["plan.micro_batch"] != "2" || got["train.global_batch"] != "64" {
		t.Errorf("%v", got)
	}
}

func TestEveryKeyIsAccountedFor(t *testing.T) {
	im := importText(t, small+"--log-interval 5 --no-such-thing-exists x --optimizer-cpu-offload --seed 3 --seed 4 "+
		"$EXTRA", interop.Options{})
	var got []string
	for _, k := range im.Keys {
		if k.Use != interop.Taken {
			got = append(got, k.Name+": "+string(k.Use)+": "+k.Note)
		}
	}
	want := []string{"--log-interval: no effect on the plan: ",
		"--no-such-thing-exists: not supported by planc: is no option of megatron-core 0.19.2",
		"--optimizer-cpu-offload: not supported by planc: offload: keeps the optimizer state without the gradients " +
			"in the host's memory",
		"--seed: ignored by that tool: a later --seed replaces it",
		"$EXTRA: not supported by planc: $EXTRA has no value here: type --define EXTRA=VALUE"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRecognize(t *testing.T) {
	for text, want := range map[string]interop.Confidence{small: interop.Certain, "{}": interop.No,
		"x --use-distributed-optimizer-too": interop.No, "x --use-distributed-optimizer": interop.Likely,
		"python pretrain_gpt.py": interop.Possible} {
		if got := Recognize(interop.File{Data: []byte(text)}); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// The number of virtual stages that --num-layers-per-virtual-pipeline-stage says follows from the model that the user
// gives instead of the script's.
func TestChunksOfAGivenModel(t *testing.T) {
	const script = small + "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2"
	column := strings.Index(script, "--num-layers-per") + 1
	for layers, want := range map[int]string{0: "2", 8: "2", 32: "8", 12: "3",
		26: fmt.Sprintf("run.sh:1:%d: --num-layers-per-virtual-pipeline-stage 2: 26 layers in 2 stages do not split "+
			"into chunks of 2: use 1 or 13 [BadOption]", column)} {
		o := interop.Options{}
		if layers > 0 {
			o.Model = &spec.Config{Layers: layers}
		}
		im, err := Import([]interop.File{{Name: "run.sh", Data: []byte(script)}}, o)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = values(im)["plan.vpp"]
		}
		if got != want {
			t.Errorf("%d layers: %s, want %s", layers, got, want)
		}
	}
}

// FP8 without BF16 keeps everything else in FP32, which is warned of.
func TestFP8AloneIsWarnedOf(t *testing.T) {
	for options, want := range map[string]bool{"--fp8-format hybrid": true, "--fp8-format hybrid --bf16": false} {
		file := textFile("run.sh", "pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 "+
			"--seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 1 "+options+"\n")
		im, err := Import([]interop.File{file}, interop.Options{})
		if err != nil {
			t.Fatal(err)
		}
		const text = "--fp8-format without --bf16 keeps parameters, gradients and activations in FP32, and planc " +
			"prices them in BF16: add --bf16"
		got := slices.ContainsFunc(im.Notes, func(n interop.Note) bool { return n.IsWarning && n.Text == text })
		if got != want {
			t.Errorf("%s: %v", options, im.Notes)
		}
	}
}
