package migrate

import (
	"slices"
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
)

// reportOfLog returns the report of a log with settings that are added to those of a model.
func reportOfLog(t *testing.T, settings ...string) *Report {
	t.Helper()
	lines := []string{"------------------------ arguments ------------------------"}
	for _, setting := range append([]string{"num_layers 32", "hidden_size 4096", "num_attention_heads 32", "bf16 True",
		"ffn_hidden_size 14336", "swiglu True", "group_query_attention True", "num_query_groups 8",
		"vocab_size 128256", "max_position_embeddings 8192", "seq_length 4096", "micro_batch_size 1",
		"global_batch_size 64", "untie_embeddings_and_output_weights True", "use_distributed_optimizer True",
		"world_size 16"}, settings...) {
		name, value, _ := strings.Cut(setting, " ")
		lines = append(lines, "  "+name+" ................ "+value)
	}
	file := interop.File{Name: "train.log", Data: []byte(strings.Join(lines, "\n") + "\n")}
	return reportOf(t, []interop.File{file}, noFiles, onH100([]string{"cluster.nodes=2"}))
}

// The advice for a log names the options that have the log's values, removes none that the log does not have, and says
// which ones the log does not show.
func TestAdviceForLogs(t *testing.T) {
	const advice = "a log is not edited: in the script that starts the training, "
	chunked := []string{"tensor_model_parallel_size 4", "pipeline_model_parallel_size 2",
		"num_layers_per_virtual_pipeline_stage 4", "num_virtual_stages_per_pipeline_rank None",
		"overlap_param_gather False", "expert_tensor_parallel_size 4"}
	for _, c := range []struct {
		settings []string
		to       func(p *ir.Plan)
		want     string
	}{
		{chunked, func(p *ir.Plan) { p.VPP, p.StageLayers = 8, "2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2" },
			"set --num-layers-per-virtual-pipeline-stage 2"},
		{chunked, func(p *ir.Plan) { p.VPP, p.StageLayers, p.Schedule = 1, "16,16", "1f1b" },
			"remove --num-layers-per-virtual-pipeline-stage"},
		{chunked, func(p *ir.Plan) { p.Zero, p.ZeroGroup = 0, 1 }, "remove --use-distributed-optimizer"},
		{append(chunked[:2:2], "num_virtual_stages_per_pipeline_rank 4"),
			func(p *ir.Plan) { p.VPP, p.StageLayers = 8, "2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2" },
			"set --num-virtual-stages-per-pipeline-rank 8"},
		{append(chunked[:1:1], "recompute_granularity selective"), func(p *ir.Plan) { p.Recompute = "none" },
			"remove --recompute-activations or --recompute-granularity if the script has it"},
		{append(chunked[:1:1], "recompute_granularity selective"), func(p *ir.Plan) { p.Recompute = "full" },
			"set --recompute-granularity full, --recompute-method uniform, --recompute-num-layers 1, and remove " +
				"--recompute-activations if the script has it"},
		{append(chunked[:1:1], "recompute_activations True"), func(p *ir.Plan) { p.Recompute = "none" },
			"remove --recompute-activations"},
		{append(chunked[:1:1], "recompute_granularity full", "recompute_method uniform", "recompute_num_layers 1"),
			func(p *ir.Plan) { p.Recompute = "none" },
			"remove --recompute-granularity, --recompute-method, --recompute-num-layers"},
	} {
		r := reportOfLog(t, c.settings...)
		to := r.From()
		c.to(&to)
		if to.Recompute == "none" {
			to.RecomputeLayers, to.RecomputeEvery = 0, 0
		} else {
			to.RecomputeLayers, to.RecomputeEvery = to.LargestChunk(), 1
		}
		if _, note, _ := r.Source.diffOf(r.Question, r.From(), to); note != advice+c.want {
			t.Errorf("%v:\n%s\nwant\n%s", c.settings, note, advice+c.want)
		}
	}
}

// A log with the list of arguments has no file to edit: the note names the script.
func TestLogsAreNotEdited(t *testing.T) {
	r := reportOfLog(t, "tensor_model_parallel_size 4")
	if r.Title != "a log with the arguments of Megatron-LM" || !r.EnvYours[0].IsUnknown {
		t.Errorf("%s, %+v", r.Title, r.EnvYours)
	}
	i := slices.IndexFunc(r.Edits, func(e Edit) bool { return e.Message == "tp 4 → 2" })
	_, note, _ := r.EditDiff(i)
	if note != "a log is not edited: in the script that starts the training, set --tensor-model-parallel-size 2" {
		t.Error(note)
	}
	if !strings.HasPrefix(r.DiffNote, "a log is not edited: in the script that starts the training, set ") {
		t.Error(r.DiffNote)
	}
}

// A model whose vocabulary is not in the file is explained: a log cannot be completed.
func TestMissingVocabularyIsExplained(t *testing.T) {
	const log = "  num_layers .... 32\n  hidden_size .... 4096\n  num_attention_heads .... 32\n  bf16 .... True\n" +
		"  tensor_model_parallel_size ..... 2\n  seq_length .... 4096\n  micro_batch_size .... 1\n" +
		"  global_batch_size .... 64\n  max_position_embeddings .... 4096\n  world_size .... 8\n"
	const script = "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --bf16 " +
		"--num-attention-heads 32 --tensor-model-parallel-size 2 --seq-length 4096 --micro-batch-size 1 " +
		"--global-batch-size 64 --max-position-embeddings 4096\n"
	for text, want := range map[string]string{
		log: "run:1:1: model is missing: the size of the vocabulary is not in the log [Missing]",
		script: "run:1:1: model is missing: the size of the vocabulary is not in the file (--vocab-size) " +
			"[Missing]",
	} {
		over := onH100(nil)
		s, err := ReadFor([]interop.File{{Name: "run", Data: []byte(text)}}, "", interop.Options{}, noFiles, over)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Question(noFiles, over...)
		if err == nil || err.Error() != want {
			t.Errorf("got:\n%v\nwant:\n%s", err, want)
		}
	}
}

// A configuration of Accelerate has no option for Megatron-FSDP, which it refuses by name.
func TestAccelerateRefusesMegatronFSDP(t *testing.T) {
	q := question(t, "train.engine=megatron-fsdp", "plan.tp=1", "plan.zero=3")
	f, err := FormatOf("accelerate")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Export(f, q, decide(t, q), nil, interop.Options{})
	if err == nil || !strings.Contains(err.Error(), "cannot express engine megatron-fsdp") {
		t.Error(err)
	}
}
