package megatron

import (
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/shell"
)

// document is a script whose arguments can be changed in place. After each change the script is read again, so that a
// change is known to have its effect and no other.
type document struct {
	dialect *dialect
	file    interop.File
	open    shell.Open // of the files that the script sources
	options interop.Options
	src     *source
	// original is the script as it was read.
	original *source
	before   []interop.File  // the script as it was read, and the other files of the import
	edits    []interop.Value // that were made or tried, in order
	remarks  []remark        // what edits leave as it was
	left     []string        // what says why options were removed
}

// Bytes returns the changed script.
func (d *document) Bytes() []byte { return d.file.Data }

// find returns the argument that holds for an option; nil if the script does not have it.
func (d *document) find(key string) *argument {
	o := d.dialect.option(key)
	if o == nil {
		return nil
	}
	a := d.src.settings.byDest[o.Dest]
	if a == nil || a.option != o {
		return nil
	}
	return a
}

// Get returns an option's value, or that of an environment variable.
func (d *document) Get(key string) (text string, ok bool) {
	if !strings.HasPrefix(key, "-") {
		text, ok = d.src.env[key]
		return text, ok
	}
	a := d.find(key)
	if a == nil {
		return "", false
	}
	return a.text(), true
}

// change applies edits and reads the script again.
func (d *document) change(edits ...shell.Edit) {
	d.file.Data = shell.Apply(d.file.Data, edits...)
	d.src = d.dialect.read(d.file, d.open, d.options)
}

// try applies edits if they give a key its value, and leave all other arguments as they are. Otherwise it returns false
// and changes nothing. others are the names of what would change too.
func (d *document) try(v interop.Value, edits []shell.Edit) (isDone bool, others []string) {
	file, src := d.file, d.src
	before := d.others(v)
	d.change(edits...)
	got, ok := d.Get(v.Key)
	works := ok != v.IsAbsent && (v.IsAbsent || got == v.Text) && len(d.src.diags) <= len(src.diags)
	others = changedNames(before, d.others(v))
	if works && len(others) == 0 {
		return true, nil
	}
	d.file, d.src = file, src
	return false, others
}

// other is something in a script that an edit must leave as it is.
type other struct{ name, text string }

// others returns all arguments but those of a key, the number of devices and the environment.
func (d *document) others(v interop.Value) []other {
	out := []other{{"the number of devices", fmt.Sprint(d.src.devices, d.src.perNode)}}
	own := d.dialect.option(v.Key)
	for _, a := range d.src.settings.arguments {
		if a.option != own || own == nil {
			out = append(out, other{a.spelled, d.src.shown(a)})
		}
	}
	return append(out, other{"the environment", d.src.otherEnv(v.Key)})
}

// changedNames returns the names of others that differ, each once.
func changedNames(before, after []other) (names []string) {
	add := func(a, b []other) {
		for _, o := range a {
			if !slices.Contains(b, o) && !slices.Contains(names, o.name) {
				names = append(names, o.name)
			}
		}
	}
	add(before, after)
	add(after, before)
	if len(names) == 0 && !slices.Equal(before, after) {
		return []string{"the order of the arguments"}
	}
	return names
}

// Set changes an option or an environment variable, or inserts it.
func (d *document) Set(v interop.Value) error {
	if v.IsAbsent {
		return d.Remove(v.Key)
	}
	d.edits = append(d.edits, v)
	if v.Env {
		return d.setEnv(v)
	}
	o := d.dialect.option(v.Key)
	if o == nil {
		return fmt.Errorf("Megatron-LM has no option %s", v.Key)
	}
	got, ok := d.Get(v.Key)
	if ok && got == v.Text || !ok && v.Text != "" && v.Text == d.defaultText(o) {
		return nil
	}
	if a := d.find(v.Key); a != nil {
		if d.replaceValue(a, v) {
			return nil
		}
	}
	words := append([]string{v.Key}, strings.Fields(v.Text)...)
	if o.Arity == "1" {
		words = []string{v.Key, v.Text}
	}
	if o.isFlag() && v.Text == "" {
		words = []string{v.Key}
	}
	for _, anchor := range d.anchors(o) {
		edit, ok := d.src.script.Insert(anchor.allWords(), words)
		if !ok {
			continue
		}
		if isDone, _ := d.try(v, []shell.Edit{edit}); isDone {
			return nil
		}
	}
	return fmt.Errorf("%s: %s %s cannot be written into the script: %s", d.file.Name, v.Key, v.Text,
		d.byHand(d.find(v.Key), "add it by hand"))
}

// replaceValue gives an argument another value: in the variable that has it, unless other arguments use that too.
func (d *document) replaceValue(a *argument, v interop.Value) bool {
	var tried []shell.Edit
	var users []string // other arguments that use the variable
	for _, depth := range shell.Depths {
		edits, ok := d.replace(a, v.Text, depth)
		if !ok || slices.Equal(edits, tried) {
			continue
		}
		tried = edits
		isDone, others := d.try(v, edits)
		if isDone {
			d.remark(a, v, users)
			return true
		}
		if users == nil {
			users = others
		}
	}
	return false
}

// byHand says what the user can do about an argument that cannot be edited: the text, or where the argument stands if
// a sourced file has it.
func (d *document) byHand(a *argument, text string) string {
	if a == nil {
		return text
	}
	for _, w := range a.allWords() {
		if pos := d.src.script.Pos(&w); pos.File != d.file.Name {
			return fmt.Sprintf("change it in %s, line %d", pos.File, pos.Line)
		}
	}
	return text
}

// defaultText returns an option's default in the dialect.
func (d *document) defaultText(o *Option) string {
	if text, ok := d.dialect.defaults[o.Dest]; ok {
		return text
	}
	return o.defaultText()
}

// replace returns the edits that give an argument another value.
func (d *document) replace(a *argument, text string, depth shell.Depth) ([]shell.Edit, bool) {
	s := d.src.script
	values := strings.Fields(text)
	if a.option.Arity == "1" {
		values = []string{text}
	}
	words := a.words
	if len(words) == 0 { // --option=value
		if !strings.Contains(a.name.Text(), "=") {
			return nil, false
		}
		edit, ok := s.Replace(&a.name, a.spelled+"="+text, shell.AtUse)
		return []shell.Edit{edit}, ok
	}
	if len(values) != len(words) {
		return nil, false
	}
	var edits []shell.Edit
	for i := range words {
		if words[i].Text() == values[i] {
			continue
		}
		edit, ok := s.Replace(&words[i], values[i], depth)
		if !ok {
			return nil, false
		}
		edits = append(edits, edit)
	}
	return edits, true
}

// allWords returns the words of an argument: the option and its values.
func (a *argument) allWords() []shell.Word { return append([]shell.Word{a.name}, a.words...) }

// related are settings that stand together in a script, in their usual order.
var related = [][]string{
	{"tensor_model_parallel_size", "sequence_parallel", "pipeline_model_parallel_size",
		"num_virtual_stages_per_pipeline_rank", "num_layers_per_virtual_pipeline_stage",
		"pipeline_model_parallel_layout", "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers",
		"use_tp_pp_dp_mapping", "context_parallel_size", "cp_comm_type", "expert_model_parallel_size",
		"expert_tensor_parallel_size", "use_distributed_optimizer", "use_megatron_fsdp",
		"data_parallel_sharding_strategy", "num_distributed_optimizer_instances", "overlap_grad_reduce",
		"overlap_param_gather"},
	{"recompute_granularity", "recompute_method", "recompute_num_layers", "recompute_activations",
		"recompute_modules", "distribute_saved_activations"},
	{"micro_batch_size", "global_batch_size"},
}

// anchors returns the arguments after which an option can be inserted, the most related first: those that usually
// precede it, those that follow it, and those of other groups.
func (d *document) anchors(o *Option) (out []*argument) {
	s := d.src.settings
	add := func(dests []string) {
		for _, dest := range slices.Backward(dests) {
			if a := s.byDest[dest]; a != nil {
				out = append(out, a)
			}
		}
	}
	for _, group := range related {
		if at := slices.Index(group, o.Dest); at >= 0 {
			add(group[:at])
			add(group[at+1:])
		}
	}
	for _, group := range related {
		add(group)
	}
	for i := len(s.arguments) - 1; i >= 0; i-- {
		out = append(out, s.arguments[i])
	}
	const limit = 12 // each is tried by reading the script again
	return out[:min(len(out), limit)]
}

// Remove deletes an option or an environment variable.
func (d *document) Remove(key string) error {
	d.edits = append(d.edits, interop.Value{Key: key, IsAbsent: true})
	if !strings.HasPrefix(key, "-") {
		return d.removeEnv(key)
	}
	const limit = 100 // times that the script gives the option
	for range limit {
		a := d.find(key)
		if a == nil {
			return nil
		}
		edits, ok := d.src.script.Remove(a.allWords())
		count := len(d.src.settings.arguments)
		if !ok {
			break
		}
		file, src := d.file, d.src
		before := d.others(interop.Value{Key: key})
		d.change(edits...)
		isSame := slices.Equal(d.others(interop.Value{Key: key}), before)
		if len(d.src.settings.arguments) >= count || !isSame {
			d.file, d.src = file, src
			break
		}
	}
	if d.find(key) == nil {
		return nil
	}
	return fmt.Errorf("%s: %s cannot be removed from the script: %s", d.file.Name, key,
		d.byHand(d.find(key), "remove it by hand"))
}
