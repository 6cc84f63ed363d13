package spec

import (
	"reflect"
	"slices"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// families are the model families that can be built. A new one is a row, a struct of its keys, and a builder
// in ir/zoo.
var families = map[string]struct {
	read         func(*strict.Doc, *ir.Diags) *Config
	keys         []string // of config.json
	names        keys
	architecture string
}{
	GPT2:  {gpt2Config, strict.Keys(reflect.TypeFor[hfGPT2]()), gpt2Keys, "GPT2LMHeadModel"},
	Llama: {llamaConfig, strict.Keys(reflect.TypeFor[hfLlama]()), llamaKeys, "LlamaForCausalLM"},
}

const familyList = "gpt2, llama"

// family is what model_type says, else architectures; "" if it is not one of ours.
func (l *modelLoader) family(m, n *strict.Node) string {
	family := ""
	if t := m.Get("model_type"); t != nil {
		family = t.Text
		if _, ok := families[family]; !ok {
			*l.diags = append(*l.diags, ir.Diag{Pos: t.Pos, Code: strict.NotYet, Fix: ir.Nearest(family, []string{GPT2, Llama}),
				Msg: "model_type " + family + " is not there yet; there are " + familyList})
			return ""
		}
	}
	if a := m.Get("architectures"); a != nil && len(a.Items) > 0 {
		of := ""
		for name, f := range families {
			if a.Items[0].Text == f.architecture {
				of = name
			}
		}
		switch {
		case of == "":
			l.diags.Addf(a.Items[0].Pos, strict.NotYet, "architecture %s is not there yet; there are GPT2LMHeadModel, LlamaForCausalLM", a.Items[0].Text)
			return ""
		case family == "":
			return of
		case of != family:
			l.diags.Addf(a.Items[0].Pos, Conflict, "architecture %s is not of model_type %s", a.Items[0].Text, family)
			return ""
		}
	}
	if family == "" {
		l.diags.Addf(n.Pos, Missing, "the model has no model_type; there are %s", familyList)
	}
	return family
}

// drop removes what other tools keep in config.json and does not change training. In a file that another tool
// wrote, an unknown key that is null, false, 0 or empty asks for nothing and is removed too; any other may
// change the model, so it is refused.
func (l *modelLoader) drop(m *strict.Node, family string, known []string) *strict.Node {
	c := *m
	c.Fields = slices.DeleteFunc(slices.Clone(m.Fields), func(f strict.Field) bool {
		switch {
		case slices.Contains(known, f.Key):
			return false
		case strings.HasPrefix(f.Key, "_"), strings.HasPrefix(f.Key, "summary_"), slices.Contains(otherTools, f.Key):
			return true
		}
		if !slices.Contains(l.foreign, f.Pos.File) {
			return false
		}
		if !neutral(f.Value) {
			l.diags.Addf(f.Pos, strict.NotYet, "%s is not there yet for %s; if it does not concern training, remove it", f.Key, family)
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

// otherTools are keys of config.json that concern generation, classification, storage and bookkeeping.
var otherTools = strings.Fields(`
	architectures transformers_version torch_dtype dtype use_cache bos_token_id eos_token_id pad_token_id
	sep_token_id decoder_start_token_id n_ctx pretraining_tp task_specific_params id2label label2id
	is_decoder is_encoder_decoder output_attentions output_hidden_states return_dict torchscript name_or_path
	problem_type finetuning_task tokenizer_class prefix chunk_size_feed_forward use_return_dict
	max_length min_length do_sample early_stopping num_beams num_beam_groups diversity_penalty temperature
	top_k top_p typical_p repetition_penalty length_penalty no_repeat_ngram_size num_return_sequences
	bad_words_ids forced_bos_token_id forced_eos_token_id exponential_decay_length_penalty suppress_tokens
	begin_suppress_tokens remove_invalid_values output_scores return_dict_in_generate attn_implementation
	tf_legacy_loss use_bfloat16 unsloth_version unsloth_fixed auto_map`)
