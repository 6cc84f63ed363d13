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
		{"underscores", head + "--tensor_model_parallel_size 2", "run.sh:2:3: Megatron-LM has no option " +
			"--tensor_model_parallel_size; did you mean --tensor-model-parallel-size? [BadOption]"},
		{"a missing value", head + "--context-parallel-size --bf16",
			"run.sh:2:3: --context-parallel-size has no value: give an integer [BadOption]"},
		{"a value of another type", head + "--pipeline-model-parallel-size two",
			"run.sh:2:3: --pipeline-model-parallel-size two: the value must be an integer [BadOption]"},
		{"a value that is no choice", head + "--recompute-granularity partial",
			"run.sh:2:3: --recompute-granularity partial: the value must be one of full, selective [BadOption]"},
		{"a flag with a value", head + "--sequence-parallel true",
			"run.sh:2:3: --sequence-parallel takes no value: remove true [BadOption]"},
		{"full without a method", head + "--recompute-granularity full", "run.sh:2:3: --recompute-granularity full " +
			"needs --recompute-method: add --recompute-method uniform --recompute-num-layers 1 [BadOption]"},
		{"full without a number", head + "--recompute-granularity full --recompute-method block",
			"run.sh:2:3: --recompute-granularity full needs --recompute-num-layers: add --recompute-num-layers 1 " +
				"[BadOption]"},
		{"two ways of virtual stages", head + "--pipeline-model-parallel-size 2 " +
			"--num-layers-per-virtual-pipeline-stage 1 --num-virtual-stages-per-pipeline-rank 4",
			"run.sh:2:36: --num-virtual-stages-per-pipeline-rank and --num-layers-per-virtual-pipeline-stage exclude " +
				"each other: remove one [BadOption]"},
		{"layers that do not divide", head + "--pipeline-model-parallel-size 3",
			"run.sh:1:24: --num-layers 8: 3 stages of 1 chunks do not divide the layers; use " +
				"--pipeline-model-parallel-layout [BadOption]"},
		{"an argument that is not given", head + "--tensor-model-parallel-size $1",
			"run.sh:2:32: $1 has no value here: type --define 1=VALUE (--tensor-model-parallel-size needs it) " +
				"[Undefined]"},
		{"the output of a command", "TP=$(nproc)\n" + head + "--tensor-model-parallel-size $TP",
			"run.sh:1:4: $TP is the output of a command, which planc does not run: type --define TP=VALUE " +
				"(--tensor-model-parallel-size needs it) [Undefined]"},
		{"an undecided branch", "if [ -f big ]; then TP=8; else TP=2; fi\n" + head + "--tensor-model-parallel-size $TP",
			"run.sh:1:4: [ -f big ] is a test of files, which planc does not look at, and it decides about $TP: type " +
				"--define line1=true or false (--tensor-model-parallel-size needs it) [Undefined]"},
		{"no micro-batch", "python pretrain_gpt.py --num-layers 8",
			"run.sh: --micro-batch-size is missing, and Megatron-LM has no default: add --micro-batch-size 1 " +
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
		{"no option at all", "echo hello", "run.sh: no option of Megatron-LM found: give a script that starts it, " +
			"its command line, or the list of arguments in its log [BadOption]"},
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
