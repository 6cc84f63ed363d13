package main

import (
	"os"
	"strings"
	"testing"
)

// Where the batch is not the one of the lock, explain and plan say what that means for the learning rate, which stays.
func TestBatchChange(t *testing.T) {
	t.Chdir(t.TempDir())
	const job = `
model: {model_type: llama, vocab_size: 256, hidden_size: 16, intermediate_size: 24, num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2}
train: {seq_len: 64, global_batch: 16, optimizer: {lr: 1e-3}}
cluster: 2xh100
`
	if err := os.WriteFile("planc.yaml", []byte(job), 0o666); err != nil {
		t.Fatal(err)
	}
	const (
		stays = `"learning rate × GPUs": not needed, the batch stays 16`
		adamw = "the batch was 16 and is 32, and planc keeps the learning rate 0.001. If that was chosen for 16, " +
			"guides scale it with adamw " +
			"by the square root of the ratio (1.41): --set train.optimizer.lr=0.00141"
		sgd = "the batch was 16 and is 64, and planc keeps the learning rate 0.001. If that was chosen for 16, " +
			"guides scale it with sgd " +
			"by the ratio (4): --set train.optimizer.lr=0.004"
		never = "the batch was"
	)
	for _, c := range []struct {
		args      string
		want, not string
	}{
		{"explain", stays, never}, // no lock
		{"plan --update", "", never},
		{"explain", stays, never},
		{"plan --set train.seq_len=32", "", never},
		{"explain --set train.global_batch=32", `"learning rate × GPUs": ` + adamw, "batch stays"},
		{"plan --set train.global_batch=32", "GiB rate " + adamw + " Nothing was written.", ""},
		{"plan --set train.global_batch=64 --set train.optimizer.kind=sgd", sgd, ""},
	} {
		code, out, errs := call(strings.Fields(c.args)...)
		text := strings.Join(strings.Fields(out), " ")
		if code != 0 || !strings.Contains(text, c.want) || c.not != "" && strings.Contains(text, c.not) {
			t.Errorf("planc %s: exit code %d, %s%s; want %s and not %s", c.args, code, out, errs, c.want, c.not)
		}
	}
}
