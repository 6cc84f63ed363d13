package megatron

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/shell"
	"github.com/planc-dev/planc/interop/tree"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec/strict"
)

// Megatron-LM's YAML arguments (--yaml-cfg FILE). The keys have the names of the settings. Those of the classes
// TransformerConfig and ModelParallelConfig stand in the sections language_model and model_parallel. Megatron-LM
// ignores its command line if it reads such a file (megatron/training/yaml_arguments.py, 2026-11).

const (
	yamlOption = "--yaml-cfg"
	language   = "language_model."
	parallel   = "model_parallel."
)

// yamlSections are the sections of settings that decide a plan, by the setting's name in YAML.
var yamlSections = map[string]string{"tensor_model_parallel_size": parallel, "pipeline_model_parallel_size": parallel,
	"context_parallel_size": parallel, "expert_model_parallel_size": parallel, "expert_tensor_parallel_size": parallel,
	"sequence_parallel": parallel, "bf16": parallel, "fp16": parallel, "num_layers": language, "hidden_size": language,
	"num_attention_heads": language, "ffn_hidden_size": language, "recompute_granularity": language,
	"recompute_method": language, "recompute_num_layers": language, "recompute_modules": language,
	"distribute_saved_activations": language, "cp_comm_type": language, "num_moe_experts": language,
	"pipeline_model_parallel_layout": language, "num_layers_in_first_pipeline_stage": language,
	"num_layers_in_last_pipeline_stage": language}

// yamlNames are settings that YAML names differently, by their names in YAML.
var yamlNames = map[string]string{"num_moe_experts": "num_experts",
	"num_layers_in_first_pipeline_stage": "decoder_first_pipeline_num_layers",
	"num_layers_in_last_pipeline_stage":  "decoder_last_pipeline_num_layers"}

// yamlReplaced are keys that Megatron-LM does not read from YAML, with what decides instead.
var yamlReplaced = map[string]string{
	"swiglu":                               "language_model.activation_func says the activation",
	"squared_relu":                         "language_model.activation_func says the activation",
	"openai_gelu":                          "language_model.activation_func says the activation",
	"gated_linear_unit":                    "language_model.activation_func says the activation",
	"group_query_attention":                "language_model.num_query_groups says it",
	"virtual_pipeline_model_parallel_size": "num_layers_per_virtual_pipeline_stage says it",
	"num_virtual_stages_per_pipeline_rank": "num_layers_per_virtual_pipeline_stage says it",
}

// yamlPath returns where YAML has a setting that it does not have yet.
func yamlPath(dest string) string {
	name := dest
	for own, of := range yamlNames {
		if of == dest {
			name = own
		}
	}
	return yamlSections[name] + name
}

// isYAML reports whether a file has Megatron-LM's arguments in YAML.
func isYAML(f interop.File) bool {
	return hasLine(f.Data, "language_model:") && hasLine(f.Data, "model_parallel:") && tree.SyntaxOf(f) == tree.YAML
}

// hasLine reports whether a line of the text begins with start.
func hasLine(text []byte, start string) bool {
	return bytes.HasPrefix(text, []byte(start)) || bytes.Contains(text, []byte("\n"+start))
}

// yamlReader turns the keys of a YAML file into arguments.
type yamlReader struct {
	doc    *tree.Doc
	src    *source           // of the script that names the file; the reader replaces its arguments
	define map[string]string // values of variables
	paths  map[string]string // of the keys, by setting
}

// importYAML reads a YAML file. src is the script that names it, nil if there is none.
func importYAML(f interop.File, src *source, rest []interop.File, o interop.Options) (*interop.Import, error) {
	doc, diags := tree.Parse(tree.YAML, f.Name, f.Data)
	if err := diags.Err(); err != nil {
		return nil, err
	}
	r := &yamlReader{doc: doc, src: &source{isDump: true, env: map[string]string{}}, define: o.Define,
		paths: map[string]string{}}
	if src != nil {
		r.src = src.withoutArguments(f.Name)
	}
	r.read()
	d := &dialect{format: "megatron", option: func(string) *Option { return nil },
		spell: func(o *Option) string { return r.path(o.Dest) }}
	im, err := r.src.importAs(d, append([]interop.File{f}, rest...), o)
	if err != nil {
		return nil, err
	}
	im.Doc = doc
	im.Values = r.values
	return im, nil
}

// withoutArguments returns a script whose arguments are those of a YAML file: Megatron-LM ignores its own.
func (src *source) withoutArguments(file string) *source {
	out := *src
	out.isDump, out.inYAML = true, src.script.Files()[0]
	out.diags = slices.Clone(src.script.Diags)
	for _, a := range src.settings.arguments {
		key := interop.Key{Pos: a.pos, Name: a.spelled, Value: src.shown(a), Use: interop.IgnoredByTool,
			Note: "Megatron-LM takes all arguments from " + file}
		if a.spelled == yamlOption {
			key.Use, key.Note, key.As = interop.Taken, "", []string{file}
		}
		out.launch = append(out.launch, key)
	}
	return &out
}

// read reads all keys.
func (r *yamlReader) read() {
	var list []*argument
	add := func(s Setting) {
		a, key := r.argument(s)
		if a != nil {
			list = append(list, a)
		} else {
			r.src.launch = append(r.src.launch, key)
		}
	}
	r.doc.Root.Walk(func(path string, f *tree.Field) {
		switch path {
		case language + "activation_func":
			add(r.activation(path, f.Value))
			return
		case gatedUnit:
			add(r.gate(f))
			return
		}
		s := Setting{Dest: f.Key, Spelled: path, Pos: f.Pos, Value: pythonText(f.Value)}
		if dest := yamlNames[f.Key]; dest != "" {
			s.Dest = dest
		}
		if section := yamlSections[f.Key]; section != "" && path != section+f.Key {
			r.src.diags.Addf(f.Pos, BadOption, "%s: Megatron-LM reads this key in the section %s: move it there", path,
				strings.TrimSuffix(section, "."))
			return
		}
		add(s)
		if f.Key == "num_query_groups" && f.Value.Kind != strict.Null {
			add(Setting{Dest: "group_query_attention", Spelled: path, Pos: f.Pos, Value: "True"})
		}
	})
	section := r.doc.Root.Find(strings.TrimSuffix(language, "."))
	if section != nil && section.Get("activation_func") == nil {
		r.src.diags.Addf(r.doc.Root.Nearest(language+"activation_func"), BadOption, "%sactivation_func is missing, "+
			"and Megatron-LM has no default: add gelu, swiglu or squaredrelu", language)
	}
	r.src.settings = newSettings(list)
}

// gatedUnit is a field of TransformerConfig that is copied as it is. activation_func swiglu sets it, too.
const gatedUnit = language + "gated_linear_unit"

// gate returns the setting that gated_linear_unit says.
func (r *yamlReader) gate(f *tree.Field) Setting {
	s := Setting{Dest: "gated_linear_unit", Spelled: gatedUnit, Pos: f.Pos, Value: pythonText(f.Value)}
	n := r.doc.Root.Find(language + "activation_func")
	if isOn, _ := f.Value.Bool(); isOn && n != nil && n.Text != "swiglu" {
		s.Dest = "quick_geglu" // planc prices GeGLU as SwiGLU
	}
	return s
}

// pythonText returns a value as Python prints it.
func pythonText(n *tree.Node) string {
	if n.Kind == strict.Null {
		return "None"
	}
	if on, ok := n.Bool(); ok {
		return map[bool]string{true: "True", false: "False"}[on]
	}
	return n.Flow()
}

// activations maps the values of activation_func to the settings that say the same; gelu is the default.
var activations = map[string]string{"swiglu": "swiglu", "squaredrelu": "squared_relu", "gelu": ""}

// activation returns the setting that activation_func says.
func (r *yamlReader) activation(path string, n *tree.Node) Setting {
	dest, ok := activations[n.Text]
	if !ok {
		r.src.diags.Addf(n.Pos, BadOption, "%s %s: the value must be one of swiglu, squaredrelu, gelu", path,
			n.Flow())
	}
	if dest == "" {
		return Setting{Dest: "swiglu", Spelled: path, Pos: n.Pos, Value: "False"}
	}
	return Setting{Dest: dest, Spelled: path, Pos: n.Pos, Value: "True"}
}

// argument returns the argument of a setting, or the key of one that changes nothing.
func (r *yamlReader) argument(s Setting) (*argument, interop.Key) {
	key := interop.Key{Pos: s.Pos, Name: s.Spelled, Value: s.Value, Use: interop.IgnoredByTool}
	isActivation := strings.HasSuffix(s.Spelled, ".activation_func")
	if note := yamlReplaced[s.Dest]; note != "" && !isActivation && s.Dest != "group_query_attention" ||
		note != "" && s.Spelled == s.Dest {
		key.Note = note
		return nil, key
	}
	if !HasSetting(s.Dest) {
		key.Use = interop.NoEffect
		if s.Dest == "cpu_offloading" && s.Value == "True" {
			key.Use, key.Note = interop.Unsupported, "keeps activations in the CPU's memory, which planc does not price"
		}
		return nil, key
	}
	a := &argument{spelled: s.Dest, pos: s.Pos}
	s.Value = r.resolve(s)
	a.fromDump(s.Value)
	a.spelled = s.Spelled
	r.paths[s.Dest] = s.Spelled
	if a.isDefault() {
		key.Use, key.Note = interop.NoEffect, "the default"
		return nil, key
	}
	if a.option.use == "taken" && !a.option.isFlag() {
		for _, value := range a.values {
			if why := a.option.check(value); why != "" && !yamlVariable.MatchString(value) {
				r.src.diags.Addf(s.Pos, BadOption, "%s %s: the value %s", s.Spelled, value, why)
			}
		}
	}
	return a, key
}

// yamlVariable is a variable of the environment in a value.
var yamlVariable = regexp.MustCompile(`\$\{(.*?)\}`)

// resolve returns a setting's value with the values of variables.
func (r *yamlReader) resolve(s Setting) string {
	return yamlVariable.ReplaceAllStringFunc(s.Value, func(word string) string {
		name := strings.Trim(word, "${}")
		if value, ok := r.define[name]; ok {
			r.src.usedDefines = append(r.src.usedDefines, name)
			return value
		}
		if value, ok := r.src.env[name]; ok {
			return value
		}
		if options().byDest[s.Dest][0].use == "taken" {
			r.src.diags.Addf(s.Pos, Undefined, "$%s has no value here: type --define %[1]s=VALUE (%s needs it)", name,
				s.Spelled)
		}
		return word
	})
}

// path returns where the file has a setting, or where to add it.
func (r *yamlReader) path(dest string) string {
	if path := r.paths[dest]; path != "" {
		return path
	}
	return yamlPath(dest)
}

// values returns the keys that say a plan. Megatron-LM needs every key, so that one without a value is null.
func (r *yamlReader) values(t *interop.Target) (out []interop.Value) {
	all := withLayersOfChunk(SettingValues(t), &t.Plan, func(dest string) string { return dest })
	all = WithPredictedLayers(all, r.src.settings.number(predictedLayers), layoutOfStages)
	for _, v := range all {
		if v.Env || v.Key == chunksOfStage { // variables are in the script
			continue
		}
		v.Key = r.path(v.Key)
		if _, ok := r.doc.Get(v.Key); ok && v.IsAbsent {
			v.Text, v.IsAbsent = "null", false
		}
		out = append(out, v)
	}
	return out
}

// yamlFile returns the YAML file that a script names. isNamed says that it names one.
func (src *source) yamlFile(open shell.Open) (f interop.File, isNamed bool, diags ir.Diags) {
	if src.settings == nil || src.script == nil || src.settings.byDest["yaml_cfg"] == nil {
		return f, false, nil
	}
	a := src.settings.byDest["yaml_cfg"]
	if a.unknown != nil {
		pos, msg := src.script.Explain(a.unknown)
		diags.Addf(pos, Undefined, "%s (%s needs it)", msg, yamlOption)
		return f, true, diags
	}
	name, data, ok := open(a.text())
	if !ok {
		diags.Addf(a.pos, BadOption, "%s %s: Megatron-LM takes all arguments from that file, and ignores those of the "+
			"command line: give the file too, after %s", yamlOption, a.text(), src.script.Files()[0])
	}
	return interop.File{Name: name, Data: data}, true, diags
}
