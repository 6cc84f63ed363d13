package megatron

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/shell"
	"github.com/planc-dev/planc/ir"
)

// Codes of diagnostics.
const (
	BadOption ir.Code = "BadOption" // an option or its value that Megatron-LM refuses
	Undefined ir.Code = "Undefined" // a value that is not in the file
)

// source is a file that has been read.
type source struct {
	settings  *settings
	devices   int // that the launcher starts; 0 if the file does not say it
	perNode   int
	nodes     interop.NodeCount
	env       map[string]string
	launch    []interop.Key // options of the launcher, and words that are no options
	script    *shell.Script // nil for a log
	launcher  *shell.Launch // nil without one
	list      []shell.Word  // of a script: the program's arguments
	isDump    bool          // settings with their values, and not a script: a log, YAML
	isLog     bool          // the list of arguments in a log
	suggested int           // options for which a similar one was looked up
	notes     []interop.Note
	diags     ir.Diags

	// inYAML is the script whose arguments are in a YAML file; "" if they are in the script itself.
	inYAML string
	// usedDefines are variables whose values the YAML file has used.
	usedDefines []string
}

// dialect is how a program spells Megatron-LM's options.
type dialect struct {
	format string
	// option finds an option by its spelling.
	option func(name string) *Option
	// spell returns the spelling of an option.
	spell func(o *Option) string
	// isProgram reports whether a launcher's program is of this dialect.
	isProgram func(program string) bool
	// defaults are those that differ from Megatron-LM's, by setting.
	defaults map[string]string
	// flagValues says that flags take true or false.
	flagValues bool
	// notes say what the program's own options change.
	notes map[string]string
	// harmless are the program's own options that do not change which plan is best, with why.
	harmless map[string]string
}

var plain = &dialect{format: "megatron", option: func(name string) *Option { return options().byName[name] },
	spell: func(o *Option) string { return o.Name }, isProgram: func(string) bool { return true }}

// read reads a file of any form.
func (d *dialect) read(f interop.File, open shell.Open, o interop.Options) *source {
	if isDump(f.Data) {
		return readDump(f)
	}
	l := newLauncherEnv(f.Data, o)
	src := d.evaluate(f, open, l.define(false))
	if l.isNodesForTotal(src) {
		src = d.evaluate(f, open, l.define(true))
	}
	src.readLaunch(l.own())
	src.readNodes(l)
	l.compare(src, f.Name)
	src.settings = newSettings(d.parse(src))
	src.settings.defaults = d.defaults
	return src
}

// evaluate evaluates a script and finds the command that starts Megatron-LM.
func (d *dialect) evaluate(f interop.File, open shell.Open, define map[string]string) *source {
	src := &source{script: shell.EvalWith(f.Name, f.Data, define, open), env: map[string]string{}}
	src.diags = slices.Clone(src.script.Diags)
	src.noteSources(f.Name)
	src.chooseCommand(d)
	src.readEnv()
	return src
}

// chooseCommand finds the command that starts Megatron-LM: the one with the most of its options. A file without a
// launcher is a list of arguments.
func (src *source) chooseCommand(d *dialect) {
	last := 0
	launches := d.launches(src.script)
	for i := range launches {
		l := &launches[i]
		words := l.Command.Words[l.Start:]
		if n := d.countOptions(words); n > last {
			last, src.launcher, src.list = n, l, words
		}
	}
	if src.launcher != nil {
		if why := src.launcher.Command.Undecided; why != nil {
			pos, msg := src.script.Explain(why)
			src.diags.Addf(pos, Undefined, "%s (it decides whether %s runs)", msg, src.launcher.Program)
		}
		src.cutOff(d)
		src.noteOtherRuns(launches)
		return
	}
	for i := range src.script.Commands {
		words := src.script.Commands[i].Words
		if n := d.countOptions(words); n > 0 {
			src.list = append(src.list, words...)
		}
	}
}

// cutOff reports lines of options that the launcher does not get, because bash ends its command before them.
func (src *source) cutOff(d *dialect) {
	for i := range src.script.Commands {
		words := src.script.Commands[i].Words
		name := ""
		if len(words) > 0 {
			name, _, _ = strings.Cut(words[0].Text(), "=")
		}
		if strings.HasPrefix(name, "--") && d.option(name) != nil {
			src.diags.Addf(src.script.Pos(&words[0]), BadOption, "%s is not part of the command above: write \\ as "+
				"the last character of the line above, and no comment or empty line between", name)
			return
		}
	}
}

// launches returns the commands that start a program of the dialect.
func (d *dialect) launches(s *shell.Script) []shell.Launch {
	launches := s.Launches()
	if d == swift {
		launches = append(swiftLaunches(s), launches...)
	}
	return slices.DeleteFunc(launches, func(l shell.Launch) bool { return !d.isProgram(l.Program) })
}

// countOptions counts the words that are options of Megatron-LM.
func (d *dialect) countOptions(words []shell.Word) int {
	n := 0
	for i := range words {
		name, _, _ := strings.Cut(words[i].Text(), "=")
		if d.option(name) != nil {
			n++
		}
	}
	return n
}

// readEnv collects the environment that the script sets.
func (src *source) readEnv() {
	set := func(name string, w *shell.Word) {
		if w.Unknown() == nil {
			src.env[name] = w.Text()
		}
	}
	for name, w := range src.script.Exported {
		set(name, &w)
	}
	if src.launcher != nil {
		for i := range src.launcher.Command.Env {
			set(src.launcher.Command.Env[i].Name, &src.launcher.Command.Env[i].Value)
		}
	}
}

// readLaunch reads the number of devices from the launcher, or from the directives of Slurm.
func (src *source) readLaunch(define map[string]string) {
	l := src.launcher
	if l == nil {
		return
	}
	src.devices, src.perNode = l.Total, l.PerNode
	for i := range l.Options {
		option := &l.Options[i]
		key := interop.Key{Pos: option.Pos, Name: option.Name, Value: src.script.Shown(&option.Value),
			Use: interop.Taken, As: []string{"devices: " + fmt.Sprint(l.Total)}}
		if option.Unknown != nil || l.Total == 0 {
			key.Use, key.As = interop.Planned, nil
			key.Note = "the number of devices is not in the script: give --nodes and --devices"
			if option.Unknown != nil {
				_, msg := src.script.Explain(option.Unknown)
				key.Note = msg + ", or give --nodes and --devices"
			}
		}
		src.launch = append(src.launch, key)
	}
	if l.Total == 0 {
		nodes, perNode := atoi(define["SLURM_NNODES"]), max(atoi(define["SLURM_NTASKS_PER_NODE"]),
			atoi(define["SLURM_GPUS_PER_NODE"]))
		src.devices, src.perNode = nodes*perNode, perNode
	}
}

// parse reads the arguments of the program.
func (d *dialect) parse(src *source) (out []*argument) {
	words := src.list
	for i := 0; i < len(words); i++ {
		w := &words[i]
		name, inline, hasInline := strings.Cut(w.Text(), "=")
		if !strings.HasPrefix(name, "--") {
			src.stray(d, w)
			continue
		}
		a := &argument{option: d.option(name), spelled: name, pos: src.script.Pos(w), name: *w, unknown: w.Unknown()}
		out = append(out, a)
		if hasInline {
			a.values = []string{inline}
		} else {
			i += a.takeValues(words[i+1:], d.flagValues)
		}
		for j := range a.words {
			a.values = append(a.values, a.words[j].Text())
			if why := a.words[j].Unknown(); why != nil && a.unknown == nil {
				a.unknown = why
			}
		}
		src.diags = append(src.diags, a.check(d, src)...)
	}
	return out
}

// takeValues takes the values of an option from the words that follow it, and returns their number.
func (a *argument) takeValues(words []shell.Word, flagValues bool) int {
	end := len(words)
	if a.option != nil {
		switch a.option.Arity {
		case "0":
			end = 0
			if flagValues || len(words) > 0 && isBool(words[0].Text()) {
				end = 1
			}
		case "1":
			end = 1
		case "3":
			end = 3
		}
	}
	n := 0
	for n < min(end, len(words)) && !strings.HasPrefix(words[n].Text(), "--") && !areArguments(&words[n]) {
		n++
	}
	a.words = words[:n]
	return n
}

// areArguments reports whether a word has the script's arguments ("$@"), which are not given.
func areArguments(w *shell.Word) bool {
	why := w.Unknown()
	return why != nil && why.Name == "@"
}

// isBool reports whether a word is true or false.
func isBool(text string) bool {
	return strings.EqualFold(text, "true") || strings.EqualFold(text, "false")
}

// stray accounts for a word that is no option and no value.
func (src *source) stray(d *dialect, w *shell.Word) {
	key := interop.Key{Pos: src.script.Pos(w), Name: src.script.Shown(w), Use: interop.Unsupported}
	if why := w.Unknown(); areArguments(w) {
		key.Use, key.Note = interop.NoEffect, "no arguments of the script are given: --define '@=...' gives them"
	} else if why != nil {
		_, key.Note = src.script.Explain(why)
	} else if w.Text() == "" {
		return
	} else {
		key.Note = "is no option"
		if o := d.option("-" + w.Text()); o != nil {
			src.diags.Addf(key.Pos, BadOption, "%s: options start with two dashes; write -%[1]s", w.Text())
		}
	}
	src.launch = append(src.launch, key)
}

// deepspeedOptions are options of DeepSpeed that make the training one of Megatron-DeepSpeed.
var deepspeedOptions = []string{"--deepspeed", "--deepspeed_config"}

// mostSuggestions is the number of unknown options for which a known one is sought, which takes time.
const mostSuggestions = 20

// check reports what is wrong with an argument, and sets a flag's value.
func (a *argument) check(d *dialect, src *source) (diags ir.Diags) {
	o := a.option
	if o == nil {
		if d == plain && slices.Contains(deepspeedOptions, a.spelled) {
			diags.Addf(a.pos, BadOption, "%s is an option of Megatron-DeepSpeed, whose scripts planc does not read: "+
				"give the ds_config.json instead, with the model (--model), and the other degrees as --set plan.tp=N",
				a.spelled)
			return diags
		}
		if first, _, ok := strings.Cut(a.spelled, " "); ok && d.option(first) != nil {
			diags.Addf(a.pos, BadOption, "%s ...: quotes make this one argument, which is no option: remove the "+
				"quotes around it, or around the variable that has it", first)
			return diags
		}
		if d == swift || src.suggested == mostSuggestions {
			return nil // ms-swift has many options of its own
		}
		src.suggested++
		if fix := nearest(a.spelled); fix != "" {
			diags = append(diags, ir.Diag{Pos: a.pos, Code: BadOption, Fix: fix,
				Msg: fmt.Sprintf("Megatron-LM has no option %s", a.spelled)})
		}
		return diags
	}
	if o.isFlag() {
		a.on = o.Type == "true" || o.Type == "on-off" && !strings.HasPrefix(a.spelled, "--no-")
		switch {
		case d.flagValues && len(a.values) > 0:
			a.on = strings.EqualFold(a.text(), "true") || a.text() == "1"
		case len(a.values) > 0:
			diags.Addf(a.pos, BadOption, "%s takes no value: remove %s", a.spelled, a.text())
		}
		return diags
	}
	if a.unknown != nil {
		if o.use == "taken" && !o.isOfRate() {
			pos, msg := src.script.Explain(a.unknown)
			diags.Addf(pos, Undefined, "%s (%s needs it)", msg, a.spelled)
		}
		return diags
	}
	missing := len(a.values) == 0 && o.Arity != "*" || o.Arity == "3" && len(a.values) != 3
	if missing {
		diags.Addf(a.pos, BadOption, "%s has no value: give %s", a.spelled, o.wanted())
		return diags
	}
	if o.use != "taken" { // Megatron-LM will report it, and the plan does not depend on it
		return diags
	}
	for i, value := range a.values {
		isNone := d.flagValues && value == "none" // ms-swift's word for no recomputation
		if why := o.check(value); why != "" && !isNone {
			diags.Addf(src.posOf(a, i), BadOption, "%s %s: the value %s", a.spelled, value, why)
		}
	}
	return diags
}

// wanted describes an option's value.
func (o *Option) wanted() string {
	switch {
	case len(o.Choices) > 0:
		return strings.Join(o.Choices, ", ")
	case o.Arity == "3":
		return "three values"
	case o.Type == "int":
		return "an integer"
	case o.Type == "float":
		return "a number"
	}
	return "a value"
}

// isDump reports whether a file has the list of arguments that Megatron-LM prints.
func isDump(data []byte) bool {
	return bytes.Contains(data, []byte("tensor_model_parallel_size .")) ||
		bytes.Contains(data, []byte("- end of arguments -"))
}

// posOf returns where to change a value of an argument: the definition of a variable on another line, or else the
// option.
func (src *source) posOf(a *argument, i int) ir.Pos {
	if i >= len(a.words) || src.script == nil {
		return a.pos
	}
	if at := src.script.Pos(&a.words[i]); at.Line > 0 && at.Line != a.pos.Line {
		return at
	}
	return a.pos
}
