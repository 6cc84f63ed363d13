package spec

import (
	"strings"
	"testing"
)

// valueAt is the value of a row, "" if there is none.
func valueAt(rows []Row, path string) string {
	for _, r := range rows {
		if r.Path == path {
			return r.Value
		}
	}
	return ""
}

// What decides the plan is in Deciding and what does not is not: run-time fields, dropout, names.
func TestDeciding(t *testing.T) {
	const job = `
model: {model_type: llama, vocab_size: 512, hidden_size: 64, intermediate_size: 128, num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 64}
data: {train: [a.bin, {path: b.bin, weight: 2}]}
train: {seq_len: 32, global_batch: 8, steps: 3, precision: f32}
cluster: {node: cpu, devices: 2}
plan: {tp: [1, 2]}
`
	base := string(load(t, job).Decides())
	for change, decides := range map[string]bool{
		"train.steps=4": false, "train.optimizer.lr=1": false, "train.dropout=0.5": false, "name=x": false,
		"data.valid=0.1": false, "train.seed=1": false,
		"train.optimizer.kind=sgd": true, "train.precision=f64": true, "model.hidden_size=128": true,
		"cluster.devices=4": true,
		"plan.tp=1":         true, "plan.tp=null": true, "plan.zero=0": true, "plan.sp=false": true,
		"plan.recompute_layers=0": true, "objective.headroom=0.2": true, "train.seq_len=64": true,
		"train.global_batch=16": true,
	} {
		if got := string(load(t, job, change).Decides()) != base; got != decides {
			t.Errorf("%s changes what decides: %v, want %v", change, got, decides)
		}
	}
	plain := string(load(t, job, "train.optimizer.kind=sgd").Decides()) // whose momentum is 0, without a buffer
	little := string(load(t, job, "train.optimizer.kind=sgd", "train.optimizer.momentum=0.1").Decides())
	much := string(load(t, job, "train.optimizer.kind=sgd", "train.optimizer.momentum=0.9").Decides())
	if plain == little || little != much {
		t.Errorf("momentum 0 decides as 0.1 does: %v; 0.1 decides as 0.9 does: %v", plain == little, little == much)
	}
	rows := load(t, job).Rows()
	for path, want := range map[string]string{"plan.tp": "1, 2", "model.kv_heads": "2", "model.ffn": "128",
		"train.optimizer.betas": "0.9, 0.95",
		"data.train":            "a.bin, {b.bin 2}", "train.steps": "3", "data.valid": "0", "cluster.node": "cpu",
		"train.precision.compute": "f32"} {
		if got := valueAt(rows, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	for _, r := range rows {
		if strings.ContainsAny(r.Path, " ABCDEFGHIJKLMNOPQRSTUVWXYZ") || strings.Contains(r.Value, "0x") {
			t.Errorf("row %q %q", r.Path, r.Value)
		}
	}
}

func TestSnake(t *testing.T) {
	for name, want := range map[string]string{"KVHeads": "kv_heads", "FFN": "ffn", "QKVBias": "qkv_bias",
		"HeadDim": "head_dim", "Vocab": "vocab"} {
		if got := snake(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
