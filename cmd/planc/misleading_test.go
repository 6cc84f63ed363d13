package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Bytes a parameter are those of the optimizer and of the engine that is priced.
func TestBytesPerParam(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "bf16 18 B/param"},
		{[]string{"--set", "train.optimizer.kind=sgd", "--set", "train.optimizer.momentum=0.9"}, "bf16 14 B/param"},
		{[]string{"--set", "train.optimizer.kind=sgd"}, "bf16 10 B/param"},
		{[]string{"--set", "train.precision=f32", "--set", "train.optimizer.kind=sgd", "--set",
			"train.optimizer.momentum=0.9"}, "f32 12 B/param"},
		{[]string{"--set", "train.precision=f32", "--set", "train.optimizer.kind=sgd", "--set",
			"train.optimizer.momentum=0"}, "f32 8 B/param"},
		{[]string{"--engine", "deepspeed"}, "bf16 24 B/param"},
	} {
		args := append([]string{"plan", "--model", "gpt2-124m", "--cluster", "8xh100", "--seq-len", "1024",
			"--global-batch", "64"}, c.args...)
		if code, out, errs := call(args...); code != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%q: exit code %d, %s%s; want %s", c.args, code, out, errs, c.want)
		}
	}
}

// A question names the job's pins that hold in its answer too.
func TestWhyNotNamesPins(t *testing.T) {
	_, out, _ := call("explain", "--model", "gpt2-124m", "--cluster", "8xh100", "--seq-len", "1024",
		"--global-batch", "64",
		"--set", "plan.pp=1", "--set", "plan.zero=1", "--why-not", "tp=2")
	if want := "tp 2, all else free but what the job pins: pp 1 · zero 1: "; !strings.Contains(
		strings.Join(strings.Fields(out), " "), want) {
		t.Errorf("%s; want %s", out, want)
	}
}

// A config.json of the folder that planc runs in is called by its family.
func TestModelOfThisFolder(t *testing.T) {
	dir := t.TempDir()
	config := `{"model_type": "llama", "vocab_size": 256, "hidden_size": 16, "intermediate_size": 24, ` +
		`"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}`
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	_, out, errs := call("plan", "--model", "config.json", "--cluster", "8xh100", "--seq-len", "64",
		"--global-batch", "64")
	if !strings.HasPrefix(out, "llama ") {
		t.Errorf("%s%s; want the title llama", out, errs)
	}
}
