package megatron

import (
	"strings"
	"testing"

	"github.com/planc-dev/planc/interop"
)

// The ways in which scripts are commonly wrong, each with its message.
func TestWrongScripts(t *testing.T) {
	const head = "python pretrain_gpt.py --num-layers 8 --micro-batch-size 1 \\\n  "
	for _, c := range []struct{ name, script, want string }{
		{"a misspelt option", head + "--tensor-parallel-size 2",
			"run.sh:2:3: Megatron-LM has no option --tensor-parallel-size; did you mean " +
				"--tensor-model-parallel-size? [BadOption]"},
		{"a script of Megatron-DeepSpeed", head + "--deepspeed --deepspeed_config=ds.json --zero-stage 1",
			"run.sh:2:3: --deepspeed is an option of Megatron-DeepSpeed, whose scripts planc does not read: give the " +
				"ds_config.json instead, with the model (--model), and the other degrees as --set plan.tp=N " +
				"[BadOption]\nrun.sh:2:15: --deepspeed_config is an option of Megatron-DeepSpeed, whose scripts " +
				"planc does not read: give the ds_config.json instead, with the model (--model), and the other " +
				"degrees as --set plan.tp=N [BadOption]"},
		{"underscores", head + "--tensor_model_parallel_size 2", "run.sh:2:3: Megatron-LM has no option " +
			"--tensor_model_parallel_size; did you mean --tensor-model-parallel-size? [BadOption]"},
		{"a missing value", head + "--context-parallel-size --bf16",
			"run.sh:2:3: --context-parallel-size has no value: give an integer [BadOption]"},
		{"a value of another type", head + "--pipeline-model-parallel-size two",
			"run.sh:2:3: --pipeline-model-parallel-size two: the value must be an integer [BadOption]"},
		{"a variable of another type", "TP=eight\n" + head + "--tensor-model-parallel-size $TP",
			"run.sh:1:4: --tensor-model-parallel-size eight: the value must be an integer [BadOption]"},
		{"a value that is no choice", head + "--recompute-granularity partial",
			"run.sh:2:3: --recompute-granularity partial: the value must be one of full, selective [BadOption]"},
		{"a flag with a value", head + "--sequence-parallel true",
			"run.sh:2:3: --sequence-parallel takes no value: remove true [BadOption]"},
		{"full without a method", head + "--recompute-granularity full", "run.sh:2:3: --recompute-granularity full " +
			"needs --recompute-method: add --recompute-method uniform --recompute-num-layers 1 [BadOption]"},
		{"too few positions", head + "--max-position-embeddings 2048 --seq-length 4096",
			"run.sh:2:3: --max-position-embeddings 2048 is less than --seq-length 4096: use at least 4096 [BadOption]"},
		{"parameters gathered without shards", head + "--overlap-grad-reduce --overlap-param-gather",
			"run.sh:2:25: --overlap-param-gather needs a sharded optimizer: add --use-distributed-optimizer " +
				"[BadOption]"},
		{"parameters gathered alone", head + "--use-distributed-optimizer --overlap-param-gather",
			"run.sh:2:31: --overlap-param-gather needs --overlap-grad-reduce: add it [BadOption]"},
		{"GEMMs overlapped without sp", head + "--tensor-model-parallel-size 2 --tp-comm-overlap", "run.sh:2:34: " +
			"--tp-comm-overlap needs --sequence-parallel with --tensor-model-parallel-size above 1: add them, or " +
			"remove --tp-comm-overlap [BadOption]"},
		{"flushes overlapped without chunks", head + "--overlap-p2p-communication-warmup-flush",
			"run.sh:2:3: --overlap-p2p-communication-warmup-flush needs virtual pipeline stages: add " +
				"--num-virtual-stages-per-pipeline-rank, or remove --overlap-p2p-communication-warmup-flush " +
				"[BadOption]"},
		{"delayed gradients of weights", head + "--delay-wgrad-compute", "run.sh:2:3: --delay-wgrad-compute needs " +
			"--overlap-moe-expert-parallel-comm: add it, or remove --delay-wgrad-compute [BadOption]"},
		{"transfers of experts in stages", head + "--overlap-moe-expert-parallel-comm --num-experts 8 " +
			"--moe-token-dispatcher-type alltoall --expert-model-parallel-size 2 --pipeline-model-parallel-size 2",
			"run.sh:2:3: " +
				"--overlap-moe-expert-parallel-comm needs virtual stages in a pipeline: add " +
				"--num-virtual-stages-per-pipeline-rank, or remove --overlap-moe-expert-parallel-comm [BadOption]"},
		{"transfers of experts with full recomputation", head + "--overlap-moe-expert-parallel-comm --num-experts 8 " +
			"--moe-token-dispatcher-type alltoall --expert-model-parallel-size 2 --recompute-granularity full " +
			"--recompute-method uniform " +
			"--recompute-num-layers 1", "run.sh:2:3: --overlap-moe-expert-parallel-comm excludes full " +
			"recomputation: remove one [BadOption]"},
		{"FSDP2 with fused gradients", head + "--use-torch-fsdp2 --untie-embeddings-and-output-weights",
			"run.sh:2:3: --use-torch-fsdp2 needs --no-gradient-accumulation-fusion: add it [BadOption]"},
		{"a graph of recomputed experts with dropout", head + "--moe-layer-recompute --recompute-modules mlp " +
			"--enable-cuda-graph", "run.sh:2:49: --enable-cuda-graph with selective recomputation of MLPs or experts " +
			"needs --hidden-dropout 0: use --hidden-dropout 0 [BadOption]"},
		{"a graph of recomputed attention with dropout", head + "--recompute-activations --enable-cuda-graph",
			"run.sh:2:27: --enable-cuda-graph with selective recomputation of attention needs --attention-dropout 0: " +
				"use --attention-dropout 0 [BadOption]"},
		{"wide experts", head + "--num-experts 8 --expert-tensor-parallel-size 4 --tensor-model-parallel-size 2",
			"run.sh:2:19: --expert-tensor-parallel-size 4: Megatron-LM runs it with --tensor-model-parallel-size 2, " +
				"but planc prices only values that divide that [BadOption]"},
		{"FSDP in a pipeline", head + "--use-megatron-fsdp --pipeline-model-parallel-size 2", "run.sh:2:23: " +
			"--pipeline-model-parallel-size 2: Megatron-LM runs pipelines with --use-megatron-fsdp, but planc does " +
			"not price them: use 1, or remove --use-megatron-fsdp [BadOption]"},
		{"full without a number", head + "--recompute-granularity full --recompute-method block",
			"run.sh:2:3: --recompute-granularity full needs --recompute-num-layers: add --recompute-num-layers 1 " +
				"[BadOption]"},
		{"full recomputation made selective", head + "--recompute-activations --recompute-granularity full " +
			"--recompute-method uniform", "run.sh:2:3: --recompute-activations sets --recompute-granularity " +
			"selective, which has no --recompute-method: remove --recompute-activations to recompute fully " +
			"[BadOption]"},
		{"selective recomputation with a method", head + "--recompute-activations --recompute-method uniform",
			"run.sh:2:27: selective recomputation has no --recompute-method: remove it [BadOption]"},
		{"selective granularity with a method", head + "--recompute-granularity selective --recompute-method block",
			"run.sh:2:37: selective recomputation has no --recompute-method: remove it [BadOption]"},
		{"steps and samples", head + "--train-iters 100 --train-samples 6400",
			"run.sh:2:21: --train-samples and --train-iters exclude each other: remove one [BadOption]"},
		{"two ways of virtual stages", head + "--pipeline-model-parallel-size 2 " +
			"--num-layers-per-virtual-pipeline-stage 1 --num-virtual-stages-per-pipeline-rank 4",
			"run.sh:2:36: --num-virtual-stages-per-pipeline-rank and --num-layers-per-virtual-pipeline-stage exclude " +
				"each other: remove one [BadOption]"},
		{"layers that do not divide", head + "--pipeline-model-parallel-size 3",
			"run.sh:2:3: --pipeline-model-parallel-size 3: 3 stages do not divide 8 layers: use 2 or 4, or " +
				"--pipeline-model-parallel-layout [BadOption]"},
		{"layers and devices that do not divide", "torchrun --nproc_per_node 6 " + head +
			"--pipeline-model-parallel-size 3",
			"run.sh:2:3: --pipeline-model-parallel-size 3: 3 stages do not divide 8 layers: use 2, or " +
				"--pipeline-model-parallel-layout [BadOption]"},
		{"chunks that do not divide", head + "--pipeline-model-parallel-size 2 " +
			"--num-virtual-stages-per-pipeline-rank 3",
			"run.sh:2:36: --num-virtual-stages-per-pipeline-rank 3: 2 stages of 3 chunks do not divide 8 layers: use " +
				"2 or 4, or --pipeline-model-parallel-layout [BadOption]"},
		{"chunks that need several stages", strings.Replace(head, "--num-layers 8", "--num-layers 9", 1) +
			"--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 3",
			"run.sh:2:3: --pipeline-model-parallel-size 2: 2 stages of 3 chunks do not divide 9 layers: use 3, or " +
				"--pipeline-model-parallel-layout [BadOption]"},
		{"chunks whose layers do not divide", head + "--pipeline-model-parallel-size 2 " +
			"--num-layers-per-virtual-pipeline-stage 3", "run.sh:2:36: --num-layers-per-virtual-pipeline-stage 3: 8 " +
			"layers in 2 stages do not split into chunks of 3: use 2 or 4 [BadOption]"},
		{"an argument that is not given", head + "--tensor-model-parallel-size $1",
			"run.sh:2:32: $1 has no value here: type --define 1=VALUE (--tensor-model-parallel-size needs it) " +
				"[Undefined]"},
		{"the output of a command", "TP=$(nproc)\n" + head + "--tensor-model-parallel-size $TP",
			"run.sh:1:4: $TP is the output of a command, which planc does not run: type --define TP=VALUE " +
				"(--tensor-model-parallel-size needs it) [Undefined]"},
		{"an undecided branch", "if [ -f big ]; then TP=8; else TP=2; fi\n" + head + "--tensor-model-parallel-size $TP",
			"run.sh:1:4: [ -f big ] is a test of files, which planc does not look at, and it decides about $TP: type " +
				"--define line1=true or false (--tensor-model-parallel-size needs it) [Undefined]"},
		{"no layers", "python pretrain_gpt.py --micro-batch-size 1 --hidden-size 64 --num-attention-heads 4",
			"run.sh:1:45: --num-layers is missing: add it next to --hidden-size, or give the model with --model " +
				"[BadOption]"},
		{"no micro-batch", "python pretrain_gpt.py --num-layers 8",
			"run.sh:1:1: --micro-batch-size is missing, and Megatron-LM has no default: add --micro-batch-size 1 " +
				"[BadOption]"},
		{"both precisions", head + "--bf16 --fp16",
			"run.sh:2:10: --bf16 and --fp16 exclude each other: remove one [BadOption]"},
		{"a blank after the backslash", head + "--bf16 \\ \n  --context-parallel-size 2", "run.sh:3:3: " +
			"--context-parallel-size is not part of the command above: write \\ as the last character of the line " +
			"above, and no comment or empty line between [BadOption]"},
		{"a comment between", head + "# --bf16 \\\n  --context-parallel-size 2", "run.sh:3:3: " +
			"--context-parallel-size is not part of the command above: write \\ as the last character of the line " +
			"above, and no comment or empty line between [BadOption]"},
		{"a layout that takes for ever",
			head + "--pipeline-model-parallel-layout '" + strings.Repeat("()", 400_000) + "t'",
			"run.sh:2:3: --pipeline-model-parallel-layout has 0 stages, which pp 1 does not divide [BadOption]"},
		{"one dash", head + "-context-parallel-size 2", "run.sh:2:3: -context-parallel-size: options start with two " +
			"dashes; write --context-parallel-size [BadOption]"},
		{"options in quotes", "ARGS=\"--bf16 --context-parallel-size 2\"\n" + head + "\"$ARGS\"",
			"run.sh:1:7: --bf16 ...: quotes make this one argument, which is no option: remove the quotes " +
				"around it, or around the variable that has it [BadOption]"},
		{"a quote without an end", "A=\"--bf16\n" + head + "$A",
			"run.sh:1:3: the \" here has no end: add the closing \" [BadScript]"},
		{"a quote without an end after an option", head + "--use-distributed-optimizer\"\n",
			"run.sh:2:30: the \" here has no end: add the closing \" [BadScript]"},
		{"no option at all", "echo hello", "run.sh:1:1: no option of Megatron-LM found: give a script that starts " +
			"it, its command line, or the list of arguments in its log [BadOption]"},
	} {
		_, err := Import([]interop.File{{Name: "run.sh", Data: []byte(c.script)}}, interop.Options{})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.name, err, c.want)
		}
	}
}

// Definitions decide what a script leaves open.
func TestDefinitions(t *testing.T) {
	const script = "TP=$(nproc)\nif [ -f big ]; then PP=4; else PP=2; fi\npython pretrain_gpt.py --num-layers 8 " +
		"--micro-batch-size $1 --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP"
	im := importText(t, script, interop.Options{Define: map[string]string{"TP": "2", "1": "3", "line2": "true"}})
	got := values(im)
	if got["plan.tp"] != "2" || got["plan.pp"] != "4" || got["plan.micro_batch"] != "3" {
		t.Errorf("%v", got)
	}
}
