package torchtitan

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/ir/spec/strict"
)

//go:embed flavors.tsv
var flavorsTSV string

// model is a model that torchtitan has, by its name and flavor, with the arguments of its Python class.
type model struct {
	name, flavor string
	args         arguments
}

// arguments are those of torchtitan's model classes that decide a model's shape.
type arguments struct {
	Dim       int      `json:"dim"`
	Layers    int      `json:"n_layers"`
	Heads     int      `json:"n_heads"`
	KVHeads   int      `json:"n_kv_heads"`
	Vocab     int      `json:"vocab_size"`
	Multiple  int      `json:"multiple_of"`
	FFNFactor *float64 `json:"ffn_dim_multiplier"`
	NormEps   float64  `json:"norm_eps"`
	RopeTheta float64  `json:"rope_theta"`
	MaxSeqLen int      `json:"max_seq_len"`
	qwenArguments
	deepseekArguments
	Experts *expertArguments `json:"moe_args"`
}

// qwenArguments are those of qwen3.
type qwenArguments struct {
	HeadDim    int  `json:"head_dim"`
	HiddenDim  int  `json:"hidden_dim"`
	Tied       bool `json:"enable_weight_tying"`
	MoEEnabled bool `json:"moe_enabled"`
	MoEDim     int  `json:"moe_inter_dim"` // also of deepseek_v3
}

// deepseekArguments are those of deepseek_v3.
type deepseekArguments struct {
	InterDim    int `json:"inter_dim"`
	DenseLayers int `json:"n_dense_layers"`
	QLoRA       int `json:"q_lora_rank"`
	KVLoRA      int `json:"kv_lora_rank"`
	PlainDim    int `json:"qk_nope_head_dim"`
	RotaryDim   int `json:"qk_rope_head_dim"`
	ValueDim    int `json:"v_head_dim"`
}

type expertArguments struct {
	Experts   int     `json:"num_experts"`
	Shared    int     `json:"num_shared_experts"`
	Choices   int     `json:"top_k"`
	Groups    int     `json:"num_expert_groups"`
	BestOf    int     `json:"num_limited_groups"`
	Score     string  `json:"score_func"`
	Normalize bool    `json:"route_norm"`
	Scale     float64 `json:"route_scale"`
}

// models is the table of flavors.
var models = parseModels(flavorsTSV)

// parseModels reads lines of model, flavor and arguments. It panics on a wrong table, which is embedded.
func parseModels(tsv string) (out []*model) {
	for _, line := range strings.Split(strings.TrimSpace(tsv), "\n")[1:] {
		cells := strings.Split(line, "\t")
		m := &model{name: cells[0], flavor: cells[1]}
		if err := json.Unmarshal([]byte(cells[2]), &m.args); err != nil {
			panic(fmt.Sprintf("torchtitan: %s: %v", line, err))
		}
		out = append(out, m)
	}
	return out
}

// find returns a model by name and flavor; nil if torchtitan has none.
func find(name, flavor string) *model {
	for _, m := range models {
		if m.name == name && m.flavor == flavor {
			return m
		}
	}
	return nil
}

// hasExperts reports whether blocks have experts.
func (m *model) hasExperts() bool {
	return m.name != "llama3" && (m.name != "qwen3" || m.args.MoEEnabled)
}

// llamaFFN returns the width of Llama's MLP (models/llama3/model/model.py, FeedForward): two thirds of 4 · dim, times a
// factor, rounded up.
func (a *arguments) llamaFFN() int {
	n := 2 * 4 * a.Dim / 3
	if a.FFNFactor != nil {
		n = int(*a.FFNFactor * float64(n))
	}
	return roundUp(n, a.Multiple)
}

// setting is a key of config.json with its value as JSON.
type setting struct{ key, value string }

// config returns the model in the vocabulary of config.json; nil if planc has no such family.
func (m *model) config() []setting {
	a := &m.args
	out := []setting{{"vocab_size", strconv.Itoa(a.Vocab)}, {"hidden_size", strconv.Itoa(a.Dim)},
		{"num_hidden_layers", strconv.Itoa(a.Layers)}, {"num_attention_heads", strconv.Itoa(a.Heads)},
		{"max_position_embeddings", strconv.Itoa(a.MaxSeqLen)}, {"rms_norm_eps", decimal(a.NormEps)},
		{"rope_theta", decimal(a.RopeTheta)}, {"tie_word_embeddings", strconv.FormatBool(a.Tied)}}
	add := func(key string, value any) { out = append(out, setting{key, fmt.Sprint(value)}) }
	kv := a.KVHeads
	if kv == 0 {
		kv = a.Heads
	}
	add("num_key_value_heads", kv)
	switch {
	case m.name == "llama3":
		add("intermediate_size", a.llamaFFN())
		return append([]setting{{"model_type", "llama"}}, out...)
	case m.name == "qwen3" && !a.MoEEnabled:
		add("intermediate_size", a.HiddenDim)
		add("head_dim", a.HeadDim)
		return append([]setting{{"model_type", "qwen3"}}, out...)
	case m.name == "qwen3":
		add("intermediate_size", a.HiddenDim)
		add("head_dim", a.HeadDim)
		add("moe_intermediate_size", a.MoEDim)
		add("num_experts", a.Experts.Experts)
		add("num_experts_per_tok", a.Experts.Choices)
		add("norm_topk_prob", a.Experts.Normalize)
		return append([]setting{{"model_type", "qwen3_moe"}}, out...)
	case m.name == "deepseek_v3":
		return a.deepseek(out)
	case m.name == "gpt_oss":
		add("intermediate_size", a.MoEDim)
		add("head_dim", a.HeadDim)
		add("moe_intermediate_size", a.MoEDim)
		add("num_experts", a.Experts.Experts)
		add("num_experts_per_tok", a.Experts.Choices)
		add("norm_topk_prob", a.Experts.Normalize)
		return append([]setting{{"model_type", "qwen3_moe"}}, out...)
	case strings.HasPrefix(m.flavor, "17bx16e"):
		return a.scout(out)
	}
	return nil
}

// scout adds the keys of Llama 4 with 16 experts, in which every block has experts. torchtitan divides the width of
// Llama's MLP by the number of experts that a token passes (models/llama4/model/model.py: auto_scale_hidden_dim).
func (a *arguments) scout(out []setting) []setting {
	add := func(key string, value any) { out = append(out, setting{key, fmt.Sprint(value)}) }
	e := a.Experts
	width := *a
	width.Multiple = 1
	expert := roundUp(width.llamaFFN()/(e.Choices+e.Shared), a.Multiple)
	add("intermediate_size", expert)
	add("moe_intermediate_size", expert)
	add("shared_expert_intermediate_size", expert*e.Shared)
	add("num_experts", e.Experts)
	add("num_experts_per_tok", e.Choices)
	add("norm_topk_prob", e.Normalize)
	add("qkv_bias", false)
	return append([]setting{{"model_type", "qwen2_moe"}}, out...)
}

// approximation says how planc's model differs from torchtitan's; "" if it has the same operations.
func (m *model) approximation() string {
	switch m.name {
	case "gpt_oss":
		return "priced as a qwen3_moe of its shape: without biases, attention sinks and sliding windows"
	case "llama4":
		return "priced as a qwen2_moe of its shape: with rotary positions and whole attention in every block"
	}
	return ""
}

// deepseek adds the keys of DeepSeek-V2 or V3, which differ in how tokens choose experts.
func (a *arguments) deepseek(out []setting) []setting {
	add := func(key string, value any) { out = append(out, setting{key, fmt.Sprint(value)}) }
	e := a.Experts
	family, method := "deepseek_v2", "greedy"
	switch {
	case e.Score == "sigmoid":
		family, method = "deepseek_v3", "noaux_tc"
	case e.Groups > 0:
		method = "group_limited_greedy"
	}
	add("intermediate_size", a.InterDim)
	add("moe_intermediate_size", a.MoEDim)
	add("first_k_dense_replace", a.DenseLayers)
	add("n_routed_experts", e.Experts)
	add("n_shared_experts", e.Shared)
	add("num_experts_per_tok", e.Choices)
	add("norm_topk_prob", e.Normalize)
	add("routed_scaling_factor", decimal(e.Scale))
	add("topk_method", method)
	if e.Groups > 0 {
		add("n_group", e.Groups)
		add("topk_group", e.BestOf)
	}
	if a.QLoRA > 0 {
		add("q_lora_rank", a.QLoRA)
	} else {
		add("q_lora_rank", "null")
	}
	add("kv_lora_rank", a.KVLoRA)
	add("qk_nope_head_dim", a.PlainDim)
	add("qk_rope_head_dim", a.RotaryDim)
	add("v_head_dim", a.ValueDim)
	return append([]setting{{"model_type", family}}, out...)
}

// readModel reads which model is trained. A config.json that the user gives with the file wins.
func (r *reader) readModel() {
	name, flavor := r.Text("model.name"), r.Text("model.flavor")
	from := "model.flavor"
	if !r.Has("model.name") {
		name = "llama3"
	}
	if !r.Has("model.flavor") {
		flavor, from = "debugmodel", "default of model.flavor"
	}
	if r.given != nil {
		r.replaceModel(name, flavor)
		return
	}
	m := find(name, flavor)
	r.experts = m == nil || m.hasExperts()
	switch {
	case r.Import.Has("model"):
		r.useConfig()
		return
	case m == nil && knows(name) && !r.isExtended():
		r.Wrong("model.flavor", strict.UnknownValue, ir.Nearest(flavor, flavorsOf(name)), "torchtitan's %s has no "+
			"flavor "+
			"%q: use one of %s, or give the model's config.json too", name, flavor, strings.Join(flavorsOf(name), ", "))
		return
	case m == nil:
		r.Account("model.name", interop.Unsupported, "planc does not know this model: give it with --model, or as a "+
			"config.json")
		return
	}
	config := m.config()
	r.layers = m.args.Layers
	if !r.isExtended() {
		r.model = name
	}
	if config == nil {
		r.Account("model.name", interop.Unsupported, "planc has no such model family: give a similar model with "+
			"--model, or "+
			"as a config.json")
		return
	}
	r.Take("model.name", interop.Field{Path: "model.model_type", Value: config[0].value})
	for _, s := range config {
		if length, ok := r.Int(seqKey); ok && s.key == "max_position_embeddings" {
			s.value = strconv.Itoa(max(length, m.args.MaxSeqLen))
		}
		r.Import.DefaultField("model."+s.key, s.value, from)
		r.Take("model.flavor", interop.Field{Path: "model." + s.key, Value: s.value})
	}
	if note := m.approximation(); note != "" {
		r.Account("model.name", interop.Unsupported, note)
	}
}

// replaceModel takes what the reader needs to know from the model that the user gives instead of the file's.
func (r *reader) replaceModel(name, flavor string) {
	r.layers, r.experts = r.given.Layers, r.given.Experts > 0
	r.Account("model.name", interop.NoEffect, "the given model replaces it")
	r.Account("model.flavor", interop.NoEffect, "the given model replaces it")
	r.Import.AddNote(r.Doc.Root.Nearest("model.flavor"), "the given model %s replaces %s %s", r.given.Name, name,
		flavor)
}

// useConfig takes what the reader needs to know from the config.json that the user gives.
func (r *reader) useConfig() {
	r.Account("model.name", interop.NoEffect, "the given config.json is the model")
	r.Account("model.flavor", interop.NoEffect, "the given config.json is the model")
	for _, key := range []string{"num_hidden_layers", "n_layer"} {
		if f, ok := r.Import.Field("model." + key); ok {
			r.layers, _ = strconv.Atoi(f.Value)
		}
	}
	r.experts = false
	for _, key := range []string{"num_experts", "num_local_experts", "n_routed_experts"} {
		r.experts = r.experts || r.Import.Has("model."+key)
	}
}

// isExtended reports whether a module of the user's may add flavors.
func (r *reader) isExtended() bool {
	return r.Text("experimental.custom_import") != "" || r.Text("job.custom_config_module") != ""
}

// knows reports whether torchtitan has a model of a name.
func knows(name string) bool { return len(flavorsOf(name)) > 0 }

// flavorsOf returns the flavors of a model.
func flavorsOf(name string) (out []string) {
	for _, m := range models {
		if m.name == name {
			out = append(out, m.flavor)
		}
	}
	return out
}

// modelOf returns the model with the shape of a configuration; nil if torchtitan has none.
func modelOf(c *spec.Config) *model {
	for _, m := range models {
		config := m.config()
		if config == nil || m.approximation() != "" {
			continue
		}
		var text strings.Builder
		for i, s := range config {
			value := s.value
			if i == 0 || s.key == "topk_method" {
				value = strconv.Quote(value)
			}
			fmt.Fprintf(&text, "%c%q: %s", "{,"[min(i, 1)], s.key, value)
		}
		text.WriteString("}")
		read := func(string) ([]byte, error) { return []byte(text.String()), nil }
		if other, err := spec.LoadModel("flavor/config.json", read); err == nil && sameShape(c, other) {
			return m
		}
	}
	return nil
}

// sameShape reports whether two models have the same parameters.
func sameShape(a, b *spec.Config) bool {
	type shape struct {
		family                                                           string
		vocab, hidden, layers, heads, kvHeads, headDim, ffn              int
		experts, choices, expertFFN, sharedFFN, dense, kvLatent, qLatent int
		tied                                                             bool
	}
	shapeOf := func(c *spec.Config) shape {
		return shape{c.Family, c.Vocab, c.Hidden, c.Layers, c.Heads, c.KVHeads, c.HeadDim, c.FFN, c.Experts, c.Choices,
			c.ExpertFFN, c.SharedFFN, c.Dense, c.KVLatent, c.QLatent, c.Tied}
	}
	return shapeOf(a) == shapeOf(b)
}
