package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// flat is a message on one line.
func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// Files of other tools that are given as a JOB are recognised, with the section of docs/migrating.md that translates
// them.
func TestOtherJobs(t *testing.T) {
	page, err := os.ReadFile("../../docs/migrating.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	const translated = "and JOB must be a job; the section %s of docs/migrating.md of planc's repository translates " +
		"its options, and planc init writes a job [NotAJob]"
	for _, x := range []struct{ file, text, what, section string }{
		{"ds_config.json", `{"train_batch_size": 32, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}`,
			"a configuration of DeepSpeed", "DeepSpeed"},
		{"run.sh", "#!/bin/bash\ntorchrun pretrain_gpt.py --tensor-model-parallel-size 8 \\\n  --micro-batch-size 1\n",
			"a script of Megatron-LM", "Megatron-LM"},
		{"train.log", "world size: 8, data: 4\n--- arguments ---\n  tensor_model_parallel_size ..... 2\n",
			"a log with the arguments of Megatron-LM", "Megatron-LM"},
		{"acc.yaml", "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_processes: 8\n",
			"a configuration of Accelerate", "PyTorch FSDP"},
		{"lit.yaml", "trainer:\n  devices: 8\n", "a configuration of Lightning or NeMo", "Lightning"},
		{"train_shakespeare.py", "block_size = 64\nbatch_size = 12\n", "a configuration of nanoGPT", "nanoGPT"},
		{"train.py", "import torch\nprint(1)\n", "a script that starts PyTorch", "PyTorch DDP"},
	} {
		if err := os.WriteFile(x.file, []byte(x.text), 0o666); err != nil {
			t.Fatal(err)
		}
		code, _, errs := call("plan", x.file)
		want := x.file + ": this is " + x.what + ", " + strings.Replace(translated, "%s", `"`+x.section+`"`, 1)
		// of a file that planc check reads, the message says so
		got := strings.Replace(flat(errs), "planc check "+x.file+" checks its plan, ", "", 1)
		if code != exitInput || got != want {
			t.Errorf("%s: exit code %d\n%s\nwant\n%s", x.file, code, got, want)
		}
		if isRead := got != flat(errs); x.section == "Megatron-LM" && !isRead {
			t.Errorf("%s: planc check is not named: %s", x.file, flat(errs))
		}
		if !strings.Contains(string(page), "\n## "+x.section+"\n") {
			t.Errorf("docs/migrating.md has no section %s", x.section)
		}
	}
}

// What is no job for another reason says so; a job stays one, whatever its file is called.
func TestNotAJob(t *testing.T) {
	t.Chdir(t.TempDir())
	const job = "model: gpt2-124m\ntrain: {seq_len: 64, global_batch: 8}\ncluster: 8xh100\n"
	for _, x := range []struct{ file, text, want string }{
		{"config.json", `{"model_type": "llama"}`,
			"config.json: this is a model, and JOB must be a job; to plan the model: planc plan --model config.json " +
				"--cluster NAME --global-batch N --seq-len N [NotAJob]"},
		{"j.toml", "[train]\nseq_len = 64\n",
			"j.toml: this is TOML, and a job must be YAML or JSON; planc init writes one [NotAJob]"},
		{"k.json", `{"model": "gpt2-124m", "train": {"seq_len": 64, "global_batch": 8}, "cluster": "8xh100"}`, ""},
		{"k.toml", "[train]\nseq_len = 64\n",
			"k.toml: this is TOML, and a job must be YAML or JSON; planc init writes one; did you mean k.json? " +
				"[NotAJob]"},
		{"torchrun.txt", job, ""}, {"empty.yaml", "name: x\n", "empty.yaml:1:1: model is missing"},
	} {
		if err := os.WriteFile(filepath.FromSlash(x.file), []byte(x.text), 0o666); err != nil {
			t.Fatal(err)
		}
		if code, _, errs := call("plan", x.file); !strings.HasPrefix(flat(errs), x.want) ||
			(code == exitDone) != (x.want == "") {
			t.Errorf("%s: exit code %d\n%s\nwant\n%s", x.file, code, flat(errs), x.want)
		}
	}
}

// Flags and values of other tools are answered with those of planc.
func TestOtherWords(t *testing.T) {
	t.Chdir(t.TempDir())
	question := []string{"plan", "--model", "gpt2-124m", "--cluster", "8xh100", "--global-batch", "8",
		"--seq-len", "64"}
	for _, x := range []struct {
		args string
		want string
	}{
		{"plan --gpus 8", "planc plan has no flag --gpus; use --cluster 8xh100, which names the GPUs and how many " +
			"there are [UnknownFlag]"},
		{"plan --batch-size 8", "planc plan has no flag --batch-size; use --global-batch N, the sequences per " +
			"optimizer step [UnknownFlag]"},
		{"explain --tensor_model_parallel_size 8",
			"planc explain has no flag --tensor_model_parallel_size; use --set plan.tp=N [UnknownFlag]"},
		{"plan --seq_len 8", "planc plan has no flag --seq_len; did you mean --seq-len? [UnknownFlag]"},
		{"run --steps 3", "planc run has no flag --steps; put flags of the binary after --: planc run JOB -- " +
			"--steps 3 " +
			"[UnknownFlag]"},
		{"plan --set plan.tp 2", "planc: --set plan.tp 2 must be KEY=VALUE; did you mean --set plan.tp=2? [BadSet]"},
		{"init --model gpt2", "planc init has no flag --model: it always writes the same job; edit the " +
			"planc.yaml that it writes, or write a job from flags: " +
			"planc plan --model NAME --cluster NAME --global-batch N --seq-len N --save planc.yaml [UnknownFlag]"},
		{"? --set plan.cp_kind=ulysses",
			`--set plan.cp_kind=ulysses: plan.cp_kind is "ulysses"; use one of none, ring, gather, heads; did you ` +
				`mean heads? [UnknownValue]`},
		{"? --set plan.cp_kind=a2a", `--set plan.cp_kind=a2a: plan.cp_kind is "a2a"; use one of none, ring, gather, ` +
			`heads; did you mean heads? [UnknownValue]`},
		{"? --set plan.cp_kind=[p2p]", `--set plan.cp_kind=[p2p]: plan.cp_kind[0] is "p2p"; use one of none, ring, ` +
			`gather, heads; did you mean ring? [UnknownValue]`},
		{"? --set train.optimizer.lr=1e308",
			"--set train.optimizer.lr=1e308: train.optimizer.lr is 1e308; it must be at most 3.4e38 [OutOfRange]"},
		{"? --set train.optimizer.lr=3e4",
			"note: train.optimizer.lr is 30000; adamw usually diverges above 0.1; did you mean 3e-4?"},
	} {
		args := strings.Fields(x.args)
		if args[0] == "?" {
			args = append(question[:len(question):len(question)], args[1:]...)
		}
		if _, _, errs := call(args...); flat(errs) != x.want {
			t.Errorf("%s\n%s\nwant\n%s", x.args, flat(errs), x.want)
		}
	}
	if _, _, errs := call("plan", "--model", "meta-llama/Meta-Llama-3-8B", "--cluster", "8xh100", "--global-batch",
		"8", "--seq-len", "64"); !strings.Contains(flat(errs), "did you mean llama3-8b?") {
		t.Error(errs)
	}
}
