package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// codeNotAJob is reported for a file of another tool that is given as a JOB.
const codeNotAJob ir.Code = "NotAJob"

// migratingPage says what the keys of other tools are here.
const migratingPage = "docs/migrating.md of planc's repository"

// otherTools are files that people give as a JOB, by their keys at the top or by words of their text, the most specific
// first.
var otherTools = []struct {
	keys  []string // one of them is enough
	words []string
	what  string
	page  string // the section of migratingPage
}{
	{[]string{"zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size"}, nil,
		"a configuration of DeepSpeed", "DeepSpeed"},
	{[]string{"compute_environment", "distributed_type", "fsdp_config"}, nil, "a configuration of Accelerate",
		"PyTorch FSDP"},
	{[]string{"trainer"}, nil, "a configuration of Lightning or NeMo", "Lightning"},
	{nil, []string{"--tensor-model-parallel-size", "--pipeline-model-parallel-size", "pretrain_gpt.py",
		"--micro-batch-size"}, "a script of Megatron-LM", "Megatron-LM"},
	{nil, []string{"deepspeed "}, "a script of DeepSpeed", "DeepSpeed"},
	{nil, []string{"fully_shard", "FullyShardedDataParallel"}, "a program that uses PyTorch FSDP", "PyTorch FSDP"},
	{nil, []string{"block_size =", "gradient_accumulation_steps ="}, "a configuration of nanoGPT", "nanoGPT"},
	{nil, []string{"torchrun", "import torch", "DistributedDataParallel"}, "a script that starts PyTorch",
		"PyTorch DDP"},
}

// otherJob refuses a file that is another tool's, or a model's, and no job: with the page that translates it.
func (a *app) otherJob(path string) error {
	if path == "" || path == "-" {
		return nil
	}
	data, err := a.read(path)
	if err != nil {
		return nil // reading the job says why
	}
	doc, wrong := strict.Parse(path, data)
	isMapping := doc.Root != nil && doc.Root.Kind == strict.Map
	has := func(keys ...string) bool {
		return isMapping && slices.ContainsFunc(keys, func(k string) bool { return doc.Root.Get(k) != nil })
	}
	refuse := func(fix, format string, args ...any) error {
		return ir.Diags{{Pos: ir.Pos{File: slashed(path)}, Code: codeNotAJob, Fix: fix,
			Msg: fmt.Sprintf(format, args...)}}
	}
	switch {
	case has("model", "cluster", "train", "plan", "objective"):
		return nil
	case has("model_type"):
		return refuse("", "this is a model; this command takes a job; to plan it: planc plan --model %s --cluster "+
			"NAME --global-batch N --seq-len N", shellPath(path))
	}
	for _, t := range otherTools {
		if has(t.keys...) || !isMapping && slices.ContainsFunc(t.words, func(w string) bool {
			return strings.Contains(string(data), w)
		}) {
			return refuse("", "this is %s; this command takes a job; %q in %s says what its options are here, and "+
				"planc init writes a job", t.what, t.page, migratingPage)
		}
	}
	if filepath.Ext(path) == ".toml" && len(wrong) > 0 {
		return refuse(jobNextTo(path), "this is TOML, and a job is YAML or JSON; planc init writes one")
	}
	return nil
}

// jobNextTo is the job of the same name beside a file, "" if there is none.
func jobNextTo(path string) string {
	for _, ext := range lockedExtensions {
		if job := strings.TrimSuffix(path, filepath.Ext(path)) + ext; !missing(job) {
			return slashed(job)
		}
	}
	return ""
}
