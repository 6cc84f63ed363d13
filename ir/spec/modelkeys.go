package spec

import (
	"reflect"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// family says how config.json of one model_type is read. A new family is a row of families, a struct of its keys, and
// rows in ir/zoo and ir/zoo/weights.
type family struct {
	name          string
	hf            hfKeys
	names         keys
	architectures string // names that config.json may use for the model; planc writes the first
	neutral       string // keys that have no effect in this family
	nulls         string // keys that may be null in config.json
	// pad_token_id if it is absent; "none" if there is none then, "" if the token is not special in this family
	padding  string
	position string // Learned, Rotary or Alibi
	rms      bool   // norms are RMSNorm
	gated    bool   // the MLP has a gate projection (SwiGLU, GeGLU)
}

// families lists all supported families.
var families = []family{
	{name: GPT2, hf: keysOf(gpt2Defaults, gpt2Config), names: gpt2Sizes, architectures: "GPT2LMHeadModel",
		position: Learned,
		nulls:    "n_inner"},
	{name: OPT, hf: keysOf(optDefaults, optConfig), names: optSizes, architectures: "OPTForCausalLM", position: Learned,
		padding: "1",
		nulls:   "word_embed_proj_dim"},
	{name: Bloom, hf: keysOf(bloomDefaults, bloomConfig), names: bloomSizes, architectures: "BloomForCausalLM",
		position: Alibi,
		neutral: `slow_but_exact masked_softmax_fusion bias_dropout_fusion attention_softmax_in_fp32 skip_bias_add
			skip_bias_add_qkv offset_alibi`,
		nulls: "n_embed seq_length"},
	{name: GPTNeoX, hf: keysOf(neoxDefaults, neoxConfig), names: oldSizes, architectures: "GPTNeoXForCausalLM",
		position: Rotary,
		neutral:  "classifier_dropout",
		nulls:    "rope_scaling rope_parameters"},
	{name: Llama, hf: keysOf(llamaDefaults, llamaConfig), names: decoderSizes, architectures: "LlamaForCausalLM",
		position: Rotary, padding: "none", rms: true, gated: true,
		nulls: "rope_scaling rope_parameters num_key_value_heads head_dim"},
	{name: Mistral, hf: keysOf(mistralDefaults, mistralConfig), names: decoderSizes,
		architectures: "MistralForCausalLM",
		position:      Rotary, padding: "none", rms: true, gated: true,
		nulls: "rope_scaling rope_parameters head_dim sliding_window"},
	{name: Qwen2, hf: keysOf(qwen2Defaults, qwen2Config), names: decoderSizes, architectures: "Qwen2ForCausalLM",
		position: Rotary, padding: "none", rms: true, gated: true,
		nulls: "rope_scaling rope_parameters num_key_value_heads sliding_window layer_types"},
	{name: Qwen3, hf: keysOf(qwen3Defaults, qwen3Config), names: decoderSizes, architectures: "Qwen3ForCausalLM",
		position: Rotary, padding: "none", rms: true, gated: true,
		nulls: "rope_scaling rope_parameters num_key_value_heads sliding_window layer_types"},
	{name: Phi3, hf: keysOf(phi3Defaults, phi3Config), names: decoderSizes, architectures: "Phi3ForCausalLM",
		position: Rotary, padding: "32000", rms: true, gated: true,
		nulls: "rope_scaling rope_parameters num_key_value_heads sliding_window attention_bias"},
	{name: Gemma2, hf: keysOf(gemma2Defaults, gemma2Config), names: decoderSizes, architectures: "Gemma2ForCausalLM",
		position: Rotary, padding: "0", rms: true, gated: true,
		neutral: "cache_implementation",
		nulls:   gemmaNulls},
	{name: Gemma3, hf: keysOf(gemma3Defaults, gemma3Config), names: decoderSizes, architectures: "Gemma3ForCausalLM",
		position: Rotary, padding: "0", rms: true, gated: true,
		neutral: "cache_implementation",
		nulls:   gemmaNulls},
	{name: Mixtral, hf: keysOf(mixtralDefaults, mixtralConfig), names: decoderSizes,
		architectures: "MixtralForCausalLM",
		position:      Rotary, padding: "none", rms: true, gated: true,
		nulls: "rope_scaling rope_parameters head_dim sliding_window"},
	{name: Qwen2MoE, hf: keysOf(qwen2MoEDefaults, qwen2MoEConfig), names: decoderSizes,
		architectures: "Qwen2MoeForCausalLM", position: Rotary, padding: "none", rms: true, gated: true,
		nulls: "rope_scaling rope_parameters sliding_window layer_types mlp_only_layers num_local_experts"},
	{name: Qwen3MoE, hf: keysOf(qwen3MoEDefaults, qwen3MoEConfig), names: decoderSizes,
		architectures: "Qwen3MoeForCausalLM", position: Rotary, padding: "none", rms: true, gated: true,
		nulls: "rope_scaling rope_parameters sliding_window max_window_layers layer_types mlp_only_layers"},
	{name: DeepseekV2, hf: keysOf(deepseekV2Defaults, deepseekV2Config), names: deepseekSizes,
		architectures: "DeepseekV2ForCausalLM", position: Rotary, padding: "none", rms: true,
		gated: true, neutral: mlaNeutral,
		nulls: "rope_scaling rope_parameters num_key_value_heads q_lora_rank n_group topk_group norm_topk_prob " +
			"scoring_func moe_layer_freq aux_loss_alpha seq_aux head_dim"},
	{name: DeepseekV3, hf: keysOf(deepseekV3Defaults, deepseekV3Config), names: deepseekSizes,
		architectures: "DeepseekV3ForCausalLM", position: Rotary, padding: "none", rms: true,
		gated: true, neutral: mlaNeutral,
		nulls: "rope_scaling rope_parameters num_key_value_heads q_lora_rank n_group topk_group topk_method " +
			"num_nextn_predict_layers scoring_func moe_layer_freq aux_loss_alpha seq_aux head_dim"},
	{name: BERT, hf: keysOf(bertDefaults, bertConfig), names: oldSizes, architectures: "BertForMaskedLM",
		position: Learned, padding: "0",
		neutral: "classifier_dropout gradient_checkpointing"},
	{name: ViT, hf: keysOf(vitDefaults, vitConfig), names: vitSizes, architectures: "ViTForImageClassification",
		position: Learned,
		neutral:  "encoder_stride pooler_act pooler_output_size",
		nulls:    "id2label problem_type"},
}

// gemmaNulls are the keys that may be null in both of Gemma's families.
const gemmaNulls = "sliding_window rope_scaling rope_parameters hidden_act layer_types final_logit_softcapping " +
	"attn_logit_softcapping use_bidirectional_attention"

// mlaNeutral are two keys that transformers derives from others, and one that concerns serving.
const mlaNeutral = "qk_head_dim ep_size"

// byShape is the hint for a model of an unknown family: most decoders are similar enough to a known one to be planned.
const byShape = "a decoder of another family can be planned by its sizes: model: {model_type: llama, " +
	"hidden_size: 4096, ...}"

// familyOf returns the row of a model_type. Its name is "" if there is none.
func familyOf(name string) family {
	for _, f := range families {
		if f.name == name {
			return f
		}
	}
	return family{}
}

// familyNames returns the model types in the order of the table.
func familyNames() []string {
	var names []string
	for _, f := range families {
		names = append(names, f.name)
	}
	return names
}

// hfKeys holds the keys of a family's config.json with their defaults, and the function that turns them into a Config.
type hfKeys struct {
	absent reflect.Value
	read   func(*source) *Config
}

// source is a config.json that is being read.
type source struct {
	*strict.Doc
	diags *ir.Diags
}

// keysOf returns the hfKeys of struct T. config may set the fields of hf that have two spellings, because Config.HF
// writes hf.
func keysOf[T any](absent T, config func(s *source, hf *T) *Config) hfKeys {
	return hfKeys{absent: reflect.ValueOf(absent), read: func(s *source) *Config {
		hf := absent
		*s.diags = append(*s.diags, s.Decode(&hf)...)
		c := config(s, &hf)
		c.hf = hf
		return c
	}}
}

// family returns the family of model_type, or else of architectures; "" if planc has no such family.
func (l *modelLoader) family(m, n *strict.Node) string {
	name := ""
	if t := m.Get("model_type"); t != nil {
		name = t.Text
		if familyOf(name).name == "" {
			l.unknownFamily(t)
			return ""
		}
	}
	a := m.Get("architectures")
	if a == nil || len(a.Items) == 0 {
		if name == "" {
			l.diags.Addf(n.Pos, Missing, "the model has no model_type; use one of %s",
				strings.Join(familyNames(), ", "))
		}
		return name
	}
	found, known := "", []string{}
	for _, f := range families {
		known = append(known, strings.Fields(f.architectures)...)
		if slices.Contains(strings.Fields(f.architectures), a.Items[0].Text) {
			found = f.name
		}
	}
	switch {
	case found == "":
		l.unknownArchitecture(a.Items[0], familyOf(name), known)
		return ""
	case name != "" && found != name:
		l.diags.Addf(a.Items[0].Pos, Conflict, "architecture %s does not belong to model_type %s",
			a.Items[0].Text, name)
		return ""
	}
	return found
}

// unknownFamily reports an unknown model_type and lists the known ones.
func (l *modelLoader) unknownFamily(t *strict.Node) {
	d := ir.Diag{Pos: t.Pos, Code: strict.NotYet, Msg: "model_type " + t.Text + " is not supported yet"}
	d.Fix = ir.Nearest(t.Text, familyNames())
	d.Msg += "; use one of " + strings.Join(familyNames(), ", ")
	if d.Fix == "" {
		d.Msg += "; " + byShape
	}
	*l.diags = append(*l.diags, d)
}

// unknownArchitecture reports an unknown architecture and lists the known ones, only the family's if model_type names a
// family.
func (l *modelLoader) unknownArchitecture(a *strict.Node, f family, known []string) {
	if f.name != "" {
		l.diags.Addf(a.Pos, strict.NotYet, "architecture %s is not supported yet for %s; use %s", a.Text, f.name,
			strings.Join(strings.Fields(f.architectures), ", "))
		return
	}
	l.diags.Addf(a.Pos, strict.NotYet, "architecture %s is not supported yet; use one of %s; %s", a.Text,
		strings.Join(known, ", "), byShape)
}

// textModel returns the text model of a multi-modal model, or the model itself.
func (l *modelLoader) textModel(m *strict.Node) *strict.Node {
	if t := m.Get("model_type"); t == nil || t.Text != "gemma3" {
		return m
	}
	text := m.Get("text_config")
	if text == nil || text.Kind != strict.Map {
		l.diags.Addf(m.Get("model_type").Pos, Missing,
			"gemma3 has no text_config, which describes its text model: planc trains only the text model")
		return nil
	}
	text = text.Clone()
	text.Put(strict.Field{Key: "model_type", Pos: text.Pos, Value: &strict.Node{Kind: strict.String, Text: Gemma3,
		Pos: text.Pos}})
	return text
}

// drop removes the keys that other tools keep in config.json and that do not affect training. In a file from another
// tool it also removes unknown keys that are null, false, 0 or empty. Any other unknown key may change the model, so it
// is an error.
func (l *modelLoader) drop(m *strict.Node, f family) *strict.Node {
	known := strict.Keys(f.hf.absent.Type())
	c := *m
	c.Fields = slices.DeleteFunc(slices.Clone(m.Fields), func(field strict.Field) bool {
		switch {
		case slices.Contains(known, field.Key):
			return false
		case strings.HasPrefix(field.Key, "_"), strings.HasPrefix(field.Key, "summary_"),
			slices.Contains(otherTools, field.Key),
			slices.Contains(strings.Fields(f.neutral), field.Key):
			return true
		}
		if !slices.Contains(l.otherToolFiles, field.Pos.File) {
			return false
		}
		if !neutral(field.Value) {
			*l.diags = append(*l.diags, ir.Diag{Pos: field.Pos, Code: strict.NotYet, Fix: ir.Nearest(field.Key, known),
				Msg: field.Key + " is not supported yet for " + f.name + "; if it does not affect training, remove " +
					"it"})
		}
		return true
	})
	return &c
}

func neutral(n *strict.Node) bool {
	switch n.Kind {
	case strict.Map:
		return len(n.Fields) == 0
	case strict.List:
		return len(n.Items) == 0
	}
	return slices.Contains([]string{"", "null", "~", "false", "False", "0", "0.0"}, n.Text)
}

// otherTools are keys of config.json that concern generation, storage and bookkeeping, or a task other than the
// family's.
var otherTools = strings.Fields(`
	architectures transformers_version torch_dtype dtype use_cache bos_token_id eos_token_id pad_token_id unk_token_id
	sep_token_id decoder_start_token_id n_ctx pretraining_tp task_specific_params id2label label2id
	is_decoder is_encoder_decoder output_attentions output_hidden_states return_dict torchscript name_or_path
	problem_type finetuning_task tokenizer_class prefix chunk_size_feed_forward use_return_dict
	max_length min_length do_sample early_stopping num_beams num_beam_groups diversity_penalty temperature
	top_k top_p typical_p repetition_penalty length_penalty no_repeat_ngram_size num_return_sequences
	bad_words_ids forced_bos_token_id forced_eos_token_id exponential_decay_length_penalty suppress_tokens
	begin_suppress_tokens remove_invalid_values output_scores return_dict_in_generate attn_implementation
	tf_legacy_loss use_bfloat16 unsloth_version unsloth_fixed auto_map`)
