package main

import "fmt"

// model is a model that both sides train, without dropout.
type model struct {
	Name                   string
	Base                   string // name in planc's catalogue; "" for its own config
	Llama                  bool   // RMSNorm, rotary positions, SwiGLU
	Layers, Heads, KVHeads int
	Hidden, FFN, Vocab     int
	Seq, Batch             int // tokens per sequence, sequences per step
	Micros                 []int
	Tiny                   bool
	Curve                  bool // 200 steps from given weights
	Micro                  int  // micro-batch of the plan; set by build, as the following fields are
	PredictedStep          float64
	PredictedBytes         int64
	Params                 float64
}

// gpt returns a GPT-2 with its own vocabulary, of a model's sizes.
func gpt(m model) model {
	m.KVHeads, m.FFN, m.Vocab = m.Heads, 4*m.Hidden, 50257
	return m
}

// llama returns a Llama of 1.1 billion parameters with the shape of TinyLlama.
func llama(name string, seq, batch int, micros ...int) model {
	return model{Name: name, Llama: true, Layers: 22, Heads: 32, KVHeads: 4, Hidden: 2048, FFN: 5632, Vocab: 32000,
		Seq: seq, Batch: batch, Micros: micros}
}

// models are the models that build compiles. Micros are micro-batches that the peer tries in addition to planc's; it
// uses the fastest.
var models = []model{
	gpt(model{Name: "gpt2-124m", Base: "gpt2-124m", Layers: 12, Heads: 12, Hidden: 768, Seq: 1024, Batch: 64,
		Micros: []int{64, 32}}),
	gpt(model{Name: "gpt2-350m", Base: "gpt2-350m", Layers: 24, Heads: 16, Hidden: 1024, Seq: 1024, Batch: 32,
		Micros: []int{32, 16}}),
	gpt(model{Name: "gpt2-774m", Base: "gpt2-774m", Layers: 36, Heads: 20, Hidden: 1280, Seq: 1024, Batch: 32,
		Micros: []int{16, 8}}),
	gpt(model{Name: "gpt2-1558m", Base: "gpt2-1558m", Layers: 48, Heads: 25, Hidden: 1600, Seq: 1024, Batch: 32,
		Micros: []int{16, 8}}),
	llama("llama-1b", 1024, 32, 32, 16),
	gpt(model{Name: "gpt2-124m-4096", Base: "gpt2-124m", Layers: 12, Heads: 12, Hidden: 768, Seq: 4096, Batch: 16,
		Micros: []int{16, 8}}),
	llama("llama-1b-4096", 4096, 8, 8, 4),
	{Name: "curve", Base: "gpt2-124m", Layers: 12, Heads: 12, KVHeads: 12, Hidden: 768, FFN: 3072, Vocab: 50257,
		Seq: 1024, Batch: 16, Curve: true},
	{Name: "tiny", Layers: 2, Heads: 2, KVHeads: 2, Hidden: 32, FFN: 128, Vocab: 256, Seq: 16, Batch: 4,
		Micros: []int{4, 2}, Tiny: true},
	{Name: "tiny-llama", Llama: true, Layers: 2, Heads: 4, KVHeads: 2, Hidden: 32, FFN: 48, Vocab: 256, Seq: 16,
		Batch: 4, Tiny: true},
}

// tinyOf returns the model that replaces another one with -tiny.
func tinyOf(name string) string {
	if m, ok := modelNamed(models, name); ok && m.Llama {
		return "tiny-llama"
	}
	return "tiny"
}

func modelNamed(all []model, name string) (model, bool) {
	for _, m := range all {
		if m.Name == name {
			return m, true
		}
	}
	return model{}, false
}

// chained reports whether the model's fused groups are timed by themselves: once for each width.
func (m *model) chained() bool { return !m.Curve && m.Seq <= 1024 }

// flopsPerToken uses llm.c's formula: six per parameter, and attention's.
func (m *model) flopsPerToken() float64 {
	return 6*m.Params + 6*float64(m.Layers)*float64(m.Hidden)*float64(m.Seq)
}

// config returns the model's mapping in a job.
func (m *model) config() string {
	switch {
	case m.Base != "":
		return fmt.Sprintf("{base: %s, n_positions: %d, embd_pdrop: 0, resid_pdrop: 0, attn_pdrop: 0}", m.Base,
			max(m.Seq, 1024))
	case m.Llama:
		return fmt.Sprintf("{model_type: llama, max_position_embeddings: %d, hidden_size: %d, intermediate_size: %d, "+
			"num_hidden_layers: %d, num_attention_heads: %d, "+
			"num_key_value_heads: %d, vocab_size: %d, hidden_act: silu, rms_norm_eps: 1e-5, rope_theta: 10000, "+
			"tie_word_embeddings: false}",
			m.Seq, m.Hidden, m.FFN, m.Layers, m.Heads, m.KVHeads, m.Vocab)
	}
	return fmt.Sprintf("{model_type: gpt2, n_positions: %d, n_embd: %d, n_layer: %d, n_head: %d, vocab_size: %d, "+
		"embd_pdrop: 0, resid_pdrop: 0, attn_pdrop: 0}",
		m.Seq, m.Hidden, m.Layers, m.Heads, m.Vocab)
}

// job returns planc's job for one H200. It uses half of the memory, because the peer keeps its half between its
// turns.
func (m *model) job() string {
	return fmt.Sprintf(`name: %s
model: %s
data: {train: [tokens.bin]}
train:
  seq_len: %d
  global_batch: %d
  steps: 1000000
  precision: bf16
  optimizer: {kind: adamw, lr: 3e-4, clip_norm: 1.0}
cluster: {node: dgx-h200, devices: 1}
objective: {headroom: 0.5}
`, m.Name, m.config(), m.Seq, m.Batch)
}
