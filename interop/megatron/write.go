package megatron

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir/spec"
)

// Write returns a script that starts the target's run. The paths of data and checkpoints are left to the user.
func Write(t *interop.Target) ([]byte, error) {
	if diags := refusals(t); len(diags) > 0 {
		return nil, diags
	}
	model, err := modelArguments(t.Job.Config, t.Job.Train.SeqLen)
	if err != nil {
		return nil, err
	}
	w := &scriptWriter{}
	nodes, devices := t.Nodes()
	w.line("#!/bin/bash")
	w.line("# %s on %d × %d %s.", t.Plan, nodes, devices, t.Hardware.GPU.Name)
	w.line("# Set DATA_PATH, and TOKENIZER_ARGS for your data. On several nodes, start it on each with NODE_RANK and")
	w.line("# MASTER_ADDR set.")
	w.line("set -euo pipefail")
	for _, v := range Values(t) {
		if v.Env && !v.IsAbsent {
			w.line("export %s=%s # %s", v.Key, v.Text, v.Why)
		}
	}
	w.line("")
	w.line("NNODES=%d", nodes)
	w.line("GPUS_PER_NODE=%d", devices)
	w.line("DATA_PATH=${DATA_PATH:-data/tokens} # prefix of indexed data, as tools/preprocess_data.py writes it")
	w.line("CHECKPOINT_PATH=${CHECKPOINT_PATH:-checkpoints}")
	w.line("")
	w.array("TORCHRUN_ARGS", []string{"--nnodes $NNODES", "--nproc_per_node $GPUS_PER_NODE",
		"--node_rank ${NODE_RANK:-0}", "--master_addr ${MASTER_ADDR:-localhost}",
		"--master_port ${MASTER_PORT:-6000}"})
	if !runsGroupedGEMM(t.Hardware.GPU.Arch) {
		model = slices.DeleteFunc(model, func(arg string) bool { return arg == groupedGEMM })
	}
	w.array("MODEL_ARGS", model)
	w.array("PARALLEL_ARGS", planArguments(t))
	w.array("TRAIN_ARGS", trainArguments(t.Job))
	w.array("DATA_ARGS", []string{`--data-path "$DATA_PATH"`, "--split 99,1,0", `--save "$CHECKPOINT_PATH"`,
		`--load "$CHECKPOINT_PATH"`, "--save-interval 1000", "--eval-interval 1000", "--eval-iters 10",
		"--log-interval 10"})
	w.array("TOKENIZER_ARGS", []string{"--tokenizer-type NullTokenizer # of data that is tokens already"})
	w.line(`torchrun "${TORCHRUN_ARGS[@]}" pretrain_gpt.py \`)
	w.line(`    "${MODEL_ARGS[@]}" "${PARALLEL_ARGS[@]}" "${TRAIN_ARGS[@]}" \`)
	w.line(`    "${DATA_ARGS[@]}" "${TOKENIZER_ARGS[@]}" "$@"`)
	return []byte(w.out.String()), nil
}

// scriptWriter writes a script.
type scriptWriter struct{ out strings.Builder }

func (w *scriptWriter) line(format string, args ...any) { fmt.Fprintf(&w.out, format+"\n", args...) }

// array writes an array with one option a line.
func (w *scriptWriter) array(name string, args []string) {
	w.line("%s=(", name)
	for _, a := range args {
		w.line("    %s", a)
	}
	w.line(")")
}

// planArguments returns the options of the plan that are present.
func planArguments(t *interop.Target) (args []string) {
	for _, v := range Values(t) {
		switch {
		case v.Env || v.IsAbsent:
		case v.Text == "":
			args = append(args, v.Key)
		case strings.ContainsAny(v.Text, "|*"):
			args = append(args, v.Key+" '"+v.Text+"'")
		default:
			args = append(args, v.Key+" "+v.Text)
		}
	}
	return args
}

// trainArguments returns the options of the recipe.
func trainArguments(j *spec.Job) []string {
	a := &argumentList{}
	r := &j.Train
	switch r.Precision.Compute {
	case "fp16":
		a.flag("--fp16")
	case "fp8":
		a.flag("--bf16")
		a.add("--fp8-format", "hybrid")
	case "bf16":
		a.flag("--bf16")
	}
	if r.Precision.Compute != "fp16" && r.Precision.Grads == "bf16" {
		a.flag("--grad-reduce-in-bf16")
	}
	o := &r.Optimizer
	if o.Kind == "sgd" {
		a.add("--optimizer", "sgd")
		a.add("--sgd-momentum", number(o.Momentum))
	} else {
		a.add("--adam-beta1", number(o.Betas[0]))
		a.add("--adam-beta2", number(o.Betas[1]))
		a.add("--adam-eps", number(o.Eps))
	}
	a.add("--lr", number(o.LR))
	a.add("--weight-decay", number(o.WeightDecay))
	a.add("--clip-grad", number(o.ClipNorm))
	a.schedule(r)
	steps := r.Steps
	if steps == 0 && j.Train.Tokens > 0 {
		steps = int(j.Train.Tokens / int64(r.GlobalBatch*r.SeqLen))
	}
	a.add("--train-iters", max(1, steps))
	a.add("--seed", r.Seed)
	return a.args
}

// schedule adds the learning-rate schedule.
func (a *argumentList) schedule(r *spec.Train) {
	for text, kind := range decayKinds {
		if kind == r.Schedule.Kind {
			a.add("--lr-decay-style", text)
		}
	}
	if r.Schedule.Kind == "wsd" {
		a.add("--lr-decay-style", "WSD")
		a.add("--lr-wsd-decay-iters", r.Schedule.Decay)
		a.add("--lr-wsd-decay-style", "linear")
	}
	if r.Schedule.Warmup > 0 {
		a.add("--lr-warmup-iters", r.Schedule.Warmup)
	}
	if r.Schedule.MinLR > 0 {
		a.add("--min-lr", number(r.Schedule.MinLR))
	}
}
