package main

import (
	"fmt"
	"strings"
)

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
	Curve                  bool       // 200 steps from given weights
	Programs               []compiled // for the nodes; set by build, as the following field is
	Params                 float64
}

// compiled is a model's plan for one GPU of a node.
type compiled struct {
	Node   string // in planc's catalogue
	Binary string
	Micro  int     // micro-batch
	Step   float64 // predicted seconds
	Bytes  int64   // predicted memory
}

// nodes are the nodes with a GPU on which programs are measured: with 80 GB and with 141 GB.
var nodes = []string{"dgx-h100", "dgx-h200"}

// programFor returns the program for a GPU by the name that nvidia-smi prints. It is the first one, for the GPU with
// the least memory, if the name is of none.
func (m *model) programFor(gpu string) compiled {
	for _, p := range m.Programs {
		if _, chip, _ := strings.Cut(p.Node, "-"); strings.Contains(strings.ToLower(gpu), chip) {
			return p
		}
	}
	if len(m.Programs) == 0 {
		return compiled{}
	}
	return m.Programs[0]
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

// job returns planc's job for one GPU of a node.
func (m *model) job(node string) string {
	return fmt.Sprintf(`name: %s
model: %s
data: {train: [tokens.bin]}
train:
  seq_len: %d
  global_batch: %d
  steps: 1000000
  precision: bf16
  optimizer: {kind: adamw, lr: 3e-4, clip_norm: 1.0}
cluster: {node: %s, devices: 1}
`, m.Name, m.config(), m.Seq, m.Batch, node)
}
