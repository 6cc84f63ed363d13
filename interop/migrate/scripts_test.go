package migrate

import (
	"strconv"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir/spec"
)

// swiftScript trains a model that the catalogue has.
const swiftScript = `NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-8B-Base --dataset data.jsonl \
  --pipeline_model_parallel_size 2 --micro_batch_size 1 --global_batch_size 64 --max_length 4096 \
  --recompute_granularity full --recompute_method uniform --recompute_num_layers 1 "$@"
`

// config is the config.json of a model that the catalogue does not have, with 12 blocks.
const config = `{"model_type": "llama", "num_hidden_layers": 12, "hidden_size": 1024, "num_attention_heads": 16,
  "num_key_value_heads": 16, "intermediate_size": 4096, "vocab_size": 32000, "max_position_embeddings": 4096}`

const megatronScript = `torchrun --nproc_per_node 8 pretrain_gpt.py --micro-batch-size 1 --global-batch-size 64 \
  --seq-length 4096 --bf16 --pipeline-model-parallel-size 4 --recompute-granularity full \
  --recompute-method uniform --recompute-num-layers 1
`

// files returns a script as run.sh, with a config.json unless that is "".
func files(script, config string) []interop.File {
	out := []interop.File{{Name: "run.sh", Data: []byte(script)}}
	if config != "" {
		out = append(out, interop.File{Name: "config.json", Data: []byte(config)})
	}
	return out
}

// The layers that are recomputed are all those of the model that is planned: the script's, that of a config.json, or
// the one that the user gives.
func TestAllLayersOfThePlannedModelAreRecomputed(t *testing.T) {
	other := strings.Replace(swiftScript, "Qwen3-8B-Base", "Other-1B", 1)
	shape := strings.Replace(megatronScript, "--bf16", "--bf16 --num-layers 80 --hidden-size 512 "+
		"--num-attention-heads 8 --vocab-size 32000", 1)
	for _, c := range []struct {
		name, script, config, model string
		layers, chunk               int
	}{
		{"a name of the catalogue", swiftScript, "", "", 36, 18},
		{"another model", swiftScript, "", "llama3-8b", 32, 16},
		{"a config.json", other, config, "", 12, 6},
		{"a script without a model", megatronScript, "", "llama3-8b", 32, 8},
		{"a script without a model, and a config.json", megatronScript, config, "", 12, 3},
		{"the script's own model", shape, "", "", 80, 20},
		{"not the script's own model", shape, "", "llama3-8b", 32, 8},
		{"not the script's own model, but a config.json", shape, config, "", 12, 3},
	} {
		s, err := Read(files(c.script, c.config), "", interop.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		over := overrides("cluster.node=dgx-h100")
		if c.model != "" {
			over = append(over, spec.SetFlag("model="+c.model))
		}
		q, err := s.Question(noFiles, over...)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := q.Plan.RecomputeLayers.List(); q.Config.Layers != c.layers || got != strconv.Itoa(c.chunk) {
			t.Errorf("%s: %d layers, recompute_layers %s", c.name, q.Config.Layers, got)
		}
	}
}

// A model that the catalogue does not have is named.
func TestAModelThatTheCatalogueDoesNotHaveIsNamed(t *testing.T) {
	s, err := Read(files(strings.Replace(swiftScript, "Qwen3-8B-Base", "Other-1B", 1), ""), "", interop.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Question(noFiles, overrides("cluster.node=dgx-h100")...)
	const want = "run.sh:1:31: model is missing: the catalogue does not have Qwen/Other-1B; add the model's " +
		"config.json as a second file [Missing]"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// An edit of the virtual stages keeps the option that says them, or removes it.
func TestEditsKeepTheOptionOfVirtualStages(t *testing.T) {
	const perStage = "--num-layers-per-virtual-pipeline-stage"
	script := strings.Replace(megatronScript, "--bf16", "--bf16 "+perStage+" $VPP", 1)
	o := interop.Options{Define: map[string]string{"VPP": "3"}}
	s, err := Read(files(script, config), "", o)
	if err != nil {
		t.Fatal(err)
	}
	q, err := s.Question(noFiles, overrides("cluster.node=dgx-h100", "plan.vpp=null", "plan.schedule=null")...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReport(s, q)
	if err != nil {
		t.Fatal(err)
	}
	for _, vpp := range []int{1, 3} {
		from, to := r.From(), r.From()
		from.VPP, from.Schedule, from.StageLayers = 4-vpp, "interleaved", "1,1,1,1,1,1,1,1,1,1,1,1"
		to.VPP, to.Schedule, to.StageLayers = vpp, "interleaved", from.StageLayers
		text, note, _ := s.diffOf(q, from, to)
		const before = "  --seq-length 4096 --bf16 "
		now := map[int]string{1: "", 3: perStage + " 1 "}[vpp]
		if note != "" || !strings.Contains(text, "-"+before+perStage+" $VPP --pipe") ||
			!strings.Contains(text, "+"+before+now+"--pipe") {
			t.Errorf("vpp %d: %s %s", vpp, note, text)
		}
	}
}

// Notes name widths of the model with which GPUs are slow, after what the files say.
func TestSlowWidthsAreNoted(t *testing.T) {
	script := strings.Replace(chunkedScript, "14336", "14337", 1)
	r := reportOf(t, []interop.File{{Name: "run.sh", Data: []byte(script)}}, noFiles, onH100(nil))
	const want = "intermediate_size is 14337, not a multiple of 8: GEMMs of the MLP are slow on GPUs; use 14400"
	if len(r.Notes) != 1 || r.Notes[0] != want {
		t.Errorf("%q", r.Notes)
	}
}
