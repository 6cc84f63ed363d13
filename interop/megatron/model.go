package megatron

import (
	"fmt"
	"slices"
	"strings"
)

// The model: Megatron-LM describes one by its parts, planc by a family with sizes, in the vocabulary of Hugging Face's
// config.json.

// model sets the model's fields, unless the script leaves the model to a checkpoint.
func (im *importer) model() {
	s := im.s
	for _, dest := range []string{"hidden_size", "num_attention_heads"} {
		if !s.has(dest) {
			return
		}
	}
	if im.layers() == 0 {
		return
	}
	if vocab, dest := im.vocab(); vocab > 0 {
		m := &modelReader{importer: im, vocab: vocab, vocabFrom: dest}
		m.read()
	}
}

// modelReader sets fields of one family.
type modelReader struct {
	*importer
	vocab     int
	vocabFrom string
}

// set sets a key of config.json.
func (m *modelReader) set(key string, value any, dest string) {
	m.importer.set("model."+key, value, dest)
}

// shape has what decides the family.
type shape struct {
	gated, experts, latent, grouped, rotary, qkNorm, qkvBias, shared bool
}

func (m *modelReader) shape() shape {
	s := m.s
	position := s.text("position_embedding_type")
	return shape{gated: s.flag("swiglu") || s.flag("quick_geglu"), experts: s.number("num_experts") > 0,
		latent: s.flag("multi_latent_attention"), grouped: s.flag("group_query_attention"),
		rotary: position == "rope" || position == "yarn" || position == "mrope" ||
			s.flag("use_rotary_position_embeddings"),
		qkNorm: s.flag("qk_layernorm"), qkvBias: s.flag("add_qkv_bias"),
		shared: s.number("moe_shared_expert_intermediate_size") > 0}
}

// read chooses the family and sets its fields.
func (m *modelReader) read() {
	sh := m.shape()
	switch {
	case sh.latent && sh.experts:
		m.deepseek()
	case sh.latent:
		m.fail("multi_latent_attention", "%s without %s: planc has MLA only in models with experts",
			m.name("multi_latent_attention"), m.name("num_experts"))
	case sh.experts && sh.shared:
		m.decoder("qwen2_moe")
		m.qwenExperts()
		m.set("shared_expert_intermediate_size", m.s.number("moe_shared_expert_intermediate_size"),
			"moe_shared_expert_intermediate_size")
		m.set("qkv_bias", sh.qkvBias || m.s.flag("add_bias_linear"), "add_qkv_bias")
		m.used("moe_shared_expert_gate")
	case sh.experts && !sh.qkNorm && m.headDim() == 0:
		m.decoder("mixtral")
		m.set("intermediate_size", m.expertWidth(), m.widthFrom())
		m.set("num_local_experts", m.s.number("num_experts"), "num_experts")
		m.set("num_experts_per_tok", m.s.number("moe_router_topk"), "moe_router_topk")
	case sh.experts:
		m.decoder("qwen3_moe")
		m.qwenExperts()
	case !sh.gated && !sh.grouped && !sh.rotary:
		m.gpt2()
	case !sh.gated && !sh.grouped:
		m.neox()
	default:
		m.denseDecoder(sh)
	}
	m.routing(sh)
	noteUnread(m, sh)
}

// noteUnread notes options that planc has in DeepSeek's families only.
func noteUnread(m *modelReader, sh shape) {
	const predicted = "mtp_num_layers"
	if m.s.number(predicted) > 0 && len(m.fields[predicted]) == 0 {
		m.note(predicted, "planc has no multi-token prediction in this family: memory and time of its layers "+
			"are missing")
	}
	if sh.latent {
		return
	}
	for _, dest := range []string{"moe_router_num_groups", "moe_router_group_topk", "moe_router_topk_scaling_factor",
		"moe_router_enable_expert_bias"} {
		if m.s.has(dest) {
			m.note(dest, "planc has no such router in this family, which costs the same")
		}
	}
}

// used records that settings take part in the fields that others set.
func (im *importer) used(dests ...string) {
	for _, dest := range dests {
		im.joint[dest] = true
	}
}

// denseDecoder sets a decoder with rotary positions: llama, qwen2 or qwen3.
func (m *modelReader) denseDecoder(sh shape) {
	family := "llama"
	switch {
	case sh.qkNorm:
		family = "qwen3"
	case sh.qkvBias && !m.s.flag("add_bias_linear"):
		family = "qwen2"
	}
	m.decoder(family)
	ffn, dest := m.ffn(), "ffn_hidden_size"
	if !sh.gated {
		const unit = 128 // so that tensor parallelism divides it
		ffn = max(1, (2*ffn/3+unit/2)/unit) * unit
		m.note(dest, "planc prices a SwiGLU MLP of as many parameters")
	}
	m.set("intermediate_size", ffn, dest)
	if family == "llama" {
		m.set("attention_bias", m.s.flag("add_bias_linear"), "add_bias_linear")
		m.set("mlp_bias", m.s.flag("add_bias_linear"), "add_bias_linear")
	}
	m.used("add_qkv_bias", "qk_layernorm", "swiglu", "quick_geglu", "squared_relu")
}

// decoder sets the keys that all decoders with rotary positions share.
func (m *modelReader) decoder(family string) {
	s := m.s
	m.assume("model.model_type", family, "inferred from the model options")
	m.set("vocab_size", m.vocab, m.vocabFrom)
	m.set("hidden_size", s.number("hidden_size"), "hidden_size")
	m.setLayers("num_hidden_layers")
	m.set("num_attention_heads", s.number("num_attention_heads"), "num_attention_heads")
	if strings.HasPrefix(family, "deepseek") { // MLA has keys of each head
		m.assume("model.num_key_value_heads", s.number("num_attention_heads"), m.name("multi_latent_attention"))
	} else {
		m.heads()
	}
	if s.has("max_position_embeddings") {
		m.set("max_position_embeddings", s.number("max_position_embeddings"), "max_position_embeddings")
	}
	m.set("tie_word_embeddings", !s.flag("untie_embeddings_and_output_weights"), "untie_embeddings_and_output_weights")
	m.set("rms_norm_eps", floatText(s.float("layernorm_epsilon")), "layernorm_epsilon")
	m.set("attention_dropout", floatText(s.float("attention_dropout")), "attention_dropout")
	m.set("initializer_range", floatText(s.float("init_method_std")), "init_method_std")
	m.rotary()
	m.used("normalization", "swiglu", "quick_geglu", "position_embedding_type", "use_rotary_position_embeddings",
		"add_bias_linear", "group_query_attention", "add_qkv_bias", "qk_layernorm")
	if s.float("hidden_dropout") > 0 && s.has("hidden_dropout") {
		m.note("hidden_dropout", "planc has no dropout of block outputs in "+family)
	}
	m.positions()
}

// setLayers sets the number of layers.
func (m *modelReader) setLayers(key string) {
	dest := "num_layers"
	if !m.s.has(dest) {
		dest = "encoder_num_layers"
	}
	m.set(key, m.layers(), dest)
}

// heads sets the K/V heads and the size of a head.
func (m *modelReader) heads() {
	s := m.s
	if s.flag("group_query_attention") {
		m.set("num_key_value_heads", s.number("num_query_groups"), "num_query_groups")
	} else {
		m.assume("model.num_key_value_heads", s.number("num_attention_heads"), "no "+m.name("group_query_attention"))
	}
	switch n := m.headDim(); {
	case n > 0:
		m.set("head_dim", n, "kv_channels")
	default: // some families have a default of their own
		m.assume("model.head_dim", s.number("hidden_size")/max(1, s.number("num_attention_heads")),
			m.name("hidden_size")+" / "+m.name("num_attention_heads"))
	}
}

// headDim returns the size of a head if it does not follow from the width; 0 if it does.
func (m *modelReader) headDim() int {
	n := m.s.number("kv_channels")
	if n*m.s.number("num_attention_heads") == m.s.number("hidden_size") {
		m.used("kv_channels")
		return 0
	}
	return n
}

// rotary sets the rotary positions.
func (m *modelReader) rotary() {
	s := m.s
	m.set("rope_theta", floatText(s.float("rotary_base")), "rotary_base")
	if s.flag("use_rope_scaling") {
		const original = 8192 // Megatron-LM, rotary_pos_embedding.py: Llama 3.1's constants
		m.set("rope_scaling", fmt.Sprintf("{rope_type: llama3, factor: %s, low_freq_factor: 1.0, "+
			"high_freq_factor: 4.0, original_max_position_embeddings: %d}", floatText(s.float("rope_scaling_factor")),
			original), "use_rope_scaling")
		m.used("rope_scaling_factor")
	}
	if s.float("rotary_percent") != 1 {
		m.note("rotary_percent", "planc rotates whole heads in this family, which costs the same")
	}
}

// positions notes positions that the family does not have.
func (m *modelReader) positions() {
	const dest = "position_embedding_type"
	switch text := m.s.text(dest); {
	case m.s.flag("use_rotary_position_embeddings"):
	case text == "learned_absolute":
		m.note("max_position_embeddings", "planc prices rotary positions instead of the position table")
	case text != "rope":
		m.note(dest, "planc prices rotary positions")
	}
}

// ffn returns the width of the MLP: by default 4 · hidden, or 8/3 · hidden with SwiGLU.
func (m *modelReader) ffn() int {
	if n := m.s.number("ffn_hidden_size"); n > 0 {
		return n
	}
	hidden := m.s.number("hidden_size")
	if m.s.flag("swiglu") {
		const unit = 64 // Megatron-LM, arguments.py: validate_args
		return 4 * hidden * 2 / 3 / unit * unit
	}
	return 4 * hidden
}

// gpt2 sets a decoder with learned positions and a plain MLP.
func (m *modelReader) gpt2() {
	s := m.s
	m.assume("model.model_type", "gpt2", "inferred from the model options")
	m.set("vocab_size", m.vocab, m.vocabFrom)
	m.set("n_embd", s.number("hidden_size"), "hidden_size")
	m.setLayers("n_layer")
	m.set("n_head", s.number("num_attention_heads"), "num_attention_heads")
	m.set("n_positions", max(s.number("max_position_embeddings"), s.number("seq_length")), "max_position_embeddings")
	m.set("n_inner", m.ffn(), "ffn_hidden_size")
	m.set("tie_word_embeddings", !s.flag("untie_embeddings_and_output_weights"), "untie_embeddings_and_output_weights")
	m.set("layer_norm_epsilon", floatText(s.float("layernorm_epsilon")), "layernorm_epsilon")
	m.set("attn_pdrop", floatText(s.float("attention_dropout")), "attention_dropout")
	m.set("resid_pdrop", floatText(s.float("hidden_dropout")), "hidden_dropout")
	m.set("embd_pdrop", floatText(s.float("hidden_dropout")), "hidden_dropout")
	m.set("initializer_range", floatText(s.float("init_method_std")), "init_method_std")
	m.activation("activation_function")
	m.plainParts("gpt2")
}

// neox sets a decoder with rotary positions and a plain MLP.
func (m *modelReader) neox() {
	s := m.s
	m.assume("model.model_type", "gpt_neox", "inferred from the model options")
	m.assume("model.use_parallel_residual", false, "Megatron-LM's blocks")
	m.set("vocab_size", m.vocab, m.vocabFrom)
	m.set("hidden_size", s.number("hidden_size"), "hidden_size")
	m.setLayers("num_hidden_layers")
	m.set("num_attention_heads", s.number("num_attention_heads"), "num_attention_heads")
	if s.has("max_position_embeddings") {
		m.set("max_position_embeddings", s.number("max_position_embeddings"), "max_position_embeddings")
	}
	m.set("intermediate_size", m.ffn(), "ffn_hidden_size")
	m.set("tie_word_embeddings", !s.flag("untie_embeddings_and_output_weights"), "untie_embeddings_and_output_weights")
	m.set("layer_norm_eps", floatText(s.float("layernorm_epsilon")), "layernorm_epsilon")
	m.set("attention_dropout", floatText(s.float("attention_dropout")), "attention_dropout")
	m.set("hidden_dropout", floatText(s.float("hidden_dropout")), "hidden_dropout")
	m.set("initializer_range", floatText(s.float("init_method_std")), "init_method_std")
	m.set("rotary_pct", floatText(s.float("rotary_percent")), "rotary_percent")
	m.set("rotary_emb_base", floatText(s.float("rotary_base")), "rotary_base")
	m.activation("hidden_act")
	m.used("position_embedding_type", "use_rotary_position_embeddings")
	m.plainParts("gpt_neox")
}

// activation sets the activation of a plain MLP.
func (m *modelReader) activation(key string) {
	switch {
	case m.s.flag("squared_relu"):
		m.set(key, "relu", "squared_relu")
		m.note("squared_relu", "planc prices relu")
	case m.s.flag("openai_gelu"):
		m.set(key, "gelu_new", "openai_gelu")
	default:
		m.assume("model."+key, "gelu", "Megatron-LM's gelu")
	}
}

// plainParts notes parts of blocks that the family has in one form only.
func (m *modelReader) plainParts(family string) {
	m.headDimOnly(family)
	if m.s.text("normalization") == "RMSNorm" {
		m.note("normalization", "planc has LayerNorm in "+family+", which costs about the same")
	}
	if !m.s.flag("add_bias_linear") {
		m.note("add_bias_linear", "planc has biases in "+family+", which are less than 0.1 % of the parameters")
	}
	if m.s.flag("qk_layernorm") {
		m.note("qk_layernorm", "planc has no norm of queries and keys in "+family)
	}
	m.used("position_embedding_type", "normalization")
}

// headDimOnly refuses a size of heads that the family cannot have.
func (m *modelReader) headDimOnly(family string) {
	if n := m.headDim(); n > 0 {
		m.fail("kv_channels", "%s %d is not %s / %s, which planc does not have in %s", m.name("kv_channels"), n,
			m.name("hidden_size"), m.name("num_attention_heads"), family)
	}
}

// tokenizerSizes are the sizes of known vocabularies, by a word in the name of the tokenizer or its model. Sources: the
// config.json of these models on the Hugging Face hub.
var tokenizerSizes = []struct {
	word string
	size int
}{
	{"gpt2bpe", 50257}, {"llama-3", 128256}, {"llama3", 128256}, {"llama-2", 32000}, {"llama2", 32000},
	{"qwen3", 151936}, {"qwen2", 151936}, {"mixtral", 32000}, {"mistral-7b", 32000}, {"deepseek-v3", 129280},
	{"deepseek-v2", 102400}, {"gpt2", 50257},
}

// vocab returns the size of the vocabulary and the setting that says it; 0 if the file does not say it.
func (im *importer) vocab() (int, string) {
	s := im.s
	if n := s.number("padded_vocab_size"); n > 0 {
		return n, "padded_vocab_size"
	}
	n, dest := s.number("vocab_size"), "vocab_size"
	if n == 0 {
		n, dest = im.tokenizerSize()
	}
	if unit := s.number("make_vocab_size_divisible_by"); n > 0 && s.has("make_vocab_size_divisible_by") && unit > 0 {
		unit *= s.number("tensor_model_parallel_size")
		return (n + unit - 1) / unit * unit, "make_vocab_size_divisible_by"
	}
	if n == 0 {
		im.missingVocab()
	}
	return n, dest
}

// tokenizerSize returns the size of a known tokenizer's vocabulary.
func (im *importer) tokenizerSize() (int, string) {
	for _, dest := range []string{"tokenizer_model", "tokenizer_type"} {
		text := strings.ToLower(im.s.text(dest))
		for _, t := range tokenizerSizes {
			if strings.Contains(text, t.word) {
				return t.size, dest
			}
		}
	}
	const merges = "merge_file"
	if im.s.has(merges) && !im.s.has("tokenizer_type") { // of GPT-2's tokenizer
		const gpt2 = 50257
		return gpt2, merges
	}
	return 0, "tokenizer_type"
}

// missingVocab explains why the model is not read.
func (im *importer) missingVocab() {
	im.out.NoModel = "the size of the vocabulary is not in the file (" + im.name("vocab_size") + ")"
	if im.isLog {
		im.out.NoModel = "the size of the vocabulary is not in the log"
	}
	why := "not read, because " + im.out.NoModel + ": give --model"
	for _, dest := range []string{"hidden_size", "num_layers", "num_attention_heads", "ffn_hidden_size"} {
		im.note(dest, why)
	}
}

// expertWidth returns the width of an expert's hidden layer.
func (m *modelReader) expertWidth() int {
	if n := m.s.number("moe_ffn_hidden_size"); n > 0 {
		return n
	}
	return m.ffn()
}

// widthFrom returns the setting that says an expert's width.
func (m *modelReader) widthFrom() string {
	if m.s.has("moe_ffn_hidden_size") {
		return "moe_ffn_hidden_size"
	}
	return "ffn_hidden_size"
}

// denseLayers returns the number of leading layers without experts. ok is false if other layers have none.
func (m *modelReader) denseLayers() (n int, ok bool) {
	text := m.s.text("moe_layer_freq")
	if text == "1" || text == "" {
		return 0, true
	}
	pattern := layerPattern(text, m.layers())
	n = slices.Index(pattern, 1)
	if n < 0 {
		return 0, false
	}
	return n, !slices.Contains(pattern[n:], 0)
}

// layerPattern returns which layers have experts: 1 for those that do. The text is a number N, every N-th layer, or a
// Python list: "([0]*3+[1]*58)". It returns nothing for another text.
func layerPattern(text string, layers int) (out []int) {
	if every := atoi(text); every > 0 {
		for i := range layers {
			out = append(out, map[bool]int{true: 1}[i%every == 0])
		}
		return out
	}
	text = strings.NewReplacer(" ", "", "(", "", ")", "").Replace(text)
	for _, term := range strings.Split(text, "+") {
		list, count, repeated := strings.Cut(term, "*")
		n := 1
		if repeated {
			n = atoi(count)
		}
		if n < 0 || n > maxLayout {
			return nil
		}
		for range n {
			for _, v := range strings.Split(strings.Trim(list, "[]"), ",") {
				out = append(out, atoi(v))
			}
		}
		if len(out) > maxLayout {
			return nil
		}
	}
	return out
}
