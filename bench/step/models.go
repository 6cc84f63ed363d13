package main

import "fmt"

// model is a model that both sides train, without dropout, on bytes.
type model struct {
	name                             string
	layers, heads, kvHeads           int
	hidden, ffn, vocab, block, batch int
	llama                            bool // RMSNorm, rotary positions, SwiGLU
	precision                        string
	ranks                            int // dp of planc, processes of PyTorch
}

// models are the rows of the table in README.md. Vocabularies of 256 are bytes; GPT-2 has its own, of which bytes use
// 256.
var models = []model{
	{name: "nano", layers: 4, heads: 4, hidden: 128, block: 64, batch: 12},
	{name: "mid", layers: 6, heads: 6, hidden: 384, block: 256, batch: 8},
	{name: "gpt2", layers: 12, heads: 12, hidden: 768, block: 64, batch: 4, vocab: 50257},
	{name: "llama", layers: 6, heads: 6, kvHeads: 2, hidden: 384, ffn: 1024, block: 512, batch: 4, llama: true},
}

// flops returns the flops of a step: three times those of the forward matmuls (2 per weight and token) and of
// attention, whose masked half counts too.
func (m *model) flops() float64 {
	tokens, e := float64(m.batch*m.block), float64(m.hidden)
	block := 12 * e * e
	if m.llama {
		block = e*e*(2+2*float64(m.kvHeads)/float64(m.heads)) + 3*e*float64(m.ffn)
	}
	return 6*tokens*(float64(m.layers)*block+float64(m.vocab)*e) + 12*float64(m.layers)*tokens*float64(m.block)*e
}

// job returns planc's job for the model on its ranks.
func (m *model) job(steps int) string {
	config := fmt.Sprintf(`  model_type: gpt2
  n_positions: %d
  n_embd: %d
  n_layer: %d
  n_head: %d
  embd_pdrop: 0
  resid_pdrop: 0
  attn_pdrop: 0
`, m.block, m.hidden, m.layers, m.heads)
	if m.llama {
		config = fmt.Sprintf(`  model_type: llama
  max_position_embeddings: %d
  hidden_size: %d
  intermediate_size: %d
  num_hidden_layers: %d
  num_attention_heads: %d
  num_key_value_heads: %d
  hidden_act: silu
  rms_norm_eps: 1e-5
  rope_theta: 10000
  tie_word_embeddings: true
`, m.block, m.hidden, m.ffn, m.layers, m.heads, m.kvHeads)
	}
	return fmt.Sprintf(`name: %s
model:
%s  vocab_size: %d
data:
  train: [goroot:src/testdata/Isaac.Newton-Opticks.txt]
  tokenizer: bytes
train:
  seq_len: %d
  global_batch: %d
  steps: %d
  precision: %s
  optimizer: {kind: adamw, lr: 1e-4, clip_norm: 1.0}
cluster: {node: cpu, devices: %d}
plan: {dp: %d, micro_batch: %d}
`, m.name, config, m.vocab, m.block, m.batch, steps, m.precision, m.ranks, m.ranks, m.batch/m.ranks)
}
