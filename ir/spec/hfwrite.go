package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// HF returns the model as a Hugging Face config.json: every key of its family, in the spelling that transformers 4 and
// 5 both read. elem is the type of the weights that the file belongs to. The model must have been read from a
// config.json.
func (c *Config) HF(elem ir.Elem) []byte {
	if c.hf == nil {
		panic("spec: HF of a model that was not read from a config.json")
	}
	out := hfFields(reflect.ValueOf(c.hf))
	unfoldRope(out)
	maps.Copy(out, c.special)
	out["architectures"] = strings.Fields(familyOf(c.Family).architectures)[:1]
	out["torch_dtype"] = map[ir.Elem]string{ir.F32: "float32", ir.F64: "float64"}[elem]
	b, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("spec: a config.json that is no JSON: %v", err))
	}
	return append(b, '\n')
}

// hfFields returns the keys of a struct that have a value.
func hfFields(v reflect.Value) map[string]any {
	out := map[string]any{}
	for i := range v.NumField() {
		f, x := v.Type().Field(i), v.Field(i)
		key := f.Tag.Get("yaml")
		_, null := f.Tag.Lookup("null")
		switch {
		case f.Anonymous && key == "":
			for k, y := range hfFields(x) {
				out[k] = y
			}
		case x.IsZero() && null:
			out[key] = nil
		case x.IsZero() && absentIfZero(f), key == nanoGPTBias && x.Bool():
		case x.Kind() == reflect.Struct:
			out[key] = hfFields(x)
		default:
			out[key] = hfValue(key, x.Interface())
		}
	}
	return out
}

// absentIfZero reports whether a field's zero value means that the key is absent.
func absentIfZero(f reflect.StructField) bool {
	_, over := f.Tag.Lookup("over")
	switch f.Type.Kind() {
	case reflect.Int, reflect.Float64:
		return over || f.Tag.Get("min") == "1"
	case reflect.Bool:
		return false
	}
	return true
}

// nanoGPTBias is a key that transformers does not have. It is written only if the model has no biases.
const nanoGPTBias = "bias"

// wholeNumber is a key that transformers requires without a decimal point, although planc reads it as a float.
const wholeNumber = "query_pre_attn_scalar"

// hfValue returns a value in the form that transformers 5 requires: a float has a decimal point.
func hfValue(key string, x any) any {
	switch x := x.(type) {
	case float64:
		if key != wholeNumber {
			return pointed(x)
		}
	case []float64:
		var list []pointed
		for _, v := range x {
			list = append(list, pointed(v))
		}
		return list
	}
	return x
}

// pointed is a float that is written to JSON with a decimal point.
type pointed float64

// MarshalJSON writes 3 as 3.0.
func (p pointed) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(float64(p))
	if err == nil && !strings.ContainsAny(string(b), ".e") {
		b = append(b, ".0"...)
	}
	return b, err
}

// unfoldRope converts rope_parameters of transformers 5 to the keys of transformers 4.
func unfoldRope(out map[string]any) {
	p, ok := out["rope_parameters"].(map[string]any)
	if !ok {
		return
	}
	delete(out, "rope_parameters")
	if full, nested := p["full_attention"].(map[string]any); nested {
		if local, ok := p["sliding_attention"].(map[string]any); ok && local["rope_theta"] != nil {
			out["rope_local_base_freq"] = local["rope_theta"]
		}
		p = full
	}
	neox := out["model_type"] == GPTNeoX
	move := func(key, old string) {
		if !neox {
			old = key
		}
		if x, ok := p[key]; ok {
			out[old] = x
			delete(p, key)
		}
	}
	move("rope_theta", "rotary_emb_base")
	move("partial_rotary_factor", "rotary_pct")
	if kind, ok := p["rope_type"]; ok && kind != "default" {
		out["rope_scaling"] = hubScaling(out, p)
	}
}

// hubScaling returns the rest of rope_parameters as rope_scaling.
func hubScaling(out, p map[string]any) map[string]any {
	// Phi-3 has the key outside and allows no more keys here
	if _, outside := out["original_max_position_embeddings"]; outside {
		delete(p, "original_max_position_embeddings")
	}
	kind := p["rope_type"]
	// these kinds are older than the key rope_type
	if slices.Contains([]any{"linear", "dynamic", "longrope"}, kind) && out["model_type"] != Gemma3 {
		p["type"] = kind
		delete(p, "rope_type")
	}
	return p
}

// specialTokens returns the special tokens of a config.json, for the config.json that planc writes. Without a padding
// row ([Config.PaddingRow]) it writes pad_token_id null, because transformers' default may lie beyond the vocabulary.
func specialTokens(m *strict.Node) map[string]any {
	out := map[string]any{"pad_token_id": nil}
	for _, key := range []string{"bos_token_id", "eos_token_id", "pad_token_id"} {
		n := m.Get(key)
		if n == nil {
			continue
		}
		switch n.Kind {
		case strict.Null:
			out[key] = nil
		case strict.Int:
			if id, err := strconv.Atoi(n.Text); err == nil {
				out[key] = id
			}
		case strict.List:
			out[key] = tokenList(n)
		}
	}
	return out
}

// tokenList returns a list of token ids, each of which ends a text.
func tokenList(n *strict.Node) []int {
	ids := []int{}
	for _, item := range n.Items {
		if id, err := strconv.Atoi(item.Text); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
