package weights

import (
	"slices"

	"github.com/planc-dev/planc/ir/spec"
)

// namings has a row for every family.
var namings = map[string]naming{
	spec.GPT2:  {gpt2, [][2]string{{"transformer.", ""}}, []string{"*.attn.bias", "*.attn.masked_bias"}},
	spec.OPT:   {opt, [][2]string{{"model.", ""}}, nil},
	spec.Bloom: {bloom, [][2]string{{"transformer.", ""}}, nil},
	spec.GPTNeoX: {neox, [][2]string{{"gpt_neox.", ""}, {"embed_out.", "lm_head."}}, []string{"*.attention.bias",
		"*.attention.masked_bias", rotaryTable}},
	spec.Llama:      {llama, withoutModel, []string{rotaryTable}},
	spec.Mistral:    {llama, withoutModel, []string{rotaryTable}},
	spec.Qwen2:      {llama, withoutModel, []string{rotaryTable}},
	spec.Qwen3:      {llama, withoutModel, []string{rotaryTable}},
	spec.Phi3:       {phi3, withoutModel, []string{rotaryTable}},
	spec.Gemma2:     {gemma, withoutModel, []string{rotaryTable}},
	spec.Gemma3:     {gemma, gemma3Spellings, []string{rotaryTable, "*vision_tower.*", "*multi_modal_projector.*"}},
	spec.Mixtral:    {mixtral, withoutModel, []string{rotaryTable}},
	spec.Qwen2MoE:   {qwenMoE, withoutModel, []string{rotaryTable}},
	spec.Qwen3MoE:   {qwenMoE, withoutModel, []string{rotaryTable}},
	spec.DeepseekV2: {deepseek, withoutModel, []string{rotaryTable}},
	spec.DeepseekV3: {deepseek, withoutModel, []string{rotaryTable}},
	spec.BERT: {bert, bertSpellings, []string{"*embeddings.position_ids", "*pooler.dense.*",
		"cls.seq_relationship.*"}},
	spec.ViT: {vit, [][2]string{{"vit.", ""}}, []string{"*pooler.dense.*"}},
}

// rotaryTable is a buffer in older files.
const rotaryTable = "*rotary_emb.inv_freq"

// The bias of BERT's logits, if its head is tied to the embedding and if it is not.
const (
	bertBias        = "cls.predictions.bias"
	bertDecoderBias = "cls.predictions.decoder.bias"
)

var (
	withoutModel = [][2]string{{"model.", ""}}
	// Files of Gemma 3 models with images contain the text model one level deeper.
	gemma3Spellings = [][2]string{{"model.", ""}, {"model.", "language_model.model."},
		{"model.", "model.language_model."}}
	// The first files of BERT were converted from TensorFlow.
	bertSpellings = [][2]string{{"bert.", ""}, {"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias",
		"LayerNorm.beta"}}
)

var gpt2 = slices.Concat(
	table("transformer.wte", "vocab, hidden", "embed.wte"),
	table("transformer.wpe", "position, hidden", "embed.wpe"),
	norm("transformer.h.{layer}.ln_1", "block.ln1"),
	conv1D("transformer.h.{layer}.attn.c_attn", "hidden, [head head_dim]", "block.attn.q", "block.attn.k",
		"block.attn.v"),
	conv1D("transformer.h.{layer}.attn.c_proj", "head head_dim, hidden", "block.attn.o"),
	norm("transformer.h.{layer}.ln_2", "block.ln2"),
	conv1D("transformer.h.{layer}.mlp.c_fc", "hidden, ffn", "block.mlp.up"),
	conv1D("transformer.h.{layer}.mlp.c_proj", "ffn, hidden", "block.mlp.down"),
	norm("transformer.ln_f", "head.ln"),
	table("lm_head", "vocab, hidden", "head.lm_head"),
)

var opt = slices.Concat(
	table("model.decoder.embed_tokens", "vocab, hidden embed", "embed.wte"),
	table("model.decoder.embed_positions", "position, hidden", "embed.wpe"),
	table("model.decoder.project_in", "hidden, embed", "embed.project_in"),
	attention("model.decoder.layers.{layer}.self_attn.", "q_proj", "k_proj", "v_proj", "out_proj"),
	norm("model.decoder.layers.{layer}.self_attn_layer_norm", "block.ln1"),
	linear("model.decoder.layers.{layer}.fc1", "ffn, hidden", "block.mlp.up"),
	linear("model.decoder.layers.{layer}.fc2", "hidden, ffn", "block.mlp.down"),
	norm("model.decoder.layers.{layer}.final_layer_norm", "block.ln2"),
	norm("model.decoder.final_layer_norm", "head.ln"),
	table("model.decoder.project_out", "embed, hidden", "head.project_out"),
	table("lm_head", "vocab, hidden embed", "head.lm_head"),
)

var bloom = slices.Concat(
	table("transformer.word_embeddings", "vocab, hidden", "embed.wte"),
	norm("transformer.word_embeddings_layernorm", "embed.ln"),
	norm("transformer.h.{layer}.input_layernorm", "block.ln1"),
	linear("transformer.h.{layer}.self_attention.query_key_value", "head [head_dim], hidden", "block.attn.q",
		"block.attn.k", "block.attn.v"),
	linear("transformer.h.{layer}.self_attention.dense", "hidden, head head_dim", "block.attn.o"),
	norm("transformer.h.{layer}.post_attention_layernorm", "block.ln2"),
	linear("transformer.h.{layer}.mlp.dense_h_to_4h", "ffn, hidden", "block.mlp.up"),
	linear("transformer.h.{layer}.mlp.dense_4h_to_h", "hidden, ffn", "block.mlp.down"),
	norm("transformer.ln_f", "head.ln"),
	table("lm_head", "vocab, hidden", "head.lm_head"),
)

var neox = slices.Concat(
	table("gpt_neox.embed_in", "vocab, hidden", "embed.wte"),
	norm("gpt_neox.layers.{layer}.input_layernorm", "block.ln1"),
	linear("gpt_neox.layers.{layer}.attention.query_key_value", "head [head_dim], hidden", "block.attn.q",
		"block.attn.k", "block.attn.v"),
	linear("gpt_neox.layers.{layer}.attention.dense", "hidden, head head_dim", "block.attn.o"),
	norm("gpt_neox.layers.{layer}.post_attention_layernorm", "block.ln2"),
	linear("gpt_neox.layers.{layer}.mlp.dense_h_to_4h", "ffn, hidden", "block.mlp.up"),
	linear("gpt_neox.layers.{layer}.mlp.dense_4h_to_h", "hidden, ffn", "block.mlp.down"),
	norm("gpt_neox.final_layer_norm", "head.ln"),
	table("embed_out", "vocab, hidden", "head.lm_head"),
)

// llama also covers Mistral and Qwen: biases and the norms of queries and keys are present if a model has them.
var llama = slices.Concat(llamaEmbed,
	norm("model.layers.{layer}.input_layernorm", "block.ln1"),
	attention("model.layers.{layer}.self_attn.", "q_proj", "k_proj", "v_proj", "o_proj"),
	headNorms,
	norm("model.layers.{layer}.post_attention_layernorm", "block.ln2"),
	llamaMLP, llamaHead)

// mixtral and Qwen's models with experts are llama with other MLPs.
var mixtral = slices.Concat(llamaEmbed,
	norm("model.layers.{layer}.input_layernorm", "block.ln1"),
	attention("model.layers.{layer}.self_attn.", "q_proj", "k_proj", "v_proj", "o_proj"),
	norm("model.layers.{layer}.post_attention_layernorm", "block.ln2"),
	table("model.layers.{layer}.block_sparse_moe.gate", "candidate, hidden", "block.moe.router"),
	table("model.layers.{layer}.block_sparse_moe.experts.{expert}.w1", "expert_ffn, hidden", "block.moe.gate"),
	table("model.layers.{layer}.block_sparse_moe.experts.{expert}.w2", "hidden, expert_ffn", "block.moe.down"),
	table("model.layers.{layer}.block_sparse_moe.experts.{expert}.w3", "expert_ffn, hidden", "block.moe.up"),
	llamaHead)

var qwenMoE = slices.Concat(llamaEmbed,
	norm("model.layers.{layer}.input_layernorm", "block.ln1"),
	attention("model.layers.{layer}.self_attn.", "q_proj", "k_proj", "v_proj", "o_proj"),
	headNorms,
	norm("model.layers.{layer}.post_attention_layernorm", "block.ln2"),
	expertNames("mlp.gate", "mlp.experts.{expert}", "mlp.shared_expert"),
	table("model.layers.{layer}.mlp.shared_expert_gate", "1, hidden", "block.mlp.shared_gate"),
	llamaHead)

// expertNames returns the rows of the router, of an expert's projections, and of those of the shared expert.
func expertNames(router, expert, shared string) []row {
	const layer = "model.layers.{layer}."
	rows := table(layer+router, "candidate, hidden", "block.moe.router")
	for _, p := range []string{"gate", "up"} {
		rows = append(rows, table(layer+expert+"."+p+"_proj", "expert_ffn, hidden", "block.moe."+p)...)
		rows = append(rows, table(layer+shared+"."+p+"_proj", "ffn, hidden", "block.mlp."+p)...)
	}
	rows = append(rows, table(layer+expert+".down_proj", "hidden, expert_ffn", "block.moe.down")...)
	return append(rows, table(layer+shared+".down_proj", "hidden, ffn", "block.mlp.down")...)
}

// gemma has norms after attention and MLP too.
var gemma = slices.Concat(llamaEmbed,
	norm("model.layers.{layer}.input_layernorm", "block.ln1"),
	attention("model.layers.{layer}.self_attn.", "q_proj", "k_proj", "v_proj", "o_proj"),
	headNorms,
	norm("model.layers.{layer}.post_attention_layernorm", "block.ln1_post"),
	norm("model.layers.{layer}.pre_feedforward_layernorm", "block.ln2"),
	llamaMLP,
	norm("model.layers.{layer}.post_feedforward_layernorm", "block.ln2_post"),
	llamaHead)

// phi3 stores queries, keys and values in one tensor, and gate and up projections in another.
var phi3 = slices.Concat(llamaEmbed,
	norm("model.layers.{layer}.input_layernorm", "block.ln1"),
	linear("model.layers.{layer}.self_attn.qkv_proj", "[head group head_dim], hidden", "block.attn.q", "block.attn.k",
		"block.attn.v"),
	linear("model.layers.{layer}.self_attn.o_proj", "hidden, head group head_dim", "block.attn.o"),
	norm("model.layers.{layer}.post_attention_layernorm", "block.ln2"),
	linear("model.layers.{layer}.mlp.gate_up_proj", "[ffn], hidden", "block.mlp.gate", "block.mlp.up"),
	linear("model.layers.{layer}.mlp.down_proj", "hidden, ffn", "block.mlp.down"),
	llamaHead)

var (
	llamaEmbed = table("model.embed_tokens", "vocab, hidden", "embed.wte")
	headNorms  = []row{
		{"model.layers.{layer}.self_attn.q_norm.weight", "head_dim", []string{"block.attn.q_norm.gain"}},
		{"model.layers.{layer}.self_attn.k_norm.weight", "head_dim", []string{"block.attn.k_norm.gain"}},
	}
	llamaMLP = slices.Concat(
		linear("model.layers.{layer}.mlp.gate_proj", "ffn, hidden", "block.mlp.gate"),
		linear("model.layers.{layer}.mlp.up_proj", "ffn, hidden", "block.mlp.up"),
		linear("model.layers.{layer}.mlp.down_proj", "hidden, ffn", "block.mlp.down"))
	llamaHead = slices.Concat(norm("model.norm", "head.ln"), table("lm_head", "vocab, hidden", "head.lm_head"))
)

// deepseek has MLA: one tensor contains the down-projection of keys and values and the shared part of keys; another one
// contains the up-projections of keys and values, head by head.
var deepseek = slices.Concat(llamaEmbed,
	alsoDense(slices.Concat(
		norm("model.layers.{layer}.input_layernorm", "block.ln1"),
		table("model.layers.{layer}.self_attn.q_proj", "head head_dim, hidden", "block.attn.q"),
		table("model.layers.{layer}.self_attn.q_a_proj", "q_latent, hidden", "block.attn.q_down"),
		[]row{{"model.layers.{layer}.self_attn.q_a_layernorm.weight", "q_latent",
			[]string{"block.attn.q_down_norm.gain"}}},
		table("model.layers.{layer}.self_attn.q_b_proj", "head head_dim, q_latent", "block.attn.q_up"),
		table("model.layers.{layer}.self_attn.kv_a_proj_with_mqa", "[kv_latent rotary_dim], hidden",
			"block.attn.kv_down", "block.attn.k_shared"),
		[]row{{"model.layers.{layer}.self_attn.kv_a_layernorm.weight", "kv_latent",
			[]string{"block.attn.kv_down_norm.gain"}}},
		table("model.layers.{layer}.self_attn.kv_b_proj", "head [plain_dim v_dim], kv_latent", "block.attn.k",
			"block.attn.v"),
		table("model.layers.{layer}.self_attn.o_proj", "hidden, head v_dim", "block.attn.o"),
		norm("model.layers.{layer}.post_attention_layernorm", "block.ln2"))),
	table("model.layers.{layer}.mlp.gate_proj", "ffn, hidden", "dense.mlp.gate"),
	table("model.layers.{layer}.mlp.up_proj", "ffn, hidden", "dense.mlp.up"),
	table("model.layers.{layer}.mlp.down_proj", "hidden, ffn", "dense.mlp.down"),
	expertNames("mlp.gate", "mlp.experts.{expert}", "mlp.shared_experts"),
	[]row{{"model.layers.{layer}.mlp.gate.e_score_correction_bias", "candidate", []string{"block.moe.bias"}}},
	llamaHead)

var bert = slices.Concat(
	table("bert.embeddings.word_embeddings", "vocab, hidden", "embed.wte"),
	table("bert.embeddings.position_embeddings", "position, hidden", "embed.wpe"),
	table("bert.embeddings.token_type_embeddings", "type_id, hidden", "embed.wtt"),
	norm("bert.embeddings.LayerNorm", "embed.ln"),
	attention("bert.encoder.layer.{layer}.attention.", "self.query", "self.key", "self.value", "output.dense"),
	norm("bert.encoder.layer.{layer}.attention.output.LayerNorm", "block.ln1"),
	linear("bert.encoder.layer.{layer}.intermediate.dense", "ffn, hidden", "block.mlp.up"),
	linear("bert.encoder.layer.{layer}.output.dense", "hidden, ffn", "block.mlp.down"),
	norm("bert.encoder.layer.{layer}.output.LayerNorm", "block.ln2"),
	linear("cls.predictions.transform.dense", "transform, hidden", "head.transform"),
	norm("cls.predictions.transform.LayerNorm", "head.transform_ln"),
	table("cls.predictions.decoder", "vocab, hidden", "head.lm_head"),
	[]row{{bertBias, "vocab", []string{"head.lm_head_bias"}}},
)

// patchWeight is a convolution over patches that do not overlap.
const patchWeight = "vit.embeddings.patch_embeddings.projection.weight"

var vit = slices.Concat(
	[]row{
		{"vit.embeddings.cls_token", "1, 1, hidden", []string{"embed.wct@0"}},
		{"vit.embeddings.position_embeddings", "1, position, hidden", []string{"embed.wpe"}},
		{patchWeight, "hidden, patch", []string{"embed.patch"}},
		{"vit.embeddings.patch_embeddings.projection.bias", "hidden", []string{"embed.wct@1"}},
	},
	norm("vit.encoder.layer.{layer}.layernorm_before", "block.ln1"),
	attention("vit.encoder.layer.{layer}.attention.", "attention.query", "attention.key", "attention.value",
		"output.dense"),
	norm("vit.encoder.layer.{layer}.layernorm_after", "block.ln2"),
	linear("vit.encoder.layer.{layer}.intermediate.dense", "ffn, hidden", "block.mlp.up"),
	linear("vit.encoder.layer.{layer}.output.dense", "hidden, ffn", "block.mlp.down"),
	norm("vit.layernorm", "head.ln"),
	linear("classifier", "vocab, hidden", "head.lm_head"),
)
