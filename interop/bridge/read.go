package bridge

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/megatron"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// reader turns the keys of a file into settings of Megatron-LM.
type reader struct {
	doc      *tree.Doc
	settings []megatron.Setting
	others   []interop.Key // keys that are no settings
	diags    ir.Diags
}

// read reads every key of the file.
func (r *reader) read() {
	r.doc.Root.Walk(func(path string, f *tree.Field) {
		if inside(path, "mixed_precision") || f.Key == "activation_func" || strings.Contains(path,
			".activation_func.") ||
			path == layoutPath {
			return // read below
		}
		r.readKey(path, f)
	})
	r.readActivation()
	r.readPrecision()
	r.readGroups()
	r.readLayout()
	r.readPositions()
	r.checkLengths()
}

// inside reports whether a path is a mapping or a key below it.
func inside(path, above string) bool { return path == above || strings.HasPrefix(path, above+".") }

// readKey reads a key.
func (r *reader) readKey(path string, f *tree.Field) {
	dest, inverse := destOf(path)
	switch {
	case path == "peft" && f.Value.Kind != strict.Null || path == "peft._target_":
		r.account(path, f, interop.Unsupported, interop.AdaptersNote)
	case path == "model.rope_scaling" && f.Value.Kind != strict.Bool:
		r.account(path, f, interop.NoEffect, "")
	case dest != "" && megatron.HasSetting(dest):
		value := python(f.Value, inverse)
		if dest == "rotary_base" { // a float, because it is rope_theta of a config.json; an integer in Megatron-LM
			value = strings.TrimSuffix(value, ".0")
		}
		r.settings = append(r.settings, megatron.Setting{Dest: dest, Spelled: path, Value: value, Pos: f.Value.Pos})
	case isTarget(path) || isDeep(path):
		r.account(path, f, interop.NoEffect, "")
	default:
		r.accountOther(path, f)
	}
}

// isTarget reports whether a key names a Python object: _target_, _partial_, _args_, _call_.
func isTarget(path string) bool {
	last := path[strings.LastIndexByte(path, '.')+1:]
	return strings.HasPrefix(last, "_") && strings.HasSuffix(last, "_")
}

// isDeep reports whether a key is inside a value that is an object itself, such as a function with its arguments.
func isDeep(path string) bool { return strings.Count(path, ".") > 1 }

// accountOther accounts for a key that is no setting of Megatron-LM. A misspelt one is refused.
func (r *reader) accountOther(path string, f *tree.Field) {
	row, ok := Keys.Find(path)
	group, name, _ := strings.Cut(path, ".")
	switch {
	case ok && row.Use == interop.Unsupported && (f.Value.Kind == strict.Null || f.Value.Flow() == row.Default):
		r.account(path, f, interop.NoEffect, "the default")
	case ok && row.Use == interop.Unsupported && isFalse(f.Value):
		r.account(path, f, interop.NoEffect, "it is off")
	case ok:
		r.account(path, f, row.Use, row.Note)
	case f.Value.Kind == strict.Null && name == "":
		r.account(path, f, interop.NoEffect, "the default") // a whole group, such as comm_overlap
	case !slices.Contains(groups, group) && group != "comm_overlap":
		r.account(path, f, interop.NoEffect, "")
	default:
		if near := Keys.Nearest(path); near != "" && near != name {
			r.diags = append(r.diags, ir.Diag{Pos: f.Pos, Code: strict.UnknownKey, Fix: near,
				Msg: fmt.Sprintf("Megatron-Bridge 0.6 has no key %s", path)})
			return
		}
		r.account(path, f, interop.Unsupported, "planc does not know this key")
	}
}

// isFalse reports whether a value switches a feature off.
func isFalse(n *tree.Node) bool {
	value, ok := n.Bool()
	return ok && !value
}

func (r *reader) account(path string, f *tree.Field, use interop.Use, note string) {
	r.others = append(r.others, interop.Key{Pos: f.Pos, Name: path, Value: f.Value.Flow(), Use: use, Note: note})
}

// python returns a value as Python prints it.
func python(n *tree.Node, inverse bool) string {
	switch n.Kind {
	case strict.Null:
		return "None"
	case strict.Bool:
		value, _ := n.Bool()
		if value != inverse {
			return "True"
		}
		return "False"
	case strict.Map:
		if target := n.Get("_name_"); target != nil {
			return target.Text
		}
	}
	return strings.NewReplacer("[", "[", "\"", "'").Replace(n.Flow())
}

// set adds a setting that a key says in another way.
func (r *reader) set(dest, value, path string) {
	s := megatron.Setting{Dest: dest, Spelled: path, Value: value, Pos: r.doc.Root.Nearest(path)}
	r.settings = append(r.settings, s)
}

// readActivation reads the activation. With a gate projection and SiLU, the MLP is Megatron-LM's --swiglu.
func (r *reader) readActivation() {
	const path = "model.activation_func"
	n := r.doc.Root.Find(path)
	if n == nil {
		return
	}
	text := n.Flow()
	f := &tree.Field{Key: "activation_func", Pos: n.Pos, Value: n}
	gated, _ := r.doc.Root.Find("model.gated_linear_unit").Bool()
	switch {
	case gated && !strings.Contains(text, "silu") && !strings.Contains(text, "swish"):
		r.account(path, f, interop.Unsupported, "planc prices SwiGLU")
	case strings.Contains(text, "squared_relu"):
		r.set("squared_relu", "True", path)
	default:
		r.account(path, f, interop.NoEffect, "")
	}
}

// readPrecision reads mixed_precision: the name of a recipe, or its fields.
func (r *reader) readPrecision() {
	const path = "mixed_precision"
	n := r.doc.Root.Get(path)
	if n == nil || n.Kind == strict.Null {
		return
	}
	if n.Kind == strict.String {
		r.readRecipe(path, n)
		return
	}
	for _, f := range n.Fields {
		value, _ := f.Value.Bool()
		key := path + "." + f.Key
		switch {
		case f.Key == "bf16" && value || f.Key == "fp16" && value:
			r.set(f.Key, "True", key)
		case f.Key == "fp8" && f.Value.Kind == strict.String:
			r.set("fp8", f.Value.Text, key)
		case f.Key == "grad_reduce_in_fp32" && r.doc.Root.Find("ddp.grad_reduce_in_fp32") == nil:
			r.set("grad_reduce_in_bf16", python(f.Value, true), key)
		default:
			r.account(key, f, interop.NoEffect, "")
		}
	}
}

// readRecipe reads the name of a recipe (training/mixed_precision.py): bf16_mixed, bf16_with_fp8_delayed_scaling_mixed.
func (r *reader) readRecipe(path string, n *tree.Node) {
	name := strings.ReplaceAll(n.Text, "-", "_")
	found := false
	for _, word := range []string{"bf16", "fp16"} {
		if strings.HasPrefix(name, word) || strings.Contains(name, "_"+word+"_") {
			r.set(word, "True", path)
			found = true
			break
		}
	}
	if !found {
		r.diags.Addf(n.Pos, strict.UnknownValue, "mixed_precision is %q; use bf16_mixed, fp16_mixed or a recipe "+
			"with fp8, such "+
			"as bf16_with_fp8_current_scaling_mixed", n.Text)
		return
	}
	if strings.Contains(name, "fp8") {
		r.set("fp8", "hybrid", path)
	}
}

// readGroups says that fewer groups of keys and values than heads are grouped-query attention.
func (r *reader) readGroups() {
	const path = "model.num_query_groups"
	n := r.doc.Root.Find(path)
	if n != nil && n.Kind == strict.Int && n.Text != r.text("model.num_attention_heads") {
		r.set("group_query_attention", "True", path)
	}
}

func (r *reader) text(path string) string {
	n := r.doc.Root.Find(path)
	if n == nil {
		return ""
	}
	return n.Text
}

// layoutPath is the key of a pipeline's layout.
const layoutPath = "model.pipeline_model_parallel_layout"

// layoutLetters are Megatron-LM's letters for the parts of a layout.
var layoutLetters = map[string]string{"embedding": "E", "decoder": "t", "loss": "L", "mtp": "m"}

// readLayout reads a layout: a text, or a list with the parts of each chunk.
func (r *reader) readLayout() {
	n := r.doc.Root.Find(layoutPath)
	switch {
	case n == nil:
		return
	case n.Kind != strict.List:
		r.set("pipeline_model_parallel_layout", python(n, false), layoutPath)
		return
	}
	var chunks []string
	for _, chunk := range n.Items {
		var letters strings.Builder
		for _, part := range chunk.Items {
			letter := layoutLetters[part.Text]
			if letter == "" {
				r.diags.Addf(part.Pos, strict.UnknownValue, "%s has %q; its parts are embedding, decoder, mtp and loss",
					layoutPath, part.Text)
				return
			}
			letters.WriteString(letter)
		}
		chunks = append(chunks, letters.String())
	}
	r.set("pipeline_model_parallel_layout", strings.Join(chunks, "|"), layoutPath)
}

// readPositions adds the length of the position table, which Megatron-Bridge takes from the sequence length.
func (r *reader) readPositions() {
	const path = "model.seq_length"
	if text := r.text(path); text != "" && r.doc.Root.Find("model.max_position_embeddings") == nil {
		r.set("max_position_embeddings", text, path)
	}
}

// checkLengths refuses samples of another length than the model's.
// Source: Megatron-Bridge, training/config.py: ConfigContainer.validate.
func (r *reader) checkLengths() {
	const path, other = "model.seq_length", "dataset.sequence_length"
	model, data := r.doc.Root.Find(path), r.doc.Root.Find(other)
	if model == nil || data == nil || model.Kind != strict.Int || data.Kind != strict.Int || model.Text == data.Text {
		return
	}
	r.diags.Addf(data.Pos, megatron.BadOption, "%s %s must equal %s %s: set both to the same length", other, data.Text,
		path, model.Text)
}

// predictedLayers returns the number of layers of multi-token prediction.
func (r *reader) predictedLayers() int {
	n := r.doc.Root.Find("model.mtp_num_layers")
	if n == nil {
		return 0
	}
	layers, err := strconv.Atoi(n.Text)
	if err != nil {
		return 0
	}
	return layers
}

// megatronImport makes the import from Megatron-LM's settings, and adds the other keys in the order of the file.
func megatronImport(r *reader, f interop.File, o interop.Options) (*interop.Import, error) {
	im, err := megatron.ImportSettings(name, []interop.File{f}, r.settings, spell, o)
	if err != nil {
		return nil, err
	}
	if n := r.predictedLayers(); n > 0 {
		im.Values = func(t *interop.Target) []interop.Value {
			return megatron.WithPredictedLayers(values(t), n, layoutPath)
		}
	}
	im.Keys = append(im.Keys, r.others...)
	slices.SortStableFunc(im.Keys, func(a, b interop.Key) int {
		if a.Pos.Line != b.Pos.Line {
			return a.Pos.Line - b.Pos.Line
		}
		return a.Pos.Column - b.Pos.Column
	})
	return im, nil
}
