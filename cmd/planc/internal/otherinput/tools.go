package otherinput

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/planc-dev/planc/cmd/planc/internal/shell"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/formats"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// NotAJob is reported if a file of another tool is given as JOB.
const NotAJob ir.Code = "NotAJob"

// migratingPage is the page that maps keys of other tools to planc's.
const migratingPage = "docs/migrating.md of planc's repository"

// otherTools lists files of other tools that people give as JOB, most specific first. A file is recognized by its
// top-level keys or by words in its text.
var otherTools = []struct {
	keys  []string // one of these keys is enough
	words []string // one of these words is enough, if the file is no mapping without errors
	what  string
	page  string // section of migratingPage
}{
	{[]string{"zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size"}, nil,
		"a configuration of DeepSpeed", "DeepSpeed"},
	{[]string{"compute_environment", "distributed_type", "fsdp_config"}, nil, "a configuration of Accelerate",
		"PyTorch FSDP"},
	{[]string{"trainer"}, nil, "a configuration of Lightning or NeMo", "Lightning"},
	{nil, []string{"tensor_model_parallel_size .", "- end of arguments -"}, "a log with the arguments of Megatron-LM",
		"Megatron-LM"},
	{nil, []string{"--tensor-model-parallel-size", "--pipeline-model-parallel-size", "pretrain_gpt.py",
		"--micro-batch-size"}, "a script of Megatron-LM", "Megatron-LM"},
	{nil, []string{"deepspeed "}, "a script of DeepSpeed", "DeepSpeed"},
	{nil, []string{"fully_shard", "FullyShardedDataParallel"}, "a program that uses PyTorch FSDP", "PyTorch FSDP"},
	{nil, []string{"block_size =", "gradient_accumulation_steps ="}, "a configuration of nanoGPT", "nanoGPT"},
	{nil, []string{"torchrun", "import torch", "DistributedDataParallel"}, "a script that starts PyTorch",
		"PyTorch DDP"},
}

// Check returns an error if a file is not a job but a model or a file of another tool. The error names the section
// of migratingPage that helps. neighbor is the job with the same name in the file's folder; "" if there is none.
func Check(path string, data []byte, neighbor string) error {
	doc, wrong := strict.Parse(path, data)
	isMapping := doc.Root != nil && doc.Root.Kind == strict.Map
	has := func(keys ...string) bool {
		return isMapping && slices.ContainsFunc(keys, func(k string) bool { return doc.Root.Get(k) != nil })
	}
	refuse := func(fix, format string, args ...any) error {
		return ir.Diags{{Pos: ir.Pos{File: shell.Slashed(path)}, Code: NotAJob, Fix: fix,
			Msg: fmt.Sprintf(format, args...)}}
	}
	switch {
	case has("model", "cluster", "train", "plan", "objective"):
		return nil
	case has("model_type"):
		return refuse("", "this is a model, and JOB must be a job; to plan the model: planc plan --model %s --cluster "+
			"NAME --global-batch N --seq-len N", shell.QuotePath(path))
	}
	for _, t := range otherTools {
		if has(t.keys...) || (!isMapping || len(wrong) > 0) && slices.ContainsFunc(t.words, func(w string) bool {
			return strings.Contains(string(data), w)
		}) {
			return refuse("", "this is %s, and JOB must be a job; %sthe section %q of %s translates its options, and "+
				"planc init writes a job", t.what, checkHint(path, data), t.page, migratingPage)
		}
	}
	if filepath.Ext(path) == ".toml" && len(wrong) > 0 {
		return refuse(neighbor, "this is TOML, and a job must be YAML or JSON; planc init writes one")
	}
	return nil
}

// checkHint returns the command that checks a file of another trainer, if planc reads such files; "" otherwise.
func checkHint(path string, data []byte) string {
	if _, sure := formats.Recognize([]interop.File{{Name: path, Data: data}}); sure == interop.No {
		return ""
	}
	return fmt.Sprintf("planc check %s checks its plan, ", shell.QuotePath(path))
}
