package spec

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	_ "github.com/planc-dev/planc/golden/quickfuzz"
	"github.com/planc-dev/planc/ir"
)

// files is a read function over texts.
type files map[string]string

func (f files) read(name string) ([]byte, error) {
	if s, ok := f[filepath.ToSlash(name)]; ok {
		return []byte(s), nil
	}
	return nil, errors.New("no such file")
}

func load(t *testing.T, job string, sets ...string) *Job {
	t.Helper()
	j, err := tryLoad(job, sets...)
	if err != nil {
		t.Fatalf("%s\n%v", job, err)
	}
	return j
}

func tryLoad(job string, sets ...string) (*Job, error) {
	var os []Override
	for _, s := range sets {
		os = append(os, SetFlag(s))
	}
	return Load("job.yaml", files{"job.yaml": job}.read, os...)
}

const small = "model: gpt2-124m\ntrain: {seq_len: 1024, global_batch: 480}\ncluster: 4xcpu\n"

func TestExamplesLoadAndCompile(t *testing.T) {
	for _, dir := range []string{"opticks", "gpt2"} {
		j, err := Load(filepath.Join("..", "..", "examples", dir, "planc.yaml"), os.ReadFile)
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		j.SetDevice("cpu")
		if err := CheckCompile(j); err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		second, err := Load(filepath.Join("..", "..", "examples", dir, "planc.yaml"), func(string) ([]byte, error) {
			return j.YAML(), nil
		})
		if err != nil {
			t.Errorf("%s: printed, it does not load: %v\n%s", dir, err, j.YAML())
			continue
		}
		second.SetDevice("cpu")
		if got, want := string(second.Decides()), string(j.Decides()); got != want {
			t.Errorf("%s: printed, it decides\n%s\nnot\n%s", dir, got, want)
		}
		if !reflect.DeepEqual(second.Train, j.Train) || !reflect.DeepEqual(second.Data, j.Data) {
			t.Errorf("%s: printed, it is another job:\n%s", dir, j.YAML())
		}
	}
}

func TestDefaults(t *testing.T) {
	j := load(t, small)
	want := defaults().Train
	want.SeqLen, want.GlobalBatch, want.Optimizer.WeightDecay = 1024, 480, 0.1
	if !reflect.DeepEqual(j.Train, want) {
		t.Errorf("train is %+v", j.Train)
	}
	if j.Name != "job" || j.Cluster != (ClusterRef{Node: "cpu", Count: 4}) || j.Config.DropAttn != 0.1 {
		t.Errorf("name %s, cluster %+v, config %+v", j.Name, j.Cluster, j.Config)
	}
	for arch, want := range map[string]string{"cpu": "f32", "sm_70": "fp16", "sm_75": "fp16", "sm_80": "bf16",
		"sm_90a": "bf16"} {
		j := load(t, small)
		j.SetDevice(arch)
		if j.Train.Precision != Presets[want] {
			t.Errorf("%s: %+v", arch, j.Train.Precision)
		}
	}
}

func TestPresetBytes(t *testing.T) {
	for name, want := range map[string]int{"f64": 32, "f32": 16, "bf16": 18, "fp16": 18, "fp8": 18} {
		if got := Presets[name].BytesPerParam(); got != want {
			t.Errorf("%s: %d bytes, want %d", name, got, want)
		}
	}
}

func TestWholeJob(t *testing.T) {
	j := load(t, `
name: gpt2-owt
model: {base: gpt2-124m, n_layer: 2}
data:
  root: ${DATA}
  train: [data/train.txt, {path: more.txt, weight: 0.5}]
  valid: val.txt
  tokenizer: bytes
train:
  seq_len: 1K
  global_batch_tokens: 480K
  tokens: 300B
  precision: {compute: bf16, grads: bf16, loss_scale: 128}
  init: random
  optimizer: {kind: sgd, lr: 1e-1, momentum: 0.9, clip_norm: 0}
  schedule: {kind: wsd, warmup: 2000, decay: 100, min_lr: 6e-5}
  dropout: 0.2
  eval: {every: 250, batches: 20, sample: "The light"}
  checkpoint: {every: 1000}
  on_nonfinite: stop
cluster: {node: lab/a.yaml, nodes: 4, devices: 2}
objective: {kind: throughput, headroom: 0.05}
plan: {tp: [1, 2], dp: 4, sp: false, zero: 1, pp: 1, recompute: none}
`, "train.seq_len=1000", "name=other")
	tr := j.Train
	if j.Name != "other" || tr.GlobalBatch != 480 || tr.Tokens != 300e9 || tr.Optimizer.WeightDecay != 0 ||
		tr.Optimizer.LR != 0.1 {
		t.Errorf("%+v", tr)
	}
	if want := (Precision{"bf16", "bf16", "bf16", "f32", "f32", "f32", "", LossScale{Kind: "static",
		Init: 128}}); tr.Precision != want {
		t.Errorf("precision %+v", tr.Precision)
	}
	if want := (Data{"${DATA}", Sources{{"data/train.txt", 1}, {"more.txt", 0.5}},
		Valid{Files: Sources{{"val.txt", 1}}}, "", "", "", false, "bytes"}); !reflect.DeepEqual(j.Data, want) {
		t.Errorf("data %+v", j.Data)
	}
	if j.Config.Layers != 2 || j.Config.Name != "gpt2-124m+" || j.Config.DropEmbd != 0.2 {
		t.Errorf("config %+v", j.Config)
	}
	if want := (ClusterRef{Node: filepath.Join("lab", "a.yaml"), Nodes: 4, Devices: 2}); j.Cluster != want {
		t.Errorf("cluster %+v", j.Cluster)
	}
	plan := ir.SerialPlan(2, 4, ir.FullPrecision(ir.F32))
	if k := j.Plan.Violates(plan); k != "dp" {
		t.Errorf("the serial plan violates %q", k)
	}
	plan.DP, plan.TP, plan.Zero = 4, 2, 1
	if j.Plan.Violates(plan) != "" {
		t.Errorf("the plan violates %q", j.Plan.Violates(plan))
	}
	if p := j.Pos("train.optimizer.lr"); p.Line != 15 || p.Column != 30 {
		t.Errorf("lr is at %v", p)
	}
	if p := j.Pos("train.seq_len").String(); p != "--set train.seq_len=1000" {
		t.Errorf("seq_len is at %v", p)
	}
}

func TestOverridesReachIntoShortForms(t *testing.T) {
	model, _ := QuickFlag("model", "llama3-8b")
	node, _ := QuickFlag("cluster", "dgx-h100")
	nodes, _ := QuickFlag("nodes", "8")
	batch, _ := QuickFlag("global-batch", "1K")
	seq, _ := QuickFlag("seq-len", "8192")
	j, err := Load("", nil, model, node, nodes, batch, seq, SetFlag("model.num_hidden_layers=4"),
		SetFlag("train.precision=bf16"), SetFlag("train.precision.grads=bf16"), SetFlag("plan.tp=[4,8]"))
	if err != nil {
		t.Fatal(err)
	}
	if j.Config.Layers != 4 || j.Train.Precision.Grads != "bf16" || j.Train.GlobalBatch != 1000 ||
		j.Cluster.Nodes != 8 || !j.Plan.TP.Allows(8) || j.Plan.TP.Allows(2) {
		t.Errorf("%+v", j)
	}
	j, err = tryLoad(small+"plan: {tp: 2}\n", "plan.tp=null", "cluster.nodes=2")
	if err != nil || !j.Plan.TP.Free() || j.Cluster != (ClusterRef{"cpu", 2, 0, 4}) {
		t.Errorf("%v, %+v", err, j)
	}
}

// A job of standard input is called job, where it has no name: a run's folder is its own.
func TestStandardInputHasAName(t *testing.T) {
	for text, want := range map[string]string{small: "job", "name: mine\n" + small: "mine"} {
		if j, err := Load("-", files{"-": text}.read); err != nil || j.Name != want {
			t.Errorf("%v, the name is %+v, want %s", err, j, want)
		}
	}
}

func TestConfigSpellings(t *testing.T) {
	const hub = `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128, "hidden_size": 64, "intermediate_size": 96,
	"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "rope_theta": 500000.0, "head_dim": null,
	"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
	"torch_dtype": "bfloat16", "quantization_config": null, "rms_norm_eps": 1e-05, "eos_token_id": [1, 2]}`
	const v5 = `{"architectures": ["LlamaForCausalLM"], "vocab_size": 128, "hidden_size": 64, "intermediate_size": 96,
	"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-05, "dtype": "bfloat16",
	"rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}}`
	fs := files{"m/config.json": hub, "n/config.json": v5}
	a, err := LoadModel("m/config.json", fs.read)
	if err != nil {
		t.Fatal(err)
	}
	b, err := LoadModel("n", fs.read)
	if err == nil {
		t.Fatalf("n is no path, and loaded %v", b)
	}
	b, err = LoadModel("./n", fs.read)
	if err != nil {
		t.Fatal(err)
	}
	if a.Name != "m" || b.Name != "n" || a.RopeScaling.Text() != "llama3,8,1,4,8192" || a.HeadDim != 16 ||
		a.RopeTheta != 500000 {
		t.Errorf("%+v", a)
	}
	a.Name, a.at, a.hf, a.special, b.Name, b.at, b.hf, b.special = "", nil, nil, nil, "", nil, nil, nil
	if !reflect.DeepEqual(a, b) {
		t.Errorf("the hub's spelling is\n%+v\nand that of transformers 5\n%+v", a, b)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(small, "train.steps=5")
	f.Add("model: {base: llama3-8b, rope_scaling: {type: linear, factor: 2}}\ntrain: {precision: {compute: fp8}}",
		"plan.tp=[1,2]")
	f.Add("a: &a [*a]", "cluster.node=cpu")
	f.Add(": 1", "train.=3")
	f.Fuzz(func(t *testing.T, job, set string) {
		j, err := Load("job.yaml", files{"job.yaml": job}.read, SetFlag(set))
		var diags ir.Diags
		switch {
		case err != nil && !errors.As(err, &diags):
			t.Errorf("the error is a %T: %v", err, err)
		case err == nil:
			j.SetDevice("cpu")
			_ = CheckCompile(j)
			_, _ = j.Decides(), j.YAML()
			j.Config.Params()
		}
	})
}
