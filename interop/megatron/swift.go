package megatron

import (
	"path"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/keytable"
	"github.com/planc-dev/planc/interop/shell"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// ms-swift's Megatron trainer (megatron sft, megatron pt) has Megatron-LM's options with underscores. Flags take true
// or false, and some defaults differ. Source: ms-swift, swift/megatron/arguments/megatron_args.py, 2026-11.

// swiftNames maps ms-swift's names to Megatron-LM's settings, where they differ by more than underscores.
var swiftNames = map[string]string{
	"virtual_pipeline_model_parallel_size": "num_virtual_stages_per_pipeline_rank", "max_length": "seq_length",
}

// swiftDefaults are ms-swift's defaults that differ from Megatron-LM's.
var swiftDefaults = map[string]string{
	"micro_batch_size": "1", "global_batch_size": "16", "recompute_granularity": "selective",
	"use_distributed_optimizer": "true", "expert_tensor_parallel_size": "1", "bf16": "true", "adam_beta2": "0.95",
	"weight_decay": "0.1", "lr_decay_style": "cosine", "seed": "42", "moe_grouped_gemm": "true",
	"num_virtual_stages_per_pipeline_rank": "1",
}

// swiftNotes say what options of ms-swift's own change.
var swiftNotes = map[string]string{
	"padding_free": "removes padding, so that steps take less time than planc predicts",
	"rlhf_type":    interop.PreferenceNote,
	"model":        "the shape of the model is in its config.json: add that as a second file, or give --model",
}

// swiftPlain are options of ms-swift's own that do not change which plan is best, with why if that is not obvious.
var swiftPlain = map[string]string{
	"packing": "planc prices full sequences, which packing makes of short ones",
	"tf32":    "matmuls of fp32 run in TF32, and a training in bf16 or fp16 has few",
	"dataset": "", "val_dataset": "", "cached_dataset": "", "split_dataset_ratio": "", "dataset_num_proc": "",
	"dataset_shuffle": "", "output_dir": "", "model_type": "", "template": "", "system": "", "load_safetensors": "",
	"save_safetensors": "", "use_hf": "", "model_author": "", "model_name": "", "strict": "", "loss_scale": "",
	"truncation_strategy": "", "streaming": "", "columns": "", "add_version": "", "mcore_model": "", "torch_dtype": "",
	"report_to": "", "logging_steps": "", "save_steps": "", "eval_steps": "", "check_model": "", "load": "",
	"max_epochs": "", "num_train_epochs": "", "lora_rank": "", "lora_alpha": "", "lora_dropout": "", "lora_bias": "",
	"lora_dtype": "", "use_rslora": "", "target_modules": "", "target_regex": "", "modules_to_save": "",
	"merge_lora": "",
}

// swiftTuners are the options that say what is trained: all parameters with the value full, or else adapters.
var swiftTuners = []string{"tuner_type", "train_type", "sft_type"}

// accountOther adds the key of an option that Megatron-LM does not have.
func (im *importer) accountOther(key interop.Key, a *argument) {
	name := strings.ReplaceAll(strings.TrimPrefix(a.spelled, "--"), "-", "_")
	note, isPlain := im.dialect.harmless[name]
	switch isTuner := im.dialect == swift && slices.Contains(swiftTuners, name); {
	case isTuner && a.text() != "full":
		im.out.Account(key, interop.Unsupported, interop.AdaptersNote)
	case isTuner || isPlain:
		im.out.Account(key, interop.NoEffect, note)
	default:
		im.out.Account(key, interop.Unsupported, im.otherProgram(a))
		im.noteMisspelt(a)
	}
}

var swift = &dialect{format: "swift", option: swiftOption, spell: spellSwift, isProgram: isSwift,
	defaults: swiftDefaults, flagValues: true, notes: swiftNotes, harmless: swiftPlain}

// swiftOption finds an option by its spelling: with underscores, or with dashes as Python's parsers also accept.
func swiftOption(name string) *Option {
	name, ok := strings.CutPrefix(name, "--")
	if !ok {
		return nil
	}
	dest := strings.ReplaceAll(name, "-", "_")
	if other := swiftNames[dest]; other != "" {
		dest = other
	}
	if list := options().byDest[dest]; len(list) > 0 {
		return list[0]
	}
	return options().byName["--"+strings.ReplaceAll(dest, "_", "-")]
}

// spellSwift returns ms-swift's name of an option.
func spellSwift(o *Option) string {
	for name, dest := range swiftNames {
		if dest == o.Dest {
			return "--" + name
		}
	}
	if o.Dest == "fp8" || o.Dest == "fp4" {
		return "--" + o.Dest + "_format"
	}
	return "--" + o.Dest
}

// nearestSwift returns the option that a misspelt name of ms-swift's probably means, of those that decide the plan.
// It returns nil if there is none.
func nearestSwift(name string) *Option {
	var names []string
	for _, o := range options().all {
		if o.use == "taken" {
			names = append(names, spellSwift(o))
		}
	}
	isLonger := func(full string) bool { return !strings.HasPrefix(full, "--"+name+"_") }
	if begin := slices.DeleteFunc(slices.Clone(names), isLonger); len(begin) == 1 {
		return swiftOption(begin[0])
	}
	return swiftOption(ir.Nearest("--"+name, names))
}

// isSwift reports whether a program is ms-swift's: "megatron sft".
func isSwift(program string) bool {
	return strings.HasPrefix(program, "megatron ") || strings.HasSuffix(program, "sft.py") ||
		strings.HasSuffix(program, "pretrain.py") || strings.HasSuffix(program, "rlhf.py")
}

// swiftCommands are the second words of ms-swift's command lines.
var swiftCommands = []string{"sft", "pt", "rlhf"}

// Variables that say how many processes ms-swift starts.
const (
	nodesVariable   = "NNODES"
	perNodeVariable = "NPROC_PER_NODE"
)

// swiftLaunches returns the commands that start ms-swift's trainer. It starts its processes itself, as many as
// NPROC_PER_NODE and NNODES say.
func swiftLaunches(s *shell.Script) (out []shell.Launch) {
	for i := range s.Commands {
		c := &s.Commands[i]
		for j := 1; j < len(c.Words); j++ {
			name := c.Words[j-1].Text()
			isCommand := name == "megatron" || strings.HasSuffix(name, "/megatron")
			if !isCommand || !slices.Contains(swiftCommands, c.Words[j].Text()) {
				continue
			}
			l := shell.Launch{Command: c, Program: "megatron " + c.Words[j].Text(), Start: j + 1}
			l.Nodes, l.PerNode = max(1, envNumber(s, c, nodesVariable)), envNumber(s, c, perNodeVariable)
			l.Total = l.Nodes * l.PerNode
			out = append(out, l)
			break
		}
	}
	return out
}

// envNumber returns a number in a command's environment; 0 if it has none.
func envNumber(s *shell.Script, c *shell.Command, name string) int {
	for i := range c.Env {
		if c.Env[i].Name == name {
			return atoi(c.Env[i].Value.Text())
		}
	}
	w := s.Exported[name]
	return atoi(w.Text())
}

// ImportSwift reads a script that starts ms-swift's Megatron trainer.
func ImportSwift(files []interop.File, o interop.Options) (*interop.Import, error) {
	im, err := swift.importFiles(files, o)
	if err != nil {
		return im, err
	}
	if !im.Has("model") {
		takeHubModel(im)
		return im, nil
	}
	if i := slices.IndexFunc(im.Keys, isHubModel); i >= 0 && slices.ContainsFunc(files, keytable.IsModel) {
		im.Keys[i].Use, im.Keys[i].Note = interop.NoEffect, "the given config.json has the shape of the model"
	}
	return im, nil
}

// isHubModel reports whether a key names the model.
func isHubModel(k interop.Key) bool { return k.Name == "--model" }

// takeHubModel takes the model that --model names, if the catalogue has it.
func takeHubModel(im *interop.Import) {
	i := slices.IndexFunc(im.Keys, isHubModel)
	if i < 0 {
		return
	}
	key := &im.Keys[i]
	const org = "hub/" // names of directories have an organization that is none
	name := spec.HubModel(org + path.Base(key.Value))
	if name == "" {
		im.Model = *key
		return
	}
	key.Use, key.Note, key.As = interop.Taken, "", []string{"model.base: " + name}
	im.SetField(interop.Field{Path: "model.base", Value: name, Pos: key.Pos, From: key.Name})
}

// SwiftValues returns ms-swift's options that say the target's plan.
func SwiftValues(t *interop.Target) (out []interop.Value) {
	for _, v := range swift.values(t) {
		if v.Env { // ms-swift sets it
			continue
		}
		o := swiftOption(v.Key)
		switch fallback := swiftDefaults[o.Dest]; {
		case o.isFlag() && !v.IsAbsent:
			v.Text = "true"
		case o.isFlag() && fallback == "true":
			v.IsAbsent, v.Text = false, "false"
		case o.Dest == "recompute_granularity" && v.IsAbsent:
			v.IsAbsent, v.Text = false, "none"
		}
		out = append(out, v)
	}
	return out
}

// WriteSwift returns a script that starts the target's run with ms-swift.
func WriteSwift(t *interop.Target) ([]byte, error) {
	if diags := refusals(t); len(diags) > 0 {
		return nil, diags
	}
	w := &scriptWriter{}
	nodes, devices := t.Nodes()
	w.line("#!/bin/bash")
	w.line("# %s on %d × %d %s.", t.Plan, nodes, devices, t.Hardware.GPU.Name)
	w.line("# Set MODEL and DATASET. On several nodes, start it on each with NODE_RANK and MASTER_ADDR set.")
	hasLength := t.Job.Train.Steps > 0 || t.Job.Train.Tokens > 0
	if !hasLength {
		w.line("# The job has no number of steps: add --train_iters to ARGS.")
	}
	w.line("set -euo pipefail")
	w.line("export NNODES=%d", nodes)
	w.line("export NPROC_PER_NODE=%d", devices)
	w.line("")
	args := []string{`--model "$MODEL"`, `--dataset "$DATASET"`}
	a := &argumentList{args: args}
	a.add("--max_length", t.Job.Train.SeqLen)
	for _, v := range SwiftValues(t) {
		if !v.IsAbsent {
			a.add(v.Key, quoteList(v.Text))
		}
	}
	for _, s := range RecipeSettings(t.Job) {
		if s.Dest != "train_iters" || hasLength {
			a.add(spellSwift(options().byDest[s.Dest][0]), s.Value)
		}
	}
	w.array("ARGS", a.args)
	w.line(`megatron sft "${ARGS[@]}" "$@"`)
	return []byte(w.out.String()), nil
}

// quoteList quotes a layout of stages, whose characters have a meaning in bash.
func quoteList(text string) string {
	if strings.ContainsAny(text, "|*") {
		return "'" + text + "'"
	}
	return text
}
